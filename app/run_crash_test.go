package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	driverexec "github.com/fairlead-dev/fairlead/process/driver/exec"
)

// crashingEngine is an engine that can crash at any append, on a journal that outlives it. Shims
// and their processes continue, as they do when a daemon is killed.
type crashingEngine struct {
	t     *testing.T
	dir   string
	slate *memory.Journal
}

// life opens an engine. die is the append, counted from 1, at which it loses its journal; 0: never.
// The returned function says how often the engine appended, after it has stopped.
func (b *crashingEngine) life(die int, done bool) (*App, func() int) {
	b.t.Helper()
	conf, err := config.Load(b.dir, os.LookupEnv)
	if err != nil {
		b.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	files := agentstate.Watch(log)
	cut := &failingJournal{Journal: b.slate, at: die, done: done}
	ctx, cancel := context.WithCancel(context.Background())
	e, err := Open(ctx, outside.Options{
		Name: "brink", Config: conf, Journal: cut, Files: files, Log: log, Lookup: os.LookupEnv, BootID: workspace.BootID(),
		Host:    &sessions.Shims{Folder: filepath.Join(b.dir, "sessions"), Workspace: b.dir},
		Drivers: map[string]driver.Driver{"exec": driverexec.Driver{}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = e.Run(ctx) // its error is the result of the crash
	}()
	return e, func() int {
		if int(cut.n.Load()) < die || die == 0 { // two steps that end together share an append, so there may be fewer than before
			cancel()
		}
		<-ran
		cancel()
		_ = files.Close()
		return int(cut.n.Load())
	}
}

// failingJournal is a journal that an engine loses at one append: either nothing of the batch is
// stored, or all of it is stored but the engine gets an error.
type failingJournal struct {
	journal.Journal
	at   int
	done bool
	n    atomic.Int64
}

func (c *failingJournal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	n := int(c.n.Add(1))
	if c.at == 0 || n < c.at {
		return c.Journal.Append(ctx, batch, expect...)
	}
	if n == c.at && c.done {
		if _, err := c.Journal.Append(ctx, batch, expect...); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("the journal is cut off")
}

// TestRunSurvivesEveryAppend kills the engine of a run of twenty steps in two branches at its
// appends: at every 16th; with FAIRLEAD_LONG=ci at every fourth; with FAIRLEAD_LONG=1 before and
// after each. The next engine finishes the run: every step runs once and has the same result as
// without a crash.
func TestRunSurvivesEveryAppend(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a thousand processes")
	}
	const steps = 20
	appends := surviveRun(t, steps, 0, false)
	if !testsize.Long() {
		every := 16
		if testsize.CI() && !testsize.Race {
			every = 4
		}
		for n := 1 + int(time.Now().Unix()%int64(every)); n <= appends; n += every { // other appends each second
			surviveRun(t, steps, n, n%(2*every) < every)
		}
		return
	}
	for n := 1; n <= appends; n++ {
		surviveRun(t, steps, n, false)
		surviveRun(t, steps, n, true)
	}
	t.Logf("%d appends, an end at each", appends)
}

func surviveRun(t *testing.T, steps, die int, done bool) (appends int) {
	t.Helper()
	b := &crashingEngine{t: t, dir: t.TempDir(), slate: memory.New()}
	var flow strings.Builder
	flow.WriteString("name: many\nsteps:\n")
	for n := range steps {
		fmt.Fprintf(&flow, "  - id: s%02d\n    command: %s\n", n,
			quoted(`echo $STEP_ID >> ran; echo made by $STEP_ID > $STEP_ID.out; `+report(`,"artifacts":["s.out"]`)))
		if n >= 2 {
			fmt.Fprintf(&flow, "    needs: [s%02d]\n", n-2)
		}
	}
	for name, text := range map[string]string{"fairlead.yaml": "version: 1\nagents: {}\n", "flow.yaml": flow.String()} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, end := b.life(die, done)
	started := make(chan error, 1)
	go func() {
		select {
		case <-e.Loop.Ready():
		case <-e.Loop.Quit():
		}
		_, err := e.Runs.StartRun(context.Background(), human, view.RunFlags{Workflow: "flow.yaml", RunID: "r"})
		started <- err
	}()
	shown := awaitRun(t, e)
	appends = end()
	if die == 0 {
		<-started
	}
	if die > 0 {
		<-started // the journal says whether it began, regardless of the result
		e, end = b.life(0, false)
		<-e.Loop.Ready()
		if _, err := e.Runs.RunByID(t.Context(), "r"); err != nil { // it had not begun
			if _, err := e.Runs.StartRun(context.Background(), human, view.RunFlags{Workflow: "flow.yaml", RunID: "r"}); err != nil {
				t.Fatal(err)
			}
		}
		shown = awaitRun(t, e)
		end()
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "ran"))
	if err != nil || shown.Status != "completed" {
		t.Fatalf("append %d (done %v): %+v, %v", die, done, shown, err)
	}
	for n := range steps {
		name := fmt.Sprintf("s%02d", n)
		if did := strings.Count(string(text), name+"\n"); did != 1 {
			t.Errorf("append %d (done %v): step %s was done %d times", die, done, name, did)
		}
		if out, err := os.ReadFile(filepath.Join(b.dir, name+".out")); err != nil || string(out) != "made by "+name+"\n" {
			t.Errorf("append %d (done %v): %q, %v", die, done, out, err)
		}
	}
	return appends
}

// awaitRun waits until the run is over, or its engine is.
func awaitRun(t *testing.T, e *App) view.RunView {
	t.Helper()
	var last view.RunView
	wait.Until(t, "the end of the run or of the supervisor", func() bool {
		if view, err := e.Runs.RunByID(context.Background(), "r"); err == nil {
			last = view
			if over(view) {
				return true
			}
		}
		select {
		case <-e.Loop.Quit():
			return true
		default:
			return false
		}
	})
	return last
}
