package dispatch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

// The configuration that the daemon has loaded decides, not the file: a change of fairlead.yaml has no
// effect on a dispatch before the daemon loads it.
func TestOrdersUseTheLoadedConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	write := func(description string) {
		text := "version: 1\nagents:\n  coder: {driver: exec, command: [coder], description: " + description + "}\n  lead: {driver: exec, command: [lead]}\ndispatch: {main: lead}\n"
		if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("writes programs")
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	write("another text")
	o := NewOrders(conf)
	folder, err := o.StartDispatch(seam.Actor{Kind: "human", ID: "ann"}, "orchestrator", "", "quay")
	if err != nil {
		t.Fatal(err)
	}
	is, err := folder.Session()
	if err != nil || is.Host != dispatch.Fairlead || is.Lead != "lead" || len(is.Agents) != 1 || is.Agents[0].Text != "writes programs" || folder.Path() != filepath.Join(conf.Dir, "quay") {
		t.Errorf("%+v at %s, %v", is.Setup, folder.Path(), err)
	}
	f := Target{Name: "quay", Found: dispatchfolder.Found{Folder: folder, Session: is}}
	call := policy.Call{Tool: "Write", Input: json.RawMessage(`{"file_path":"a.py","content":"x"}`)}
	if verdict, _ := o.JudgeDispatch(f, "", call); verdict.Allow || verdict.Code != policy.DeniedMain {
		t.Errorf("MAIN may write a program: %+v", verdict)
	}
}
