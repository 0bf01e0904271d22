package uitest_test

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestUrgentAgentsComeFirst checks that the list of agents begins with those that wait for a person
// or gave up, and that the first of them is open.
func TestUrgentAgentsComeFirst(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: script, script: ok.yaml}\n  bob: {driver: script, script: ask.yaml}\n  cat: {driver: script, script: ok.yaml}\n  dan: {driver: script, script: bad.yaml, failures_max: 1}\n",
		"ok.yaml":       "steps:\n  - say: done\n",
		"ask.yaml":      "steps:\n  - ask: May I clean up?\n    tool: Bash\n    args: {command: rm -rf build}\n",
		"bad.yaml":      "steps:\n  - fail: broken\n",
	})
	p := uitest.Browse(t)
	p.Open(s.URL + "#/agents")
	rows := func(want string) string {
		return `[...document.querySelectorAll('.roster .row-name')].sort((a, b) => a.getBoundingClientRect().y - b.getBoundingClientRect().y).map(e => e.textContent.trim()).join() === '` + want + `'`
	}
	p.Until("the list is as in the file", rows("ada,bob,cat,dan"))
	s.Do("POST", "/agents/bob/once", strings.NewReader(`{}`))
	s.Do("POST", "/agents/dan/start", strings.NewReader(`{}`))
	p.Until("an agent that needs a person is listed first", rows("bob,dan,ada,cat"))
	p.Open(s.URL + "#/agents")
	p.WaitText("#agent-title", "bob")
	s.Do("POST", "/questions/q1/answer", strings.NewReader(`{"allow":true}`))
	p.Until("the answered one is back in its place", rows("dan,ada,bob,cat"))
	p.NoConsoleErrors()
}
