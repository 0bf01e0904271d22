package team

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// line is a change as the journal stores it.
type line struct {
	Machine, Entity, Row, From, To, Trigger string
	Time                                    time.Time
	Actor                                   change.Actor
	Data                                    json.RawMessage
}

func (l *line) change(t *testing.T) change.Change {
	ch := change.Change{
		Machine: l.Machine, Entity: l.Entity, Row: l.Row, From: l.From, To: l.To, Trigger: l.Trigger, At: l.Time, Actor: l.Actor,
	}
	var err error
	if ch.Body, err = BodyOf(l.Data); err != nil {
		t.Fatal(err)
	}
	return ch
}

// X1: recorded changes and a snapshot of a team of agents. They are not renewed with the code, which must read them and write the same
// bytes: a difference is a new format, with a new number.
func TestRecordedJournal(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "recorded.changes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	replayed := New(identity)
	var touched Touched
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		ch := l.change(t)
		if again, _ := change.Encode(ch.Body); string(again) != string(l.Data) {
			t.Errorf("it is written differently now:\n%s\n%s", l.Data, again)
		}
		touched.Note(ch)
		replayed.Apply(ch)
	}
	snapshot, err := os.ReadFile(filepath.Join("testdata", "recorded.snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept := New(identity)
	if err := json.Unmarshal(snapshot, kept); err != nil {
		t.Fatal(err)
	}
	replayed.Render, kept.Render = nil, nil
	for _, a := range replayed.Agents {
		a.Days = nil // they are counted from the snapshot on, and no decision depends on them
	}
	if !reflect.DeepEqual(replayed, kept) {
		t.Errorf("the journal and the snapshot give different teams:\n%s", cmp.Diff(kept, replayed, cmpopts.IgnoreUnexported(Agent{})))
	}
	var want, got any // only the order of fields may differ
	now, _ := json.Marshal(replayed)
	if json.Unmarshal(snapshot, &want) != nil || json.Unmarshal(now, &got) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the snapshot differs now:\n%s", cmp.Diff(want, got))
	}
	if ev, ok := replayed.Next(&touched, machinetest.Noon); ok {
		t.Errorf("from a team without runs follows %+v", ev)
	}
}

// TestBodiesAreSpelledOut checks that each kind of change has its own field with a permanent name,
// so that new kinds do not affect old ones.
func TestBodiesAreSpelledOut(t *testing.T) {
	for want, body := range map[string]change.Body{
		`{"run":{"step":{"value":{"state":"PENDING"}}}}`: &workflow.Body{Step: &workflow.StepSet{Value: workflow.Value{State: workflow.Pending}}},
		`{"queue":{}}`: &QueueSet{},
		`{"queue":{"requests":[{"for":"run/r/a","n":2,"kind":"session","at":"2026-11-20T12:00:00Z"}]}}`: &QueueSet{Requests: []Request{{For: ForStep("r", "a"), N: 2, Kind: control.Work, At: machinetest.Noon}}},
		`{"note":{"settings":{"wrapped":true,"cost_per_day_usd":2,"at_limit":"pause"},"waived":"2026-11-20"}}`: &NoteSet{
			Settings: RunSettings{Wrapped: true, CostPerDayUSD: 2, AtLimit: LimitPauses}, Waived: "2026-11-20",
		},
		`{"left":{"status":"failed"}}`: &RunLeft{Status: workflow.IsFailed},
	} {
		got, err := change.Encode(body)
		if err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}

// TestCopy checks that changes to a copy do not affect the original.
func TestCopy(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada", "two !", "three ada")
	before, _ := json.Marshal(c.Team)
	other := &crewWorld{Team: c.Copy(), t: t, at: c.at}
	if again, _ := json.Marshal(other.Team); string(again) != string(before) {
		t.Error("a copy differs from the team")
	}
	other.does("r", "one", good, control.OK)
	other.does("r", "two", good, control.OK)
	other.must("", HoldAsked{})
	other.steps("r", "one:COMPLETED two:COMPLETED three:RUNNING")
	if after, _ := json.Marshal(c.Team); string(after) != string(before) {
		t.Error("a change of a copy affects the team")
	}
}

// SPEC X6: one line for each step that a change moves, with the agent of its plan.
func TestLines(t *testing.T) {
	moves := []workflow.Move{{Step: "a", From: workflow.Pending}, {Step: "b", From: workflow.Pending}}
	agentOf := func(run, step string) string { return map[string]string{"r a": "ada"}[run+" "+step] }
	for _, is := range []struct {
		ch   change.Change
		want string
	}{
		{
			change.Change{Entity: "control/ada", From: "resting", To: "run_once", Body: &control.Body{}},
			"control/ada|ada|resting|run_once",
		},
		{change.Change{Entity: "team/team", From: "open", To: "held", Body: &TeamSet{}}, "team/team||open|held"},
		{change.Change{Entity: poolEntity, From: "none", To: "none", Body: &QueueSet{}}, "team/pool||none|none"},
		{
			change.Change{Entity: "run/r", From: "absent", To: "driven", Body: &workflow.Body{Head: &workflow.Head{}}},
			"run/r||absent|driven",
		},
		{
			change.Change{Entity: "run/r/a", From: "PENDING", To: "RUNNING", Body: &workflow.Body{Step: &workflow.StepSet{}}},
			"run/r/a|ada|PENDING|RUNNING",
		},
		{change.Change{Entity: "run/r/b", From: "none", To: "opened", Body: &Session{}}, "run/r/b|b|none|opened"},
		{
			change.Change{Entity: "run/r", To: "SKIPPED", Body: &workflow.Body{Moved: &workflow.Moved{Moves: moves}}},
			"run/r/a|ada|PENDING|SKIPPED run/r/b|b|PENDING|SKIPPED",
		},
		{
			change.Change{Entity: "run/r", To: "PENDING", Body: &workflow.Body{Reset: &workflow.Reset{Moves: moves[:1]}}},
			"run/r/a|ada|PENDING|PENDING",
		},
	} {
		var words []string
		for _, l := range Transitions(is.ch, agentOf) {
			words = append(words, strings.Join([]string{l.Entity, l.Agent, l.From, l.To}, "|"))
		}
		if got := strings.Join(words, " "); got != is.want {
			t.Errorf("got %s, want %s", got, is.want)
		}
	}
	if l := Transitions(change.Change{Entity: "run/r/a", Body: &workflow.Body{}}, nil); l[0].Agent != "a" {
		t.Errorf("without a plan the agent is %q", l[0].Agent)
	}
}

// TestLinesOfAChannelNameNoAgent checks that the configuration of a channel causes no line of an
// agent, also if the channel has an agent's name.
func TestLinesOfAChannelNameNoAgent(t *testing.T) {
	if l := Transitions(change.Change{Entity: "channel/reviews", Machine: "team", From: "none", To: "configured"}, nil); len(l) != 1 ||
		l[0].Agent != "" {
		t.Errorf("the lines are %+v", l)
	}
	lead := change.Change{Entity: "crew/lead", Machine: "crew", Body: &crew.Body{Lead: &crew.Lead{Agent: "julian"}}}
	if l := Transitions(lead, nil); len(l) != 1 || l[0].Agent != "julian" {
		t.Errorf("a change of the lead is %+v", l)
	}
	if l := Transitions(change.Change{Entity: "crew/words", Machine: "crew", Body: &crew.Body{Words: &crew.Words{}}},
		nil); len(l) != 0 {
		t.Errorf("text must cause no line, but %+v", l)
	}
}
