package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestWriterInATightLoop runs a program that truncates and rewrites agent_state.json in place,
// again and again, together with orders of people. Its last content is always recorded, all orders
// are in the journal, and no incomplete content is called malformed (SPEC, Control; X3).
func TestWriterInATightLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML("true"), nil)
	w.fileSays("pause", says("pause", "pause"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ordered := make(chan int, 1)
	go func() { // orders of people, all the time
		n := 0
		defer func() { ordered <- n }()
		for ctx.Err() == nil {
			if _, err := w.engine.Agents.Command(ctx, human, "coder", "pause", fmt.Sprintf("ours %d", n)); err != nil {
				return
			}
			n++
			wait.Pause(20 * time.Millisecond)
		}
	}()
	const bursts, perBurst = 8, 40
	var slowest time.Duration // the time that the other program held the file open
	for burst := range bursts {
		note := ""
		for i := range perBurst {
			note = fmt.Sprintf("theirs %d.%d", burst, i)
			slowest = max(slowest, w.rewrite(note))
		}
		w.until("coder", "the last desired state of a burst is recorded: "+note, func(view.AgentView) bool { return w.isRecorded(note) })
	}
	cancel()
	ours := <-ordered
	for n := range ours {
		if note := fmt.Sprintf("ours %d", n); !w.isRecorded(note) {
			t.Fatalf("order %q was acknowledged and is not in the journal", note)
		}
	}
	for _, line := range w.history("control/coder") {
		if strings.HasPrefix(line, "C12") && slowest < tornFor { // on a stalled machine it may be true
			t.Errorf("incomplete content was called malformed: %s", line)
		}
	}
	t.Logf("%d orders beside %d rewrites in place, the slowest in %v", ours, bursts*perBurst, slowest)
}

// rewrite is write_state of seed 000: read, change, truncate, write. It returns how long the file
// was incomplete.
func (w *world) rewrite(note string) time.Duration {
	w.t.Helper()
	path := w.path("coder/agent_state.json")
	var state agentstate.State
	for {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // Fairlead is exchanging the file
		}
		if state, err = agentstate.Parse(text); err == nil {
			break
		}
	}
	state.DesiredState, state.SetBy, state.Note = "pause", "human", note
	state.Timestamp = time.Now().UTC().Format("2006-01-02T15:04:05.000000") + "Z"
	began := time.Now()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	text := state.Render()
	for len(text) > 0 { // in pieces, as a buffered writer may
		n := min(40, len(text))
		if _, err := file.Write(text[:n]); err != nil {
			w.t.Fatal(err)
		}
		text = text[n:]
	}
	if err := file.Close(); err != nil {
		w.t.Fatal(err)
	}
	return time.Since(began)
}

// isRecorded reports whether the journal has a desired state with this note.
func (w *world) isRecorded(note string) bool {
	w.t.Helper()
	for ch, err := range w.engine.Loop.Journal().Read(context.Background(), journal.Query{Entity: "control/coder"}) {
		if err != nil {
			w.t.Fatal(err)
		}
		body, err := team.BodyOf(ch.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		set := change.As[control.Body](body)
		if set != nil && (set.Value.Desired.Note == note || (set.Overtaken != nil && set.Overtaken.Note == note)) {
			return true
		}
	}
	return false
}

// stuck is a disk on which no file can be written.
type stuck struct{ outside.Files }

func (stuck) Write(ctx context.Context, _ string, _ []byte, _ uint64, _ func(file.Sum) bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestOrderThatNeverReachedTheFile checks that an acknowledged order applies even if the daemon
// crashed before it wrote the file. The file still has an earlier order of another program, which
// is in the journal (X3).
func TestOrderThatNeverReachedTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.fileSays("pause", says("pause", "pause"))
	w.stop()
	w.files = func(f outside.Files) outside.Files { return stuck{f} }
	w.foreign(func(s *agentstate.State) { s.DesiredState, s.SetBy, s.Note = "continuous", "human", "from elsewhere" })
	w.start()
	w.until("coder", "the other program's order is obeyed", running)
	w.command("coder", "pause")
	if s := w.file("coder"); s.DesiredState != "continuous" {
		t.Fatalf("this test needs a file that was not written: %+v", s)
	}
	w.stop()
	w.files = nil
	w.start()
	s := w.fileSays("pause", func(s agentstate.State) bool { return s.Note != "from elsewhere" })
	if s.DesiredState != "pause" {
		t.Errorf("an acknowledged pause was lost to an order from before it: %+v", s)
	}
	w.write("go", "")
	w.until("coder", "it rests", idle)
}
