package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

var coverage = machinetest.NewCoverage()

// TestMain also fails if no test used some row of the table.
func TestMain(m *testing.M) {
	coverage.Main(m, machinetest.Numbered("K", 15), machinetest.Table{Rows: Table.Rows()})
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix())
}

// doc/tasks.md has a row for each state and each rule.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "doc", "tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, life, _ := strings.Cut(string(page), "\n### Its status\n")
	life, _, _ = strings.Cut(life, "\n## ")
	rows := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `?([a-z_]+|K[0-9]+)`? \\|").FindAllStringSubmatch(life, -1) {
		rows[m[1]]++
	}
	want := map[string]int{"status": 1, "rule": 1} // the heads
	for _, row := range Table.Rows() {
		want[row.ID], want[row.To] = 1, 1
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("doc/tasks.md, Its status: %s", diff)
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var ann = change.Actor{Kind: "human", ID: "ann"}

// give decides an input, checks the change and what must always hold, and applies it.
func give(t testing.TB, k *Task, at time.Time, in Input) error {
	t.Helper()
	before := encode(t, k)
	was := *k
	changes, err := k.Decide("T1", at, ann, in)
	if encode(t, k) != before {
		t.Fatalf("%T: Decide changed the task", in)
	}
	if err != nil {
		if len(changes) > 0 || !errors.As(err, new(*table.Refusal)) {
			t.Fatalf("%T: %v", in, err)
		}
		return err
	}
	for _, ch := range changes {
		rule, known := Table[Status(ch.From)][Event(ch.Trigger)]
		if !known || rule.ID != ch.Row || string(rule.To) != ch.To {
			t.Fatalf("not a row of the table: %+v", ch)
		}
		coverage.Row(ch.Row)
		coverage.Pair("", ch.From, ch.Trigger)
		data, err := change.Encode(ch.Body)
		if err != nil {
			t.Fatal(err)
		}
		read, err := change.Bodies{&Body{}}.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		ch.Body = read
		k.Apply(ch)
	}
	holds(t, &was, k, in)
	return nil
}

// holds checks what is always true.
func holds(t testing.TB, was, k *Task, in Input) {
	t.Helper()
	wants := map[Status][]Job{
		Blocked: {Nothing}, Queued: {Prepare, Work}, Working: {Work}, Checking: {Checks, Show}, Review: {Reviews},
		NeedsYou: {Work, Approve, Nothing}, Landing: {Land, Merged}, PROpen: {Land}, Done: {Nothing}, Failed: {Nothing}, Dropped: {Nothing},
	}
	is := false
	for _, job := range wants[k.Status] {
		is = is || job == k.Job
	}
	switch {
	case !is:
		t.Fatalf("%T: %s with the job %q", in, k.Status, k.Job)
	case k.N < was.N || k.Round < was.Round:
		t.Fatalf("%T: a number went back", in)
	case k.Status == Landing && was.Status != Landing && !permitted(was, k, in):
		t.Fatalf("%T: it lands without an approval of what was shown: %+v", in, k.Value)
	case k.Status == Done && was.Status != Done && was.Job != Land:
		t.Fatalf("%T: done without a landing", in)
	case k.Landed != "" && k.Status != Done:
		t.Fatalf("%T: landed, and %s", in, k.Status)
	case k.Status == Landing && k.Shown.Tree == "":
		t.Fatalf("%T: it lands, and nothing was shown", in)
	case k.Counted > k.RoundsMax:
		t.Fatalf("%T: sent back %d times", in, k.Counted)
	case len(k.Rounds) > roundsKept:
		t.Fatalf("%d rounds", len(k.Rounds))
	}
}

// permitted reports whether a task may begin to land: a person has approved what it shows, or makes room after that, or its pull
// request is published already.
func permitted(was, k *Task, in Input) bool {
	switch in := in.(type) {
	case Answer:
		return was.Job == Approve && !in.Sent && k.Yes.By == in.By && cmp.Equal(k.Shown, was.Shown)
	case Try:
		return was.Status == NeedsYou && was.Job == Nothing && cmp.Equal(k.Shown, was.Shown)
	case JobEnded:
		return was.Job == Show && in.Outcome == Known
	default:
		return false
	}
}

// story plays inputs in order, and fails at a refusal.
func story(t *testing.T, k *Task, all ...Input) {
	t.Helper()
	for i, in := range all {
		if err := give(t, k, machinetest.Noon.Add(time.Duration(i)*time.Second), in); err != nil {
			t.Fatalf("%d, %T: %v", i, in, err)
		}
	}
}

func ended(k *Task, outcome Outcome) JobEnded {
	return JobEnded{N: k.N, Outcome: outcome, Why: "why", Shown: Shown{Asked: Asked{Tree: fmt.Sprint("tree", k.Round)}, Files: 1}}
}

// next ends the job that a task has.
func next(t *testing.T, k *Task, outcomes ...Outcome) {
	t.Helper()
	for _, o := range outcomes {
		story(t, k, ended(k, o))
	}
}

// A task is prepared, worked on, checked, shown, approved and landed. Results of earlier jobs have no effect.
func TestOneTask(t *testing.T) {
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}})
	next(t, k, OK)
	story(t, k, JobBegan{N: k.N})
	late := ended(k, OK)
	next(t, k, OK, Back, OK, OK, OK)
	story(t, k, late)
	if k.Status != NeedsYou || !k.Open() || k.Round != 2 || len(k.Rounds) != 1 || k.Rounds[0].By != Checks || k.Shown.Tree != "tree2" {
		t.Fatalf("%+v", k)
	}
	story(t, k, Answer{N: k.N - 1, By: "human/ann"}) // of another question
	if k.Status != NeedsYou {
		t.Fatal("an old answer counts")
	}
	story(t, k, Answer{N: k.N, By: "human/ann", Governing: "hash"})
	next(t, k, Recheck, OK)
	story(t, k, JobEnded{N: k.N, Outcome: OK, Landed: "c1", Why: "said"})
	if k.Status != Done || k.Landed != "c1" || k.Yes.Governing != "hash" || k.Said != "said" {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Undo{Why: "undone"}, ended(k, OK))
	if next(t, k, OK); k.Status != NeedsYou || k.Landed != "" || k.Why != "undone" {
		t.Fatalf("%+v", k.Value)
	}
}

