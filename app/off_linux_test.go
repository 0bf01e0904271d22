package app

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestOffIsOff checks that an agent without a wall runs in the namespaces of this process, and is allowed to write beside its
// workspace, also in a folder of settings; its twin with a wall has namespaces of its own.
func TestOffIsOff(t *testing.T) {
	if a := sandbox.Abilities(); a.By != sandbox.ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	const say = `ls -l /proc/self/ns > ../said; readlink /proc/self/ns/mnt > said`
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	for word, off := range map[string]bool{"off": true, "workspace": false} {
		for _, folder := range []string{"coder", ".vscode/inner"} {
			w := newWorld(t, `
version: 1
agents:
  coder: {workspace: `+folder+`, failures_max: 1, command: [sh, -c, "`+say+`"], sandbox: `+word+`}
`, nil)
			w.command("coder", "run_once")
			w.until("coder", "its session is over", func(v view.AgentView) bool { return v.Session == nil && len(w.sessions()) > 0 })
			text, err := os.ReadFile(w.path(folder + "/said"))
			if err != nil || (strings.TrimSpace(string(text)) == own) != off {
				t.Errorf("%s in %s: its mounts are %q (%v), and here they are %s", word, folder, text, err, own)
			}
			if _, err := os.Stat(w.path(folder + "/../said")); (err == nil) != off {
				t.Errorf("%s in %s: writing beside its workspace: %v", word, folder, err)
			}
		}
	}
}
