package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPageTriesAgain checks that a part of the page that does not load is requested again, and that
// after some tries the page says what to do.
func TestPageTriesAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		refuse func(*uitest.Proxy, string, string, string)
		see    string
	}{
		{"once", (*uitest.Proxy).Refuse, `document.querySelector('.masthead')`},
		{"always", (*uitest.Proxy).RefuseAll, `document.querySelector('.loading [role=alert]')?.innerText.includes('did not load')`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, uitest.OneAgent)
			test.refuse(s.Intercept(), "GET", "/agents/pane.js", test.name)
			p := uitest.Browse(t)
			p.Visit(s.URL)
			p.Until("the page says what the agent can do", test.see)
		})
	}
}