// What sends a task back counts until a person sends it back. Then it has failed, and goes on where it failed.
func TestSentBack(t *testing.T) {
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2, Reviewer: true}})
	next(t, k, OK, OK, Back, OK, OK, Back, OK, OK, OK, OK)
	story(t, k, Answer{N: k.N, By: "human/ann", Sent: true, Why: "no"})
	if k.Round != 4 || k.Counted != 0 || k.Rounds[2].By != Approve || k.Rounds[2].Why != "no" {
		t.Fatalf("%+v", k)
	}
	next(t, k, OK, Back, OK, Back, OK, Back)
	if k.Status != Failed || k.At != Checks {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Resume{})
	if next(t, k, OK, Back); k.Status != Failed || k.At != Reviews || k.FailedAt() != Reviews {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Resume{Job: Checks})
	for job, status := range map[Job]Status{
		Prepare: Queued, Work: Working, Reviews: Review, Show: Checking, Approve: Checking, Land: Checking, Merged: Checking,
	} {
		next(t, k, Fails)
		story(t, k, Resume{Job: job})
		if k.Status != status {
			t.Errorf("%s: %+v", job, k.Value)
		}
	}
	next(t, k, Fails)
	story(t, k, Resume{Job: Show})
	next(t, k, OK, Fails) // it cannot be asked about
	other := Task{Plan: k.Plan, Value: k.Value}
	if story(t, &other, Resume{Job: Checks}); other.Job != Checks {
		t.Fatalf("%+v", other.Value)
	}
	if story(t, k, Resume{}); k.Status != NeedsYou || !k.Open() {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Answer{N: k.N, By: "human/ann", Sent: true})
	next(t, k, OK, OK, Back, OK, OK, Back, OK, OK, Back)
	if k.Status != Failed || k.At != Reviews || k.Counted != 2 {
		t.Fatalf("%+v", k.Value)
	}
}

