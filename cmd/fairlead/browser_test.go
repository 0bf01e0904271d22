package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/ui/uitest"
)

// talking says what is put into a file beside it, until another file says that it is done.
const talking = `echo hello from a real process
touch say; lines=0
until [ -e finish ]; do
  now=$(wc -l < say)
  if [ "$now" -gt "$lines" ]; then tail -n +$((lines + 1)) say; lines=$now; fi
  sleep 0.02
done
rm -f finish; echo goodbye`

// The page on the real daemon, with a real agent: the stories that ui/uitest tells of a
// fake one. What only a fake can be made to do (a refusal, an agent whose very name is
// hostile) is skipped here and runs there.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at the page through a browser; not under -short")
	}
	uitest.Chromium(t)
	tell := uitest.RunAll
	if raced {
		tell = uitest.RunEach // the daemon is in a program of its own, which the race detector makes slow
	}
	tell(t, func(t *testing.T) uitest.Target {
		files := uitest.RunFiles()
		files["fairlead.yaml"] = fmt.Sprintf("version: 1\nagents:\n  coder:\n    description: Writes and changes code\n    driver: exec\n    command: [sh, -c, %q]\n    workspace: coder\n  tester:\n    description: Runs the tests\n    driver: exec\n    command: [sh, -c, 'true']\n    workspace: tester\n", talking) + uitest.MeetingYAML
		files[uitest.MeetingFile] = uitest.MeetingScript
		s := newShip(t, files)
		put := func(name, text string) {
			file, err := os.OpenFile(filepath.Join(s.dir, "coder", name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			if _, err := file.WriteString(text); err != nil {
				t.Error(err)
			}
		}
		return uitest.Target{
			URL: s.url, Agent: "coder", Line: uitest.NewLine(t, s.url), Workflow: &uitest.Workflow{File: uitest.PlanCodeReviewFile}, Meeting: uitest.RealMeeting(),
			Says:   "hello from a real process",
			Say:    func(text string) { put("say", text) },
			Finish: func() { put("finish", "") },
		}
	})
}
