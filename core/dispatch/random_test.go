package dispatch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// TestRandomOrders applies random inputs to dispatches of every mode and host. To repeat a run:
// -run 'RandomOrders/seed=7$'
func TestRandomOrders(t *testing.T) {
	seeds := testsize.Pick[uint64](100, 300, 50000)
	if testsize.Race {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, rand.New(rand.NewPCG(seed, 0)))
			for range 200 {
				w.tell(w.something())
			}
			w.same()
			w.rests()
		})
	}
}

type world struct {
	t       testing.TB
	rnd     *rand.Rand
	at      time.Time
	is      Dispatch
	journal [][]byte
	ended   map[int]bool // conversations whose summary was written
}

func newWorld(t testing.TB, rnd *rand.Rand) *world {
	w := &world{t: t, rnd: rnd, at: machinetest.Noon, ended: map[int]bool{}}
	w.tell(Start{Setup{
		Mode: w.one(Orchestrator, Interactive, Interactive, Response).(Mode), Host: w.one(NoHost, Claude, Fairlead, Fairlead).(Host),
		Lead: w.one("", "main").(string), Ranker: w.one("", "", "judge").(string), Path: "/s",
		Agents: agents("a", "b", "c")[:1+rnd.IntN(3)],
	}})
	if w.is.Phase == "" { // mode response with hooks is refused
		w.tell(Start{Setup{Mode: Orchestrator, Agents: agents("a", "b", "c")}})
	}
	return w
}

func (w *world) one(of ...any) any { return of[w.rnd.IntN(len(of))] }

