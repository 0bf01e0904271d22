package uitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// someAgents are the agents of a dispatch by name, with their descriptions.
var someAgents = map[string]string{
	"fullstack-engineer":          "Use to write and run programs, Python scripts and web servers",
	"juvenile-database-architect": "Use for database design, query optimization, and migrations",
	"tech-writer":                 "Use for manuals, glossaries and release notes",
}

// DispatchByHand is the real server with a dispatch of host `none`: the test reports what happens,
// as people and hooks do, and writes into the folder as other programs do.
type DispatchByHand struct {
	*Server
	Proxy  *Proxy
	Name   string
	folder *dispatchfolder.Folder
}

// NewDispatchByHand starts a dispatch with three agents.
func NewDispatchByHand(t testing.TB) *DispatchByHand {
	t.Helper()
	files := map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coordinator: {driver: exec, command: [\"true\"]}\n"}
	for name, text := range someAgents {
		files[".claude/agents/"+name+".md"] = fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n", name, text)
	}
	s := NewServer(t, files)
	d := &DispatchByHand{Server: s, Proxy: s.Intercept()}
	s.Do("POST", "/dispatch", strings.NewReader(`{"host":"none"}`))
	var err error
	if d.folder, err = dispatchfolder.Current(s.Dir); err != nil || d.folder == nil {
		t.Fatalf("no dispatch has begun: %v", err)
	}
	d.Name = d.folder.Name()
	return d
}

// post sends a request about the dispatch to the API.
func (d *DispatchByHand) post(verb string, body map[string]any) {
	d.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Do("POST", "/dispatch/"+d.Name+"/"+verb, strings.NewReader(string(text)))
}

// report writes an event into the folder, as a hook does.
func (d *DispatchByHand) report(in dispatch.Input) {
	d.t.Helper()
	if _, _, err := d.folder.Do(time.Now(), change.Actor{Kind: "agent", ID: "main"}, in); err != nil {
		d.t.Fatal(err)
	}
}

// Input adds an input as another program does.
func (d *DispatchByHand) Input(text string) { d.post("input", map[string]any{"text": text}) }

// Delegate puts an agent in charge.
func (d *DispatchByHand) Delegate(agent, task string) {
	d.post("delegate", map[string]any{"agent": agent, "text": task})
}

// Done ends the task of the agent in charge.
func (d *DispatchByHand) Done(result string) { d.post("done", map[string]any{"text": result}) }

// Respond closes the conversation.
func (d *DispatchByHand) Respond(text string) { d.post("respond", map[string]any{"text": text}) }

// Deny records a denied write of MAIN.
func (d *DispatchByHand) Deny(delegate string) {
	d.report(dispatch.Deny{
		Tool: "Write", Call: "hello_world.py", Row: "D8", Reason: "This requires writing *.py, which MAIN cannot do.",
		Delegate: delegate, Capability: "write Python",
	})
}

// Made creates a file among the outputs of the open conversation.
func (d *DispatchByHand) Made(name, text string) {
	d.t.Helper()
	now, err := d.folder.Session()
	if err != nil || now.Open == nil {
		d.t.Fatalf("no conversation is open: %v", err)
	}
	at := filepath.Join(d.folder.Workspace(now.Open.N), name)
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.report(dispatch.Wrote{File: dispatch.File{Path: at}})
}

// Foreign appends a line that matches no rule, as another program does.
func (d *DispatchByHand) Foreign(trigger string) {
	d.t.Helper()
	now, err := d.folder.Session()
	if err != nil {
		d.t.Fatal(err)
	}
	line, err := json.Marshal(map[string]string{
		"timestamp": time.Now().Format("2006-01-02T15:04:05"), "type": "dance",
		"state": now.State(), "trigger": trigger,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(d.folder.Path(), "state.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		d.t.Fatal(err)
	}
}

// Edit changes every later answer that shows the dispatch.
func (d *DispatchByHand) Edit(change func(*api.DispatchView)) {
	editAs(d.Proxy, "/dispatch/"+d.Name, change)
}

// EditDialogue changes every later answer that shows its first conversation.
func (d *DispatchByHand) EditDialogue(change func(*api.DispatchDialogue)) {
	editAs(d.Proxy, "/dispatch/"+d.Name+"/conversations/1", change)
}

// editAs is Proxy.Edit for an answer with a type.
func editAs[T any](p *Proxy, path string, change func(*T)) {
	p.Edit(path, func(body map[string]any) {
		changed := changedAs(body, change)
		clear(body)
		maps.Copy(body, changed)
	})
}

// changedAs returns the fields that a type has of a JSON object, after a change.
func changedAs[T any](object map[string]any, change func(*T)) (changed map[string]any) {
	var of T
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	change(&of)
	if err == nil {
		text, err = json.Marshal(of)
	}
	if err == nil {
		err = json.Unmarshal(text, &changed)
	}
	if err != nil {
		panic(fmt.Sprintf("uitest: change a %T: %v", of, err))
	}
	return changed
}

// RealDispatchByHand is the target of scenarios in which a test decides what happens in a dispatch.
func RealDispatchByHand(t *testing.T) Target {
	t.Helper()
	d := NewDispatchByHand(t)
	const agent = "fullstack-engineer"
	return Target{URL: d.URL, Agent: "coordinator", Line: NewLine(t, d.URL), DispatchStory: &DispatchStory{
		Name: d.Name, Input: "Please write it down", Agent: agent, File: "hello_world.py", Text: "Hello, World!",
		Deny:     func() { d.Deny(agent) },
		Delegate: func() { d.Delegate(agent, "Create hello_world.py") },
		Made:     func() { d.Made("hello_world.py", "print(\"Hello, World!\")\n") },
		MadeOf:   func(text string) { d.Made("made.txt", text) },
		Done:     func() { d.Done("It is written.") },
		Respond:  func() { d.Respond("There you are.") },
		Other:    d.Input,
		Foreign:  d.Foreign,
		Refuse: func() string {
			const reason = "64 inputs wait already"
			d.Proxy.Refuse("POST", "/dispatch/"+d.Name+"/input", reason)
			return reason
		},
		Edit: d.Edit, EditDialogue: d.EditDialogue,
	}}
}
