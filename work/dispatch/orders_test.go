package dispatch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// The configuration that the daemon has loaded decides, not the file: a change of fairlead.yaml has no
// effect on a dispatch before the daemon loads it.
func TestOrdersUseTheLoadedConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	write := func(description string) {
		text := "version: 1\nagents:\n  coder: {driver: exec, command: [coder], description: " + description +
			"}\n  lead: {driver: exec, command: [lead]}\ndispatch: {main: lead}\n"
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
	folder, err := o.StartDispatch(change.Actor{Kind: "human", ID: "ann"}, "orchestrator", "", "quay")
	if err != nil {
		t.Fatal(err)
	}
	is, err := folder.Session()
	if err != nil || is.Host != dispatch.Fairlead || is.Lead != "lead" || len(is.Agents) != 1 || is.Agents[0].Text != "writes programs" ||
		folder.Path() != filepath.Join(conf.Dir, "quay") {
		t.Errorf("%+v at %s, %v", is.Setup, folder.Path(), err)
	}
	f := Target{Name: "quay", Found: dispatchfolder.Found{Folder: folder.Folder, Session: is}}
	call := policy.Call{Tool: "Write", Input: json.RawMessage(`{"file_path":"a.py","content":"x"}`)}
	if verdict, _ := o.JudgeDispatch(f, "", call); verdict.Allow || verdict.Code != policy.DeniedMain {
		t.Errorf("MAIN may write a program: %+v", verdict)
	}
}

// MAIN and the ranking agent are no delegates, a description in fairlead.yaml counts before one in
// .claude/agents, and the notes name what cannot be started.
func TestDescribedAgents(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"boss": "x", "coder": "coffee", "writer": "w"} {
		file := filepath.Join(dir, ".claude/agents", name+".md")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("---\nname: "+name+"\ndescription: "+text+"\n---\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf := &config.Config{
		Dir: dir, File: "fairlead.yaml", Dispatch: config.Dispatch{Main: "boss", Ranker: "porter"},
		Agents: []config.Agent{
			{Name: "boss", Description: "b"}, {Name: "porter", Description: "p"}, {Name: "coder", Description: "codes"}, {Name: "mute"},
		},
	}
	o := Orders{conf: conf, home: home}
	begun, err := o.StartDispatch(change.Actor{Kind: "human"}, "", "", "quay")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range begun.Is.Agents {
		names = append(names, a.Name+"="+a.Text)
	}
	if !slices.Equal(names, []string{"coder=codes", "writer=w"}) || begun.Is.Host != dispatch.Fairlead {
		t.Errorf("the agents are %q, the host %q", names, begun.Is.Host)
	}
	if notes := begun.Notes; len(notes) != 1 || !strings.Contains(notes[0], "fails: writer; add them to fairlead.yaml") {
		t.Errorf("notes: %q", notes)
	}
	again, err := o.StartDispatch(change.Actor{Kind: "human"}, "", "none", "berth")
	if err != nil || len(again.Notes) != 1 || !strings.Contains(again.Notes[0], "already open") || again.Is.Host != dispatch.NoHost {
		t.Errorf("a second one: %q, %v", again.Notes, err)
	}
	if NewOrders(&config.Config{}).CanHost() || !o.CanHost() {
		t.Error("CanHost is true without agents, or false with a described agent")
	}
}

// An order from within the agent program that carries out the dispatch is refused.
func TestMayOrder(t *testing.T) {
	t.Parallel()
	for host, refused := range map[dispatch.Host]bool{dispatch.Claude: true, dispatch.Fairlead: false, dispatch.NoHost: false} {
		f := Target{Name: "quay"}
		f.Session.Host = host
		err := f.MayOrder("input", func() bool { return true })
		if (err != nil) != refused || f.MayOrder("input", func() bool { return false }) != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
