package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/exchange"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// numberOf returns the number, or -1 for other content.
func numberOf(note string) int {
	digits, ok := strings.CutPrefix(note, "n")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return n
}

// scribble writes our content as fast as it can until ctx ends. It counts its writes and those that were
// refused with exchange.ErrChanged, and signals each write on done.
func scribble(ctx context.Context, t *testing.T, d *desk, done chan<- struct{}) (wrote, refused int) {
	for i := 0; ctx.Err() == nil; i++ {
		err := d.Write(ctx, d.k.name, []byte(d.k.says("ours "+strconv.Itoa(i))), exchange.AnyLook, nil)
		switch {
		case err == nil:
			wrote++
			select {
			case done <- struct{}{}:
			default:
			}
		case errors.Is(err, exchange.ErrChanged):
			refused++
		case ctx.Err() == nil:
			t.Error(err)
			return wrote, refused
		}
	}
	return wrote, refused
}

// slowExchange widens the window of the exchange from microseconds, so that more writes fall into it.
func slowExchange(dir int, a, b string) error {
	wait.Pause(500 * time.Microsecond)
	return file.Exchange(dir, a, b)
}

// TestNoCommandIsLost has another program write one command after another and wait for each to be seen, while
// we write as fast as we can. Each command must be seen, whichever way it is written and wherever the writer
// is when we exchange the file.
func TestNoCommandIsLost(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		t.Parallel()
		inPlaceSlowly := func(d *desk, content string) {
			pen, err := os.OpenFile(d.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
			if err != nil {
				d.t.Error(err)
				return
			}
			half := len(content) / 2
			_, err1 := pen.WriteString(content[:half])
			wait.Pause(time.Millisecond) // pauses in the middle of a write, so that our exchange falls into it
			_, err2 := pen.WriteString(content[half:])
			if err := errors.Join(err1, err2, pen.Close()); err != nil {
				d.t.Error(err)
			}
		}
		for _, c := range []struct {
			name   string
			put    func(*desk, string)
			swap   func(int, string, string) error
			orders int
		}{
			{"in place", (*desk).put, file.Exchange, 150},
			{"in place, slowly", inPlaceSlowly, file.Exchange, 100},
			{"by rename", (*desk).replace, file.Exchange, 150},
			{"in place, into a slow exchange", (*desk).put, slowExchange, 100},
			{"in place, slowly, into a slow exchange", inPlaceSlowly, slowExchange, 100},
			{"by rename, into a slow exchange", (*desk).replace, slowExchange, 100},
			{"in place, on a file system without exchange", (*desk).put, noExchange, 150},
			{"in place, slowly, on a file system without exchange", inPlaceSlowly, noExchange, 100},
		} {
			t.Run(c.name, func(t *testing.T) {
				d := newDesk(t, k, k.says("a"))
				d.SetExchange(c.swap)
				ctx, stop := context.WithCancel(t.Context())
				var ours sync.WaitGroup
				var wrote, refused int
				done := make(chan struct{})
				ours.Go(func() { wrote, refused = scribble(ctx, t, d, done) })
				swapped := 0
				orders := c.orders / testsize.Pick(5, 1, 1) // .ci/run long gives all of them
				if k != agentState {
					orders /= 5 // the same code; each order takes a few milliseconds
				}
				for n := range orders {
					if n%3 == 0 { // after one of our writes, or at once
						select {
						case <-done:
						case <-time.After(longEnough):
							t.Fatal("we do not come to write")
						}
					}
					go c.put(d, k.says("n"+strconv.Itoa(n)))
					s := d.next()
					if numberOf(k.note(s.State)) != n {
						t.Fatalf("seen %+v while order %d was given", s, n)
					}
					if s.FromSwap {
						swapped++
					}
				}
				stop()
				ours.Wait()
				t.Logf("%d orders heard, %d of our writes beside them, %d refused, %d from swaps", orders, wrote, refused, swapped)
				if wrote == 0 {
					t.Error("we wrote nothing, so nothing was tested")
				}
			})
		}
	})
}

