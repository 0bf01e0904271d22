package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestCommandOfAHostsFiles runs a step's command in the files of a run: if another host may have written them only in the sandbox, and
// not at all without one.
func TestCommandOfAHostsFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, without string
		ran, wrote    bool
	}{
		"of this machine":                       {"", "", true, true},
		"of this machine, without a sandbox":    {"", "there is no sandbox here: old kernel", true, true},
		"of another host":                       {"b", "", true, false},
		"of another host, which has no sandbox": {"b", "there is no sandbox here: old kernel", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.from != "" && c.without == "" {
				inASandbox(t)
			}
			w := newWorld(t, "version: 1\nagents: {}\n", map[string]string{
				"work/build.sh": "touch ran; touch ../wrote; exit 0\n",
				"flow.yaml":     "name: build\nsteps:\n  - {id: build, command: [sh, build.sh]}\n",
			})
			<-w.engine.Loop.Ready()
			w.engine.Sessions.Boxed.Once.Do(func() { w.engine.Sessions.Boxed.Why = c.without })
			w.opened = func() {
				if err := w.engine.Loop.Notify(loop.Request{Look: func(t *team.Team) {
					note := t.Notes["r"]
					note.From = c.from
					t.Notes["r"] = note
				}}); err != nil {
					t.Error(err)
				}
			}
			y := &runWorld{App: w.engine, t: t, dir: w.dir}
			one := 1
			y.start(view.RunFlags{Workflow: "flow.yaml", RunID: "r", Workdir: filepath.Join(w.dir, "work"), MaxAttempts: &one})
			y.until("r", "it ends", over)
			_, noRan := os.Stat(filepath.Join(w.dir, "work", "ran"))
			_, noWrote := os.Stat(filepath.Join(w.dir, "wrote"))
			if (noRan == nil) != c.ran || (noWrote == nil) != c.wrote {
				t.Errorf("it ran: %v, it wrote outside: %v", noRan == nil, noWrote == nil)
			}
			shown, err := w.engine.Runs.RunByID(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if why := shown.Steps[0].LastError; !c.ran &&
				(!strings.Contains(why, "what host b has written runs on this machine only in the sandbox") || shown.Status != "failed") {
				t.Errorf("it is %s: %q", shown.Status, why)
			}
			if c.ran && shown.Status != "completed" {
				t.Errorf("it is %s: %+v", shown.Status, shown.Steps[0])
			}
		})
	}
}
