package notify

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Main(m)) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// asked is a question, the nth of its kind.
func asked(n int) Notice {
	return Notice{
		Kind: "step", Run: "r1", Step: fmt.Sprint("s", n), Workflow: "release", Why: "step s waits for an answer",
		Since: noon.Add(time.Duration(n) * time.Second), ManualInputPath: "/repo/.agents/runs/r1/manual_inputs/r1__s.json",
	}
}

// talk collects a log.
type talk struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *talk) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *talk) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *talk) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// door is a face that behaves as the test says.
type door struct {
	answer func(ctx context.Context, n Notice) error

	mu    sync.Mutex
	tries []string // STEP@SECONDS since the start
	began time.Time
}

func newDoor(answer func(ctx context.Context, n Notice) error) *door {
	return &door{answer: answer, began: time.Now()}
}

func (d *door) name() string { return "door" }

func (d *door) tell(ctx context.Context, n Notice) error {
	d.mu.Lock()
	d.tries = append(d.tries, fmt.Sprintf("%s@%v", n.Step, time.Since(d.began)))
	d.mu.Unlock()
	return d.answer(ctx, n)
}

func (d *door) tried() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.tries)
}

func yes(context.Context, Notice) error { return nil }

var (
	errBusy  = &trouble{cause: "it is busy", wayOut: "wait", again: true}
	errWrong = &trouble{cause: "it is wrong", wayOut: "correct it"}
)

// inBubble opens a Teller with one door, and closes it at the end.
func inBubble(t *testing.T, answer func(context.Context, Notice) error, do func(t *testing.T, tell *Teller, d *door, log *talk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, log := newDoor(answer), &talk{}
		tell := open([]face{d}, log.logger())
		defer tell.Close()
		do(t, tell, d, log)
	})
}

