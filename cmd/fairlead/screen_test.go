package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Every verb that is offered for a word of another program exists.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	root := (&app{(&cli.App{})}).root("")
	for word, here := range elsewhere {
		if cmd, _, err := root.Find([]string{word}); err == nil && cmd != root {
			t.Errorf("%q is a verb of ours", word)
		}
		for part := range strings.SplitSeq(here, "`fairlead ") {
			if cmd, _, err := root.Find(strings.Fields(strings.Trim(part, "`")[:strings.IndexAny(part+" ", "` ")])); err != nil ||
				cmd == root {
				t.Errorf("%q: there is no verb %q", word, part)
			}
		}
	}
}

// A table is cut where the terminal ends, and its columns stand by what is seen of them.
func TestTable(t *testing.T) {
	t.Parallel()
	view := view.TeamView{Agents: []view.AgentView{
		{
			Name: "coder", Status: view.StatusRunning, CurrentState: "continuous", DesiredState: "continuous",
			Note: strings.Repeat("long ", 40),
		},
		{Name: "t", Status: view.StatusIdle, CurrentState: "pause", DesiredState: "pause"},
	}}
	for width, want := range map[int]int{0: 151, 60: 60} {
		var out bytes.Buffer
		if err := agents.PrintTeam((&cli.App{Out: &out}), &out, view, width); err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(out.String(), "\n")
		if at := strings.Index(rows[0], "STATUS"); strings.Index(rows[1], "RUNNING") != at || strings.Index(rows[2], "IDLE") != at {
			t.Errorf("the badges do not stand below their head:\n%s", &out)
		}
		if n := len([]rune(rows[1])); n > want {
			t.Errorf("width %d: a row of %d characters:\n%s", width, n, &out)
		}
	}
}

// Each session of an agent with instances has a line, and the columns stay.
func TestTableOfInstances(t *testing.T) {
	t.Parallel()
	other := view.SessionView{ID: "coder-4", PID: 12, Slot: 1, Host: "b", Phase: "running", For: team.ForStep("T1", "work")}
	shown := view.TeamView{Agents: []view.AgentView{
		{
			Name: "coder", Status: view.StatusRunning, CurrentState: "pause", DesiredState: "pause", Sessions: []view.SessionView{other},
			Turn: map[string]string{"ops": "IDLE"},
		},
		{Name: "t", Status: view.StatusIdle, CurrentState: "pause", DesiredState: "pause"},
	}}
	var out bytes.Buffer
	if err := agents.PrintTeam((&cli.App{Out: &out}), &out, shown, 0); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(rows) != 4 {
		t.Fatalf("it has %d rows:\n%s", len(rows), &out)
	}
	for head, text := range map[string]string{"SESSION": "coder-4 on b", "PID": "12", "REMARKS": "does step work of run T1"} {
		if at := strings.Index(rows[0], head); at < 0 || strings.Index(rows[2], text) != at {
			t.Errorf("%s does not stand below %s:\n%s", text, head, &out)
		}
	}
	if at := strings.Index(rows[0], "STATUS"); strings.Index(rows[3], "IDLE") != at {
		t.Errorf("the next agent is not below:\n%s", &out)
	}
}

// A terminal that obeys no escape sequence is sent none.
func TestDumb(t *testing.T) {
	t.Setenv("TERM", "dumb")
	if !cli.Colourless() || (&cli.App{Out: &bytes.Buffer{}}).Screenful() {
		t.Error("TERM=dumb is drawn on")
	}
}

// Who has a process beside the badge IDLE is said to have it for something.
func TestBusyWith(t *testing.T) {
	t.Parallel()
	for what, want := range map[team.Purpose]string{
		team.ForControl: "", team.ForChannels: "takes part in its channels", team.ForLead: "leads its team",
		team.ForStep("f8c1", "build"): "does step build of run f8c1",
	} {
		agent := view.AgentView{Note: "no agent_state.json: created", Session: &view.SessionView{For: what}}
		if got := agents.Remarks(agent); got != want && (want != "" || got != agent.Note) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}
