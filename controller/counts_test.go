package controller

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/counts"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// TestCountsOfLoop counts the allocations, appends and changes of the loop for an operation,
// without callers and disk.
func TestCountsOfLoop(t *testing.T) { //nolint:paralleltest // other tests would allocate meanwhile
	if testsize.Race {
		t.Skip("the race detector changes what is allocated")
	}
	for what, made := range map[string]func(testing.TB) (*Supervisor, func(int) *team.Event){"durable command": commandsLoop, "hand-off": handOffsLoop} {
		e, next := made(t)
		to := e.Journal().(*discardJournal) //nolint:forcetypeassert // still has made it
		for _, size := range []int{1, loop.BatchMax} {
			runs := max(10, loop.BatchMax/size) // each agent or channel once; the minimum is the same in every run
			batch := make([]loop.Request, size)
			n := 0
			step := func() {
				for i := range batch {
					batch[i] = loop.Request{Event: next(n % loop.BatchMax)}
					n++
				}
				if err := e.Step(context.Background(), batch); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 * loop.BatchMax / size { // first create the data that exists once for each agent or channel
				step()
			}
			appends, head := to.appends, e.Head()
			allocs := counts.Allocations(runs, step)
			name := fmt.Sprintf("%s, %d at once: ", what, size)
			counts.Within(t, name+"allocations", allocs, 2) // maps of the team grow sometimes; one more for each of 256 commands is 3.7 %
			counts.Check(t, name+"appends", (to.appends-appends)/runs)
			counts.Check(t, name+"changes each", int(e.Head()-head)/size/runs)
		}
	}
}

// TestCountsOfRest counts the memory that one more agent at rest keeps, from its configuration to its watched file.
func TestCountsOfRest(t *testing.T) { //nolint:paralleltest // other tests would allocate meanwhile
	if testsize.Race {
		t.Skip("the race detector changes what is allocated")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // each processor keeps pools of its own: with 16, 500 bytes an agent more were counted
	const few, many = 20, 220
	kept := func(agents int) (objects, bytes int) {
		var yaml strings.Builder
		yaml.WriteString("version: 1\nagents:\n")
		for n := range agents {
			fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [\"true\"], workspace: a%d}\n", n, n)
		}
		var before, after runtime.MemStats
		collect(&before)
		e, _, _ := benchEngine(t, yaml.String())
		collect(&after)
		runtime.KeepAlive(e)
		return int(after.HeapObjects) - int(before.HeapObjects), int(after.HeapAlloc) - int(before.HeapAlloc) //nolint:gosec // some millions
	}
	kept(1) // what is made once in a process
	objects, bytes := kept(few)
	more, moreBytes := kept(many)
	counts.Within(t, "an agent at rest: objects kept", (more-objects)/(many-few), 10)
	counts.Within(t, "an agent at rest: bytes kept", (moreBytes-bytes)/(many-few), 10)
}

// collect frees what is not used and reads what is left. A second collection frees what finalizers and pools had kept.
func collect(mem *runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(mem)
}

// TestCountsOfAppends counts the appends, each with one sync, from an order or a change of a file
// to its effect.
func TestCountsOfAppends(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		const steps = 10
		b.host.play = func(s *fakeSession) {
			if run, err := b.engine.RunByID(t.Context(), "r"); err == nil {
				for _, step := range run.Steps {
					if step.Session == s.id {
						s.reports("r", step.ID)
						return
					}
				}
			}
			<-s.asked
		}
		b.start()
		appends, changes := b.faults.Appends(), len(b.history())
		did := func(what string) {
			b.settle()
			counts.Check(t, what+": appends", b.faults.Appends()-appends)
			counts.Check(t, what+": changes", len(b.history())-changes)
			appends, changes = b.faults.Appends(), len(b.history())
		}
		b.disk.writeDesired("coder", "continuous", "from another program", time.Now())
		b.after(time.Second)
		if s := b.disk.state("coder"); s.CurrentState != "continuous" {
			t.Fatalf("%+v", s)
		}
		did("a flip in the file, until its session runs and the file has the answer")
		b.disk.writeDesired("coder", "pause", "from another program", time.Now())
		b.settle()
		b.host.session(b.host.running()[0]).tell()
		b.after(time.Second)
		if s := b.disk.state("coder"); s.CurrentState != "pause" {
			t.Fatalf("%+v", s)
		}
		did("a flip in the file to pause, until its session has ended")
		b.command("coder", "run_once")
		did("an order, until its session runs")
		b.command("coder", "pause")
		b.settle()
		b.host.session(b.host.running()[0]).tell()
		did("an order to pause, until its session has ended")

		var flow strings.Builder
		flow.WriteString("name: chain\nsteps:\n")
		for n := range steps {
			fmt.Fprintf(&flow, "  - {id: s%d, agent: coder, prompt: p.md%s}\n", n, map[bool]string{true: fmt.Sprintf(", needs: [s%d]", n-1)}[n > 0])
		}
		b.startRun("r", flow.String(), view.RunFlags{})
		b.after(time.Minute)
		if run := b.runView("r"); run.Status != "completed" {
			t.Fatalf("%+v", run)
		}
		did(fmt.Sprintf("a run of %d steps", steps))
	})
}