// SPEC Workflow, People: a question is notified once, however often the engine reports it.
func TestOnce(t *testing.T) {
	inBubble(t, yes, func(t *testing.T, tell *Teller, d *door, _ *talk) {
		for range 3 {
			tell.Tell(asked(1))
			tell.Tell(asked(2))
		}
		later := asked(1)
		later.Since = later.Since.Add(time.Microsecond) // the step ran again and asks again
		tell.Tell(later)
		both := later.Since // two agents' questions in one append have the same time
		for _, id := range []string{"q1", "q2", "q1"} {
			tell.Tell(Notice{Kind: "permission", Agent: "coder", Why: "coder asks for permission (" + id + ")", Since: both})
		}
		timeless := Notice{Step: "old"} // without a time, a question cannot be recognised
		tell.Tell(timeless)
		tell.Tell(timeless)
		synctest.Wait()
		if got, want := d.tried(), []string{"s1@0s", "s2@0s", "s1@0s", "@0s", "@0s", "old@0s", "old@0s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Remembered questions are limited.
func TestMemoryIsBounded(t *testing.T) {
	inBubble(t, yes, func(t *testing.T, tell *Teller, _ *door, _ *talk) {
		for n := range rememberMax + 100 {
			tell.Tell(asked(n))
			synctest.Wait()
		}
		if len(tell.told) != rememberMax || len(tell.order) != rememberMax || tell.told[question{"r1", "s99", "", asked(99).Why, asked(99).Since}] || !tell.told[question{"r1", "s100", "", asked(100).Why, asked(100).Since}] {
			t.Errorf("%d questions are remembered, in order %d", len(tell.told), len(tell.order))
		}
	})
}

// Tries get further apart; then the notice is dropped, and each reason is logged once until a delivery
// succeeds.
func TestTries(t *testing.T) {
	var fault atomic.Pointer[trouble] // nil: it works
	fault.Store(errBusy)
	answer := func(context.Context, Notice) error {
		if why := fault.Load(); why != nil {
			return why
		}
		return nil
	}
	inBubble(t, answer, func(t *testing.T, tell *Teller, d *door, log *talk) {
		tell.Tell(asked(1))
		wait.Elapse(time.Minute)
		if got, want := d.tried(), []string{"s1@0s", "s1@1s", "s1@5s", "s1@21s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		tell.Tell(asked(2))
		wait.Elapse(time.Minute)
		if said := strings.Count(log.String(), "it is busy"); said != 1 {
			t.Errorf("said %d times: %s", said, log)
		}
		fault.Store(errWrong)
		tell.Tell(asked(3))
		synctest.Wait()
		if n := len(d.tried()); n != 9 {
			t.Errorf("%d tries: what cannot get better is tried once; %q", n, d.tried())
		}
		fault.Store(nil)
		tell.Tell(asked(4))
		synctest.Wait()
		fault.Store(errWrong)
		tell.Tell(asked(5))
		synctest.Wait()
		if said := strings.Count(log.String(), "it is wrong"); said != 2 {
			t.Errorf("said %d times, want again after it had worked: %s", said, log)
		}
	})
}

// The server may ask for a longer wait.
func TestAskedWait(t *testing.T) {
	var tries atomic.Int32
	inBubble(t, func(context.Context, Notice) error {
		if tries.Add(1) == 1 {
			return &trouble{cause: "busy", wayOut: "wait", again: true, wait: 20 * time.Second}
		}
		return nil
	}, func(t *testing.T, tell *Teller, d *door, _ *talk) {
		tell.Tell(asked(1))
		wait.Elapse(time.Minute)
		if got, want := d.tried(), []string{"s1@0s", "s1@20s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// An address that hangs delays nothing else: a try times out, the full queue is logged, and the other face
// has delivered everything.
func TestHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &talk{}
		stuck := newDoor(func(ctx context.Context, _ Notice) error { <-ctx.Done(); return errBusy })
		well := newDoor(yes)
		tell := open([]face{stuck, well}, log.logger())
		const more = 10
		for n := range queueMax + 1 + more {
			tell.Tell(asked(n))
			synctest.Wait()
		}
		if n := len(well.tried()); n != queueMax+1+more {
			t.Errorf("the face that works has told of %d", n)
		}
		if said := strings.Count(log.String(), "too many notices"); said != 1 {
			t.Errorf("said %d times that the queue is full: %s", said, log)
		}
		wait.Elapse(tryMax + waitFirst)
		synctest.Wait()
		if got := stuck.tried(); len(got) != 2 || got[1] != "s0@11s" {
			t.Errorf("%q: the second try comes when the first was cut off", got)
		}
		began := time.Now()
		if err := tell.Close(); err != nil || time.Since(began) != closeMax {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		if want := fmt.Sprint("notices=", queueMax+1); !strings.Contains(log.String(), want) {
			t.Errorf("no %s in: %s", want, log)
		}
	})
}

// What was asked just before Close is still sent, and the wait for the next try is cut short.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &talk{}
		tries := 0
		d := newDoor(func(context.Context, Notice) error {
			if tries++; tries == 1 {
				return errBusy
			}
			return nil
		})
		tell := open([]face{d}, log.logger())
		tell.Tell(asked(1))
		tell.Tell(asked(2))
		synctest.Wait() // the first will be retried in a second
		if err := tell.Close(); err != nil {
			t.Error(err)
		}
		if got, want := d.tried(), []string{"s1@0s", "s1@0s", "s2@0s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		tell.Tell(asked(3)) // the Teller is closed
		if err := tell.Close(); err != nil || log.String() != "" {
			t.Errorf("closed twice: %v, %s", err, log)
		}
	})
}

// Without configuration nothing is sent and no goroutine is started.
func TestNobody(t *testing.T) {
	tell, err := Open(Options{})
	if err != nil || len(tell.desks) != 0 {
		t.Fatalf("%+v, %v", tell, err)
	}
	tell.Tell(asked(1))
	if err := tell.Close(); err != nil {
		t.Error(err)
	}
}