// tell decides an input and checks the records: numbers have no gaps, and each conversation is
// closed once.
func (w *world) tell(in Input) {
	w.at = w.at.Add(time.Second)
	made := w.is.Made
	changes, err := decide(w.t, &w.is, w.at, in)
	if err != nil {
		return
	}
	for _, ch := range changes {
		body := change.As[Body](ch.Body)
		if n := body.Now.Made; n != made && n != made+1 {
			w.t.Fatalf("conversation %d was begun after %d", n, made)
		} else {
			made = n
		}
		if sum := body.Summary; sum != nil {
			if w.ended[sum.Conversation] {
				w.t.Fatalf("conversation %d is closed twice", sum.Conversation)
			}
			w.ended[sum.Conversation] = true
		}
		b, err := json.Marshal(ch.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		w.journal = append(w.journal, b)
	}
	open := 0
	if w.is.Open != nil {
		open = 1
	}
	if len(w.ended)+open != w.is.Made {
		w.t.Fatalf("%d conversations were begun, %d closed, %d are open", w.is.Made, len(w.ended), open)
	}
}

// something returns a random input, mostly a sensible one.
func (w *world) something() Input {
	agent := w.one("a", "b", "c", "nobody").(string)
	caller := w.one("", "x1", "x2", "x3").(string)
	task := uint64(w.rnd.IntN(4))
	if c := w.is.Open; c != nil && len(c.Tasks) > 0 && w.rnd.IntN(3) > 0 {
		task = c.Tasks[w.rnd.IntN(len(c.Tasks))].ID
	}
	round := w.rnd.IntN(2)
	if t, ok := w.is.Open.Task(task); ok {
		round = t.Round
	}
	var match *Match
	if w.rnd.IntN(2) == 0 {
		match = &Match{Agent: agent, Score: 2, Terms: []string{"do"}}
	}
	switch w.rnd.IntN(16) {
	case 0, 1, 2:
		return UserInput{Text: "do it", Match: match, Over: w.is.Host == Claude}
	case 3:
		return Delegate{Agent: agent, Text: "do", Call: w.one("", "c1", "c2").(string)}
	case 4, 5:
		return Delegate{Agent: agent, Text: "help", By: task}
	case 6:
		return Seen{Caller: caller, Agent: agent}
	case 7, 8:
		return TaskEnded{Task: task, Round: round, OK: w.rnd.IntN(3) > 0, Result: "so"}
	case 9:
		return TaskEnded{Caller: caller, Call: w.one("", "c1", "c2").(string), OK: true}
	case 10:
		return MainEnded{Round: w.rnd.IntN(2), OK: true, Result: "so"}
	case 11:
		return Respond{Text: "so", Over: w.rnd.IntN(2) == 0}
	case 12:
		return Deny{Caller: caller, Tool: "Write", Reason: "no"}
	case 13:
		return Wrote{Caller: caller, File: File{Path: w.one("p", "q").(string)}}
	case 14:
		return Message{Name: "m.md", Text: "do", Match: match}
	default:
		if w.rnd.IntN(20) == 0 {
			return End{Why: "enough"}
		}
		return Interrupt{Why: "lost"}
	}
}

// same compares the replayed dispatch with the current one.
func (w *world) same() {
	var again Dispatch
	for _, b := range w.journal {
		again.Apply(decoded(w.t, string(b)))
	}
	if !reflect.DeepEqual(w.is, again) {
		w.t.Fatalf("the replayed dispatch differs:\n%s\n%s", encode(w.t, w.is), encode(w.t, again))
	}
}

// rests is a host that does all due actions in any order, with agents that sometimes ask each
// other. Every input must get an answer.
func (w *world) rests() {
	if w.is.Host != Fairlead || w.is.Phase == Closed {
		return
	}
	for step := range 5000 {
		answer, ready := w.is.Answer()
		due := w.is.Due()
		switch {
		case ready && len(due) > 0:
			w.t.Fatalf("an answer is due while actions are due: %+v", due)
		case ready:
			w.tell(answer)
		case len(due) == 0:
			if w.is.Open != nil || len(w.is.Waiting) > 0 {
				w.t.Fatalf("no action is due, but the conversation is open: %s", encode(w.t, w.is))
			}
			return
		default:
			work := due[w.rnd.IntN(len(due))]
			if step < 500 && w.rnd.IntN(3) == 0 {
				w.tell(Delegate{Agent: w.one("a", "b").(string), Text: "help", By: work.Task})
			}
			if work.Task == 0 {
				w.tell(MainEnded{Round: work.Round, OK: true, Result: "answer"})
			} else {
				w.tell(TaskEnded{Task: work.Task, Round: work.Round, OK: w.rnd.IntN(4) > 0, Result: "done"})
			}
		}
	}
	w.t.Fatalf("the dispatch does not become idle: %s", encode(w.t, w.is))
}

// FuzzInputs checks that arbitrary inputs are accepted or refused, and that the invariants hold.
func FuzzInputs(f *testing.F) {
	f.Add(uint64(1), []byte("hello"))
	f.Add(uint64(7), []byte("\x00\xff[MAIN \u2192 a]"))
	f.Fuzz(func(t *testing.T, seed uint64, text []byte) {
		w := newWorld(t, rand.New(rand.NewPCG(seed, 1)))
		said := string([]rune(string(text))) // callers pass only valid UTF-8
		for _, in := range []Input{
			UserInput{Text: said, Named: []string{said}, Match: &Match{Agent: said}},
			UserInput{Text: said, Match: &Match{Agent: "a", Terms: []string{said}}},
			Delegate{Agent: "a", Text: said, Call: said, Params: said, Trigger: said},
			Seen{Caller: said, Agent: "a"},
			Deny{Caller: said, Tool: said, Call: said, Reason: said},
			Wrote{Caller: said, File: File{Path: said, Summary: said}},
			Message{Name: said, Text: said, Match: &Match{Agent: "a"}},
			TaskEnded{Caller: said, Result: said},
			TaskEnded{Call: said, OK: true, Result: said},
			w.something(),
			Respond{Text: said, Summary: said, Over: true},
			End{Why: said},
		} {
			w.tell(in)
		}
		w.same()
	})
}
