package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// caused is how an event comes about: the job that a task has, where it goes on, and the input.
type caused struct {
	job     Job
	task    Task // what else is to be so
	outcome Outcome
	in      Input // nil: the job ends with the outcome
}

var causes = map[Event]caused{
	Given:        {in: Begin{Plan: Plan{RoundsMax: 3}}},
	GivenBlocked: {in: Begin{Plan: Plan{RoundsMax: 3}, Blocked: true}},
	Unblocked:    {in: Free{}},
	Prepared:     {job: Prepare, outcome: OK, task: Task{Plan: Plan{Made: true}}}, // in a later round its agent is next
	PreparedMade: {job: Prepare, outcome: OK, task: Task{Plan: Plan{Made: true}, Value: Value{Round: 1}}},
	WorkBegan:    {job: Work, in: JobBegan{N: 5}},
	WorkEnded:    {job: Work, outcome: OK},
	Checked:      {job: Checks, outcome: OK},
	CheckedFirst: {job: Checks, outcome: OK, task: Task{Plan: Plan{Reviewer: true}}},
	CheckFailed:  {job: Checks, outcome: Back},
	Reviewed:     {job: Reviews, outcome: OK},
	Found:        {job: Reviews, outcome: Back},
	ShownNow:     {job: Show, outcome: OK},
	ShownBefore:  {job: Show, outcome: Known},
	JobFailed:    {outcome: Fails},
	OftenBack:    {outcome: Back, task: Task{Value: Value{Counted: 3}}},
	Asks:         {job: Work, in: Question{Open: true}},
	AsksNoMore:   {job: Work, in: Question{}},
	Approved:     {job: Approve, in: Answer{N: 5, By: "human/bob", Governing: "new hash", Why: "yes"}},
	Requested:    {job: Approve, in: Answer{N: 5, By: "human/bob", Sent: true, Why: "new why"}},
	Landed:       {job: Land, outcome: OK},
	AsksAgain:    {job: Land, outcome: Again},
	NeedsRoom:    {job: Land, outcome: Room},
	NeedsChecks:  {job: Land, outcome: Recheck},
	MergeChecked: {job: Merged, outcome: OK},
	MergeFailed:  {job: Merged, outcome: Back},
	Tried:        {in: Try{}},
	PullOpened:   {job: Land, outcome: Opened},
	PullReturned: {job: Land, outcome: Back},
	PullClosed:   {job: Land, outcome: Closed},
	Undone:       {in: Undo{Why: "new why"}},
	DroppedNow:   {in: Drop{Why: "new why"}},
	ToPrepare:    {in: Resume{Why: "new why"}, task: Task{Value: Value{At: Prepare}}},
	ToWork:       {in: Resume{Why: "new why"}, task: Task{Value: Value{At: Work}}},
	ToCheck:      {in: Resume{Why: "new why"}, task: Task{Value: Value{At: Checks}}},
	ToReview:     {in: Resume{Why: "new why"}, task: Task{Value: Value{At: Reviews}}},
	ToShow:       {in: Resume{Why: "new why"}, task: Task{Value: Value{At: Land}}},
	ToAnswer:     {in: Resume{Why: "new why"}, task: Task{Value: Value{At: Approve}}},
	ToWaits:      {in: Resume{Why: "new why"}, task: Task{Value: Value{Was: Blocked}}},
}

// usual are the jobs of a task that has a state, where the event does not say which.
var usual = map[Status]Job{
	Queued: Prepare, Working: Work, Checking: Checks, Review: Reviews, NeedsYou: Work, Landing: Land, PROpen: Land,
}

// TestEveryRule compares what each rule changes of a task in which every field has a value.
func TestEveryRule(t *testing.T) {
	var out strings.Builder
	for _, row := range Table.Rows() {
		c, known := causes[Event(row.On)]
		if !known {
			t.Fatalf("%s has no cause", row.On)
		}
		k := filled(Status(row.From), Event(row.On), c)
		before := fields(t, k)
		in := c.in
		if row.From == string(Dropped) && row.On == string(NeedsRoom) {
			in = Resume{Why: "new why"}
		}
		if in == nil {
			in = JobEnded{
				N: k.N, Outcome: c.outcome, Why: "new why", Landed: "new commit",
				Shown:   Shown{Asked: Asked{Tree: "new tree"}, Files: 2, Governs: Governs{Hash: "new hash"}},
				Failure: Failure{Kind: FailedConflict, Files: []string{"new"}, Lines: 4, Check: "new check"},
			}
		}
		changes, err := k.Decide("T1", machinetest.Noon, ann, in)
		if err != nil || len(changes) != 1 || changes[0].Trigger != row.On || changes[0].Row != row.ID {
			t.Fatalf("%s in %s: %+v, %v", row.On, row.From, changes, err)
		}
		k.Apply(changes[0])
		after := fields(t, k)
		fmt.Fprintf(&out, "%s %s: %s -> %s\n", row.ID, row.From, row.On, row.To)
		for _, name := range slices.Sorted(maps.Keys(merged(before, after))) {
			if before[name] != after[name] {
				fmt.Fprintf(&out, "    %-10s %s -> %s\n", name, before[name], after[name])
			}
		}
	}
	golden.Check(t, filepath.Join("testdata", "rules.txt"), out.String())
}

