package task

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// What another host has written runs only in the sandbox, also if the agent's entry asks for none. The same command on files of this
// machine runs as the person does.
func TestCommandsOfAnotherHost(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Task, string){
		"checks": func(t *Task, line string) { t.Checks = []string{line} },
		"setup":  func(t *Task, line string) { t.Setup, t.Checks = []string{line}, []string{"true"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			outside := filepath.Join(w.repo, ".git", "outside")
			w.put(w.task.Tree, "build.sh", "echo x > "+outside+"\n")
			for _, from := range []string{"b", ""} {
				set(&w.task, "sh build.sh # "+from)
				w.task.From = from
				var out bytes.Buffer
				err := w.task.Check(t.Context(), &out)
				_, wrote := os.Stat(outside)
				switch no := (*Unconfined)(nil); {
				case from == "":
					if err != nil || wrote != nil {
						t.Errorf("on this machine: %v, %v\n%s", err, wrote, &out)
					}
				case wrote == nil || err == nil:
					t.Errorf("from host %s: it wrote outside of the folder, %v\n%s", from, err, &out)
				case sandbox.Abilities().By == sandbox.ByNothing &&
					(!errors.As(err, &no) || !strings.Contains(err.Error(), "remove `host` from its entry in fairlead.yaml")):
					t.Errorf("without a sandbox: %v", err)
				}
			}
			if sandbox.Abilities().By != sandbox.ByNothing {
				set(&w.task, "echo x > made && echo x > \"$TMPDIR/made\"")
				w.task.From = "b"
				w.must(w.task.Check(t.Context(), &bytes.Buffer{}))
			}
		})
	}
}
