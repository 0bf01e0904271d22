package listen

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// What a program says about its provider is reported at the first sign and when the reason changes, otherwise every ten seconds. An
// answer ends it; a notice of the program and the output of a tool are no answer.
func TestAwayProvider(t *testing.T) {
	away := func(code driver.ProviderCode, text string) driver.Fact {
		return driver.Fact{Kind: driver.ProviderAway, Provider: code, Text: text}
	}
	said := driver.Fact{Kind: driver.Said, Text: "hello"}
	const silent = "nothing"
	var heard awayProvider
	for i, step := range []struct {
		after time.Duration
		fact  driver.Fact
		want  string // the code; silent: no report
	}{
		{0, said, silent},
		{time.Second, away(driver.ProviderAuthentication, "retry 1 of 10"), "authentication"},
		{time.Second, away(driver.ProviderAuthentication, "retry 2 of 10"), silent},
		{2 * time.Second, away(driver.ProviderNetwork, "retry 3 of 10"), "network"},
		{11 * time.Second, away(driver.ProviderNetwork, "retry 4 of 10"), silent},
		{12 * time.Second, away(driver.ProviderNetwork, "retry 5 of 10"), "network"},
		{13 * time.Second, driver.Fact{Kind: driver.Said, Tool: "program", Text: "still waiting"}, silent},
		{13 * time.Second, driver.Fact{Kind: driver.Faulted, Text: "?"}, silent},
		{14 * time.Second, said, ""},
		{15 * time.Second, said, silent},
		{16 * time.Second, away(driver.ProviderNetwork, "retry 1 of 10"), "network"},
		{17 * time.Second, driver.Fact{Kind: driver.ToolCalled, Tool: "Bash"}, silent}, // the fourth within ten seconds
		{22 * time.Second, driver.Fact{Kind: driver.ToolCalled, Tool: "Bash"}, silent}, // it is known; the timer reports it
		{22 * time.Second, away(driver.ProviderNetwork, "retry 2 of 10"), silent},      // nothing has changed
	} {
		got, provider := silent, heard.hears(step.fact, time.Unix(0, 0).Add(step.after))
		if provider != nil {
			got = provider.Code
		}
		if got != step.want ||
			provider != nil && provider.Code != "" && *provider != (team.Provider{Code: step.want, Why: step.fact.Text}) {
			t.Errorf("step %d, %s %q: %+v, want %q", i, step.fact.Kind, step.fact.Text, provider, step.want)
		}
	}
}
