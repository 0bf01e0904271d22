package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
)

// The order of what needs a person: what holds up other work, then what waits for an answer, then what has to be
// known; within each, the longest wait.
func TestByNeed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	item := func(id, kind string, ago time.Duration, blocks ...string) InboxItem {
		return InboxItem{ID: id, Kind: kind, Since: noon.Add(-ago), Blocks: blocks}
	}
	for name, c := range map[string]struct {
		items []InboxItem
		want  string
	}{
		"nothing":          {nil, ""},
		"the longest wait": {[]InboxItem{item("b", "step", time.Minute), item("a", "permission", time.Hour)}, "a b"},
		"what holds up others": {
			[]InboxItem{item("old", "step", time.Hour), item("holds", "question", time.Second, "T4")},
			"holds old",
		},
		"a failure comes last": {[]InboxItem{
			item("agent", InboxFailed, time.Hour), item("run", InboxRun, 2*time.Hour),
			item("ask", "permission", time.Second),
		}, "ask run agent"},
		"a failure that holds up": {
			[]InboxItem{item("ask", "permission", time.Hour), item("run", InboxRun, time.Second, "T2")},
			"run ask",
		},
		"of two that began at once": {
			[]InboxItem{item("one", "step", time.Hour, "T1"), item("two", "step", time.Hour, "T2", "T3")},
			"two one",
		},
		"a limit is known, not answered": {
			[]InboxItem{item("limit", InboxLimit, time.Hour), item("ask", "resume", time.Second)},
			"ask limit",
		},
		"a branch is only to be known": {append(BranchItems([]Left{{Host: "c", Branch: "main", Since: noon.Add(-time.Hour)}}),
			item("ask", "resume", 0)), "ask branch/c/main"},
		"a limit stops agents": {
			[]InboxItem{item("ask", "resume", time.Hour), item("limit", InboxLimit, time.Second, "coder")},
			"limit ask",
		},
		"the same time: by name": {[]InboxItem{item("b", "step", 0), item("c", "step", 0), item("a", "step", 0)}, "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // the second time from the other end
				slices.Reverse(c.items)
				got := slices.Clone(c.items)
				ByNeed(got)
				var ids []string
				for _, one := range got {
					ids = append(ids, one.ID)
				}
				if all := strings.Join(ids, " "); all != c.want {
					t.Errorf("the order is %q, want %q", all, c.want)
				}
			}
		})
	}
}

// What waits for an item: tasks that come after it, and tasks that are queued for the agent that asks.
func TestBlocked(t *testing.T) {
	t.Parallel()
	task := func(id, status, agent string, after ...string) RunView {
		return RunView{ID: id, Task: &TaskView{ID: id, Status: status, Agent: agent, After: after}}
	}
	runs := []RunView{
		{ID: "r1"},
		task("T1", TaskNeedsYou, "coder"), task("T3", TaskBlocked, "ada", "T1"), task("T2", TaskBlocked, "ada", "T9", "T1"),
		task("T4", TaskDone, "ada", "T1"), task("T5", TaskQueued, "coder"),
	}
	for name, c := range map[string]struct {
		item InboxItem
		want string
	}{
		"tasks after it":            {InboxItem{Kind: InboxStepWaits, Run: "T1", Agent: "coder"}, "T2 T3"},
		"a run that is no task":     {InboxItem{Kind: InboxStepWaits, Run: "r1"}, ""},
		"an agent that asks":        {InboxItem{Kind: "permission", Agent: "coder", Question: &QuestionView{}}, "T5"},
		"an agent that asks for T1": {InboxItem{Kind: "permission", Agent: "coder", Run: "T1", Question: &QuestionView{}}, "T2 T3 T5"},
		"its own task":              {InboxItem{Kind: "permission", Agent: "coder", Run: "T5", Question: &QuestionView{}}, ""},
		"an agent that gave up":     {InboxItem{Kind: InboxFailed, Agent: "coder"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := []InboxItem{c.item}
			Blocked(items, runs)
			if got := strings.Join(items[0].Blocks, " "); got != c.want || items[0].Blocks == nil {
				t.Errorf("it blocks %q, want %q", got, c.want)
			}
		})
	}
}

// A limit of the team is one item with all agents that it stops; one of an agent is its own.
func TestLimitItems(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	limited := func(name string, over string, ofTeam bool, ago time.Duration) AgentView {
		return AgentView{
			Name: name, DesiredState: "pause", SetBy: control.ByFairlead, OverLimit: over, LimitOfTeam: ofTeam, IdleReason: IdleLimit,
			Timestamp: noon.Add(-ago),
		}
	}
	rests, works, gone := limited("rests", "x", false, 0), limited("works", "x", false, 0), limited("gone", "x", false, 0)
	rests.SetBy, works.IdleReason, gone.Removed = "human", "", true
	got := LimitItems([]AgentView{
		limited("a", "cost of the team", true, time.Minute), limited("b", "cost of b", false, 0),
		limited("c", "cost of the team", true, time.Hour), rests, works, gone,
	})
	if len(got) != 2 || got[0].ID != "limit/team" || strings.Join(got[0].Blocks, " ") != "a c" ||
		!got[0].Since.Equal(noon.Add(-time.Hour)) ||
		got[1].ID != "limit/agent/b" || strings.Join(got[1].Blocks, " ") != "b" {
		t.Errorf("%+v", got)
	}
}
