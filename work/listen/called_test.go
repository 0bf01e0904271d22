package listen

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// A program that reports no usage shows by a tool call that a model has answered. A provider's refusal later in the session does not
// change that; without a call nothing shows it.
func TestStopSaysThatAToolWasCalled(t *testing.T) {
	for kind, called := range map[driver.FactKind]bool{
		driver.ToolCalled: true, driver.PermissionAsked: true, driver.Said: false, driver.ProviderAway: false,
		driver.ConversationNamed: false,
	} {
		l := &SessionListener{s: team.Session{ID: "ada-1"}}
		l.Note(HeldFact{Fact: driver.Fact{Kind: kind, Tool: "program"}})
		l.Note(HeldFact{Fact: driver.Fact{Kind: driver.Stopped, Stop: &driver.Stop{Reason: session.ReasonRateLimited}}})
		if l.Pending.Stop == nil || l.Pending.Stop.Called != called {
			t.Errorf("after %s: %+v", kind, l.Pending.Stop)
		}
	}
}