// filled is a task in a state, of which every field has a value that no rule makes.
func filled(status Status, on Event, c caused) *Task {
	if status == Absent {
		return &Task{}
	}
	k := &Task{Plan: c.task.Plan, Value: Value{
		Status: status, Job: c.job, N: 5, Round: 2, Counted: 1, Why: "old why", At: c.task.At, Was: c.task.Was, Landed: "old commit",
		Said: "old words", Since: machinetest.Noon.Add(-time.Hour),
		Shown:   Shown{Asked: Asked{Tree: "old tree"}, Files: 1},
		Yes:     Yes{By: "human/ann", Governing: "old hash", At: machinetest.Noon.Add(-time.Hour)},
		Failure: Failure{Kind: FailedDirty, Files: []string{"old"}},
	}}
	k.RoundsMax = 3
	if c.task.Round > 0 {
		k.Round = c.task.Round
	}
	if c.task.Counted > 0 {
		k.Counted = c.task.Counted
	}
	switch {
	case status == Done, status == Failed, status == Dropped, status == Blocked:
		if on == NeedsRoom {
			k.Was = NeedsYou
		}
	case k.Job == Nothing && on != Tried && on != ToShow && on != ToCheck:
		k.Job = usual[status]
	}
	return k
}

// fields are the fields of a task as text.
func fields(t *testing.T, k *Task) map[string]string {
	t.Helper()
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(encode(t, k)), &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, text := range raw {
		all[name] = string(text)
	}
	return all
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// What the journal keeps of texts and lists has a limit.
func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 3*textKeptMax)
	many := slices.Repeat([]string{long}, namesKept+3)
	text, most := len(long)/3+len("…"), namesKept+1
	check := func(k *Task, lists [][]string, texts ...string) {
		t.Helper()
		for i, list := range lists {
			if len(list) != most || len(list[0]) > text || list[most-1] != "and 3 more" {
				t.Errorf("list %d has %d entries", i, len(list))
			}
		}
		for i, s := range texts {
			if len(s) > text || len(s) < textKeptMax/2 {
				t.Errorf("text %d has %d bytes", i, len(s))
			}
		}
	}
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}})
	next(t, k, OK, OK)
	story(t, k, JobEnded{N: k.N, Outcome: Back, Why: long})
	next(t, k, OK, OK)
	shown := Shown{Asked: Asked{Tree: "tree"}, Told: many, Lines: many, Governs: Governs{Files: many}}
	story(t, k, JobEnded{N: k.N, Outcome: OK, Shown: shown})
	check(k, [][]string{k.Shown.Told, k.Shown.Lines, k.Shown.Governs.Files}, k.Rounds[0].Why)
	story(t, k, Answer{N: k.N, By: "human/ann"})
	story(t, k, JobEnded{N: k.N, Outcome: Room, Why: long, Failure: Failure{Kind: FailedDirty, Files: many, Check: long}})
	check(k, [][]string{k.Failure.Files}, k.Why, k.Failure.Check)
	story(t, k, Try{}, JobEnded{N: k.N + 1, Outcome: OK, Landed: "c1", Why: long})
	check(k, nil, k.Said)
}

// Rules about numbers, jobs and lists that the table does not show.
func TestLate(t *testing.T) {
	is := func(k *Task, status Status, in Input) {
		t.Helper()
		before := encode(t, k)
		if err := give(t, k, machinetest.Noon, in); err != nil || encode(t, k) != before || k.Status != status {
			t.Fatalf("%T: %v, %+v", in, err, k.Value)
		}
	}
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}})
	is(k, Queued, Free{})
	is(k, Queued, JobBegan{N: k.N}) // of prepare
	is(k, Queued, Question{Open: true})
	is(k, Queued, Question{})
	next(t, k, OK)
	is(k, Queued, JobBegan{N: k.N - 1})
	is(k, Queued, Question{})
	story(t, k, JobBegan{N: k.N})
	is(k, Working, JobBegan{N: k.N})
	is(k, Working, JobEnded{N: k.N - 1, Outcome: OK})
	story(t, k, Question{Open: true})
	is(k, NeedsYou, Question{Open: true})
	is(k, NeedsYou, Answer{N: k.N})
	next(t, k, OK, OK, OK)
	is(k, NeedsYou, Answer{N: k.N - 1})
	is(k, NeedsYou, Question{})
	story(t, k, Answer{N: k.N, By: "human/ann"}, JobEnded{N: k.N + 1, Outcome: Room})
	is(k, NeedsYou, JobEnded{N: k.N, Outcome: OK}) // it has no job
	story(t, k, Drop{Why: "one"})
	is(k, Dropped, Drop{Why: "two"})
	if !k.Over() || k.NeedsHelp() || k.Open() {
		t.Error("a dropped task is over")
	}
	k = &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 99}})
	next(t, k, OK)
	for range roundsKept + 5 {
		next(t, k, OK, Back)
	}
	if len(k.Rounds) != roundsKept || k.Rounds[0].N != 6 || k.Round != roundsKept+6 {
		t.Errorf("%d rounds, the first is %d, now it is %d", len(k.Rounds), k.Rounds[0].N, k.Round)
	}
	kept := k.Rounds
	shared := Task{Value: k.Value, Plan: k.Plan, Rounds: kept}
	next(t, &shared, OK, Back)
	if kept[0].N != 6 || kept[roundsKept-1].N != roundsKept+5 {
		t.Error("an earlier value has changed")
	}
	next(t, k, Fails)
	if !k.Over() || !k.NeedsHelp() {
		t.Error("a failed task needs help")
	}
}
