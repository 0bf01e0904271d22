package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// askingScript asks the given number of times, and prints each answer.
var askingScript = "steps:\n  - say: I ask.\n" +
	strings.Repeat(`  - run: until [ -e ask ] || [ ! -e "$PWD" ]; do sleep 0.02; done; rm -f ask
  - ask: May I tidy up?
    tool: Bash
    args: {command: rm -rf build}
  - run: if [ "$ANSWER" = allow ]; then echo allowed; else echo denied; fi >> answers
`, 3)

// What a real agent of a real daemon asks is shown on the page, and goes on with what is answered there.
func TestAskPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for i, name := range []string{"permission given", "permission standing"} {
		at := slices.IndexFunc(uitest.Scenarios(), func(s uitest.Scenario) bool { return s.Name == name })
		if at < 0 {
			t.Fatalf("no story is called %q any more", name)
		}
		story := uitest.Scenarios()[at]
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t, map[string]string{
				"fairlead.yaml":    "version: 1\nagents:\n  coder: {description: Writes code, driver: script, script: asks.script.yaml}\n",
				"asks.script.yaml": askingScript,
			})
			if out, code := s.fairlead("once", "coder"); code != cli.ExitDone {
				t.Fatalf("fairlead once: exit code %d: %s", code, out)
			}
			p := uitest.Browse(t)
			p.Resize(uitest.Views[i%2].Size)
			p.Scheme(uitest.Views[i%2].Scheme)
			story.Run(t, p, uitest.Target{URL: s.url, Agent: "coder", Questions: &uitest.Questions{
				Agent: "coder",
				Ask: func() string {
					if err := os.WriteFile(filepath.Join(s.dir, "ask"), nil, 0o600); err != nil {
						t.Error(err)
					}
					return ""
				},
			}})
			p.NoConsoleErrors()
		})
	}
}

// needsBrowser skips a test that looks at the page of a real daemon, where it cannot or should not run.
func needsBrowser(t *testing.T) {
	t.Helper()
	uitest.Chromium(t)
}