// A landing that did not land is shown again, or waits for room, or is tried again.
func TestNotLanded(t *testing.T) {
	approved := func() *Task {
		k := &Task{}
		story(t, k, Begin{Plan: Plan{RoundsMax: 2, Made: true}, Blocked: true}, Free{})
		next(t, k, OK, OK, OK)
		story(t, k, Answer{N: k.N, By: "human/ann"})
		return k
	}
	failure := Failure{Kind: FailedConflict, Files: []string{"a"}, Lines: 3}
	k := approved()
	story(t, k, JobEnded{N: k.N, Outcome: Again, Failure: failure, Why: "conflict"})
	next(t, k, OK)
	if k.Status != NeedsYou || !k.Open() || k.Failure.Sentence("main") != "did not land: conflicts with main in a (3 lines)" {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Resume{Job: Checks, Why: "by hand"})
	if next(t, k, OK, OK); k.Status != NeedsYou || k.Why != "by hand" || k.Failure.Kind != "" {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Resume{Job: Checks, Why: "by hand"})
	if next(t, k, Back, OK, OK, OK); k.Status != NeedsYou || k.Why != "" { // its agent has worked since
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Resume{Job: Show})
	if k.Job != Show {
		t.Fatalf("%+v", k.Value)
	}
	if k = approved(); k.Yes.By != "human/ann" {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, JobEnded{N: k.N, Outcome: Room, Failure: Failure{Kind: FailedDirty}, Why: "dirty"})
	if k.Status != NeedsYou || k.Open() || !k.NeedsHelp() {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Drop{Why: "no"}, Resume{})
	if !k.NeedsHelp() || k.Status != NeedsYou {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Try{})
	if k.Status != Landing || k.Failure.Kind != "" {
		t.Fatalf("%+v", k.Value)
	}
	next(t, k, Recheck, Back, OK)
	if k.Status != NeedsYou || !k.Open() || k.Why != "why" {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Answer{N: k.N, By: "human/ann"}, Drop{}, Resume{})
	if k.Job != Show { // dropping it took the approval back
		t.Fatalf("%+v", k.Value)
	}
}

// A pull request waits, comes back, and is merged or closed.
func TestPullRequest(t *testing.T) {
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}})
	next(t, k, OK, OK, OK, OK)
	story(t, k, Answer{N: k.N, By: "human/ann"})
	next(t, k, Opened, Back, OK, OK, Known, Opened)
	if k.Status != PROpen || k.Round != 2 || k.Rounds[0].By != Land {
		t.Fatalf("%+v", k)
	}
	story(t, k, Drop{}, Resume{Job: Land})
	next(t, k, Known, Opened, Closed)
	if k.Status != Dropped || k.At != Land {
		t.Fatalf("%+v", k.Value)
	}
}

// The yes to governing files is kept over the rounds of a pull request, for the next one to be compared with.
func TestYesOutlivesItsRound(t *testing.T) {
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}})
	next(t, k, OK, OK, OK, OK)
	yes := Yes{By: "human/ann", Governing: "hash", At: machinetest.Noon}
	story(t, k, Answer{N: k.N, By: yes.By, Governing: yes.Governing})
	next(t, k, Opened)
	for range 3 {
		if next(t, k, Back, OK, OK); k.Job != Show || k.Yes != yes {
			t.Fatalf("%+v", k.Value)
		}
		next(t, k, Known, Opened)
	}
	next(t, k, Back, OK, OK, OK) // other governing files, which a person is asked about
	if k.Yes != yes || !k.Open() {
		t.Fatalf("%+v", k.Value)
	}
	if story(t, k, Answer{N: k.N, By: yes.By}); k.Yes.Governing != "" {
		t.Fatalf("%+v", k.Value)
	}
}

// A task does not land while its question is open, whatever else a person orders.
func TestOpenQuestionDoesNotLand(t *testing.T) {
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}})
	next(t, k, OK)
	story(t, k, Question{Open: true}, Answer{N: k.N, By: "human/ann"}) // its agent asks; nothing was shown
	for _, in := range []Input{Try{}, Undo{}} {
		if err := give(t, k, machinetest.Noon, in); err == nil {
			t.Errorf("%T is taken", in)
		}
	}
	next(t, k, OK, OK, OK)
	var no *table.Refusal
	if err := give(t, k, machinetest.Noon, Try{}); !errors.As(err, &no) || no.Row != "K8" || !strings.Contains(no.Reason, "question") {
		t.Fatalf("%v", err)
	}
	if !k.Open() {
		t.Fatalf("%+v", k.Value)
	}
}