// TestSeedsWriterInATightLoop runs the seed's own writer in Python in a tight loop beside ours.
const seedsWriter = `
import json, os, sys, time
from datetime import datetime

STATE_FILE = sys.argv[1]

def read_state():
    if not os.path.exists(STATE_FILE):
        return {'desired_state': 'pause', 'current_state': 'pause'}
    with open(STATE_FILE, 'r') as f:
        return json.load(f)

def write_state(desired=None, current=None, note=None):
    state = read_state()
    if desired:
        state['desired_state'] = desired
    if current:
        state['current_state'] = current
    if note:
        state['note'] = note
    state['timestamp'] = datetime.utcnow().isoformat() + 'Z'
    began = time.monotonic()
    with open(STATE_FILE, 'w') as f:
        json.dump(state, f, indent=2)
    return time.monotonic() - began

slowest = 0
n, end, pause = 0, time.monotonic() + float(sys.argv[2]), float(sys.argv[3])
while time.monotonic() < end:
    slowest = max(slowest, write_state(desired='run_once', current='pause', note='n%d' % n))
    n += 1
    if pause:
        time.sleep(pause)
print(n - 1, int(slowest * 1000))
`

func TestSeedsWriterInATightLoop(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	script := filepath.Join(t.TempDir(), "writer.py")
	if err := os.WriteFile(script, []byte(seedsWriter), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, pause := range map[string]string{"without a breath": "0", "with breaths": "0.002"} {
		t.Run(name, func(t *testing.T) { besideTheSeedsWriter(t, python, script, pause) })
	}
}

func besideTheSeedsWriter(t *testing.T, python, script, pause string) {
	k := agentState
	d := newDesk(t, k, k.says("a"))
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var heard atomic.Int64 // the greatest number seen
	heard.Store(-1)
	var contents, fromSwap atomic.Int64
	var nonsense atomic.Pointer[seenFile]
	news := make(chan struct{}, 1)
	all.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-d.arrived:
				d.Confirm(s)
				contents.Add(1)
				if s.FromSwap {
					fromSwap.Add(1)
				}
				if s.Kind != exchange.KindWritten {
					nonsense.Store(&s)
				}
				heard.Store(max(heard.Load(), int64(numberOf(k.note(s.State)))))
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}
	})
	var wrote, refused int
	var ours sync.WaitGroup
	writing, rest := context.WithCancel(ctx)
	ours.Go(func() { wrote, refused = scribble(writing, t, d, nil) })

	cmd := exec.CommandContext(ctx, python, "-W", "ignore", script, d.path, testsize.Pick("0.5", "1.5", "1.5"), pause)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the seed's writer met a file it could not read: %v\n%s", err, complaint.String())
	}
	var last, slowest int64 // number, milliseconds
	if _, err := fmt.Sscan(string(out), &last, &slowest); err != nil {
		t.Fatal(err)
	}
	hopeless := time.After(longEnough)
	for heard.Load() < last {
		select {
		case <-news:
		case <-hopeless:
			t.Fatalf("heard up to %d, the last was %d", heard.Load(), last)
		}
	}
	rest()
	ours.Wait()
	s, err := d.Read(k.name)
	if err != nil || s.Kind != exchange.KindWritten {
		t.Errorf("%+v, %v", s, err)
	}
	t.Logf("they wrote %d, the last was heard; %d contents seen, %d of them from swaps; we wrote %d, refused %d; their slowest write took %d ms",
		last+1, contents.Load(), fromSwap.Load(), wrote, refused, slowest)
	if s := nonsense.Load(); s != nil && slowest < file.TornFor.Milliseconds() { // only a stalled machine makes this true
		t.Errorf("seen %s %q: %s", s.Kind, s.Bytes, s.Fault)
	}
	if wrote == 0 {
		t.Error("we wrote nothing, so nothing was tested")
	}
}
