package notify

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

func TestMain(m *testing.M) {
	Intercept() // the tests' program sends, as fairlead does
	os.Exit(leaktest.Main(m))
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// asked is a message about a question, the nth of its kind.
func asked(n int) Message {
	return Message{Base: "http://127.0.0.1:7466/", Listed: []notice.Notice{{
		Event: notice.NeedsYou, Kind: "step", Run: "r1", Step: fmt.Sprint("s", n), Workflow: "release", Why: "step s waits for an answer",
		Since: noon.Add(time.Duration(n) * time.Second), Path: "/repo/.agents/runs/r1/manual_inputs/r1__s.json",
		Page: fmt.Sprint("#/runs/r1/s", n),
	}}}
}

// What a person reads for each event, and where the link leads.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		m           notice.Notice
		title, body string
	}{
		{
			notice.Notice{Event: notice.NeedsYou, Agent: "coder", Why: "coder asks", Page: "#/inbox/q1"},
			"Fairlead: coder waits for you",
			"coder asks\nhttp://h/#/inbox/q1",
		},
		{notice.Notice{
			Event: notice.NeedsYou, Run: "T1", Workflow: "task", Title: "Add <retries>", Why: "task T1 waits",
			Page: "#/tasks/T1",
		}, "Fairlead: task T1 waits for you", "task T1 waits: Add ‹retries›\nhttp://h/#/tasks/T1"},
		{
			notice.Notice{Event: notice.StillNeedsYou, Workflow: "release", Run: "r1", Why: "w"},
			"Fairlead: release still waits for you",
			"w\nhttp://h/",
		},
		{notice.Notice{Event: notice.GaveUp, Agent: "coder", Why: "w"}, "Fairlead: coder gave up", "w\nhttp://h/"},
		{notice.Notice{Event: notice.RunFailed, Run: "r1", Workflow: "release", Why: "w"}, "Fairlead: run r1 failed", "w\nhttp://h/"},
		{notice.Notice{Event: notice.TaskFailed, Run: "T1", Title: "x", Why: "w"}, "Fairlead: task T1 failed", "w: x\nhttp://h/"},
		{notice.Notice{Event: notice.LimitReached, Why: "w"}, "Fairlead: the team reached a limit", "w\nhttp://h/"},
		{notice.Notice{Event: notice.Finished, Run: "T1", Title: "x", Why: "w"}, "Fairlead: task T1 is done", "w: x\nhttp://h/"},
		{notice.Notice{Event: notice.Test, Why: "w"}, "Fairlead: test notice", "w\nhttp://h/"},
	} {
		m := Message{Listed: []notice.Notice{c.m}, Base: "http://h/"}
		if m.title() != c.title || m.body() != c.body {
			t.Errorf("%s: %q\n%q", c.m.Event, m.title(), m.body())
		}
	}
}

// A message with many notices lists what fits and counts the rest.
func TestManyMatters(t *testing.T) {
	m := Message{Base: "http://h/", More: 7}
	for n := range 10 {
		m.Listed = append(m.Listed, notice.Notice{Event: notice.GaveUp, Agent: fmt.Sprint("a", n), Why: "it failed", Page: "#/agents/a"})
	}
	if body := m.body(); m.title() != "Fairlead: 17 notices" || strings.Count(body, "• a") != 10 ||
		!strings.HasSuffix(body, "\nand 7 more: http://h/#/inbox") {
		t.Errorf("%q:\n%s", m.title(), body)
	}
	for n := range m.Listed {
		m.Listed[n].Why = strings.Repeat("ä", 1000)
	}
	if body := m.body(); len(body) > bodyMax+100 || strings.Count(body, "• a") != 2 ||
		!strings.HasSuffix(body, "\nand 15 more: http://h/#/inbox") {
		t.Errorf("%d bytes:\n%s", len(body), body)
	}
}