// Questions of the agent, drops and restores keep where a task is.
func TestPlaces(t *testing.T) {
	k := &Task{}
	story(t, k, Begin{Plan: Plan{RoundsMax: 2}, Blocked: true}, Drop{}, Drop{}, Resume{})
	if k.Status != Blocked {
		t.Fatalf("%+v", k.Value)
	}
	story(t, k, Free{}, Free{})
	next(t, k, OK)
	story(t, k, Question{Open: true}, Question{Open: true}, Question{}, Question{Open: true})
	if err := give(t, k, machinetest.Noon, Resume{Job: Checks}); err == nil {
		t.Error("the checks run while its agent waits for an answer")
	}
	next(t, k, OK)
	if k.Status != Checking {
		t.Fatalf("%+v", k.Value)
	}
	for _, in := range []Input{Begin{}, Try{}, Resume{}, Undo{}, Resume{Job: "sing"}} {
		if err := give(t, k, machinetest.Noon, in); err == nil {
			t.Errorf("%T is taken", in)
		}
	}
	long := strings.Repeat("x", 3*textKeptMax)
	next(t, k, OK)
	story(t, k, JobEnded{N: k.N, Outcome: OK, Shown: Shown{Told: strings.Split(strings.Repeat("x ", 99), " ")}})
	story(t, k, Answer{N: k.N, Sent: true, Why: long})
	if n := len(k.Shown.Told); n != namesKept+1 || len(k.Rounds[0].Why) > textKeptMax+3 {
		t.Errorf("%d names, %d bytes", n, len(k.Rounds[0].Why))
	}
}

// TestRandomOrders applies random inputs, checks what always holds, and compares the replayed task.
func TestRandomOrders(t *testing.T) {
	for seed := range testsize.Pick[uint64](200, 2000, 2000) {
		randomly(t, rand.New(rand.NewPCG(seed, 0)), 120)
	}
}

func FuzzOrders(f *testing.F) {
	f.Add(uint64(1), 40)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		randomly(t, rand.New(rand.NewPCG(seed, 1)), min(max(n, 0), 300))
	})
}

func randomly(t testing.TB, rnd *rand.Rand, n int) {
	k := &Task{}
	pick := func(n int) bool { return rnd.IntN(n) == 0 }
	outcomes := []Outcome{OK, OK, OK, OK, OK, Back, Fails, Again, Room, Recheck, Opened, Closed, Known}
	jobs := []Job{Nothing, Nothing, Prepare, Work, Checks, Reviews, Show, Approve, Land, Merged}
	if err := give(t, k, machinetest.Noon, Begin{Plan{pick(2), pick(3), 1 + rnd.IntN(4)}, pick(3)}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		number := k.N
		if pick(5) {
			number = uint64(rnd.IntN(int(k.N) + 2))
		}
		var in Input
		switch rnd.IntN(12) {
		case 0:
			in = Free{}
		case 1:
			in = JobBegan{N: number}
		case 2:
			in = Question{Open: pick(2)}
		case 3:
			in = Answer{N: number, By: "human/ann", Sent: pick(2)}
		case 4:
			in = Resume{Job: jobs[rnd.IntN(len(jobs))]}
		case 5:
			in = []Input{Drop{Why: "no"}, Try{}, Undo{}}[rnd.IntN(3)]
		default:
			landed := fmt.Sprint("c", i)
			in = JobEnded{
				N: number, Outcome: outcomes[rnd.IntN(len(outcomes))], Why: "w", Landed: landed,
				Shown: Shown{Asked: Asked{Tree: fmt.Sprint(i)}},
			}
			if k.Job == Approve {
				in = Answer{N: number, By: "human/ann", Sent: pick(2)}
			}
		}
		_ = give(t, k, machinetest.Noon.Add(time.Duration(i)*time.Minute), in) // a refusal is an answer
	}
	read := &Task{}
	if err := json.Unmarshal([]byte(encode(t, k)), read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encode(t, k), encode(t, read)); diff != "" {
		t.Error(diff)
	}
}
