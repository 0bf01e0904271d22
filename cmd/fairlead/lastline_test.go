package main

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// The last line of a command that failed is quoted wherever its end is shown, as text.
func TestLastLineOfACommand(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, ../ada.sh], workspace: ada}\n",
		"ada.sh":        "printf 'usage: agent [--model M]\\n\\033[31magent: unknown option --xmodel\\033[0m\\n' >&2\nexit 2\n",
	})
	const want = "exit code 2: agent: unknown option --xmodel"
	if out, code := s.fairlead("once", "ada", "--wait"); code == cli.ExitDone || !strings.Contains(out, want) {
		t.Errorf("once ends with %d:\n%s", code, out)
	}
	for _, words := range [][]string{{"why", "ada"}, {"ps"}, {"events"}, {"inbox"}} {
		if out := s.must(words...); !strings.Contains(out, want) || strings.Contains(out, "\x1b[31m") {
			t.Errorf("%v prints\n%s", words, out)
		}
	}
	if testsize.CI() && !testsize.Race {
		p := uitest.Browse(t)
		p.OpenTeam(s.url)
		p.Open(s.url + "#/agents/ada/history")
		p.WaitText(".agent", want)
	}
}
