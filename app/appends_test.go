package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
)

// An order, or a change of a file, is one append and one sync until its session is asked for, and one when that runs or
// has ended; a step of a run is two.
func TestAppendsOfAnOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		const steps = 10
		b.host.play = func(s *fakeSession) {
			if run, err := b.engine.Runs.RunByID(t.Context(), "r"); err == nil {
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
		did := func(what string, atMost, with int) {
			b.settle()
			if a, c := b.faults.Appends()-appends, len(b.history())-changes; a > atMost || c > with {
				t.Errorf("%s: %d appends of %d changes, want at most %d of %d", what, a, c, atMost, with)
			}
			appends, changes = b.faults.Appends(), len(b.history())
		}
		b.disk.writeDesired("coder", "continuous", "from another program", time.Now())
		b.after(time.Second)
		if s := b.disk.state("coder"); s.CurrentState != "continuous" {
			t.Fatalf("%+v", s)
		}
		did("a flip in the file, until its session runs and the file has the answer", 2, 3)
		b.disk.writeDesired("coder", "pause", "from another program", time.Now())
		b.settle()
		b.host.session(b.host.running()[0]).tell()
		b.after(time.Second)
		if s := b.disk.state("coder"); s.CurrentState != "pause" {
			t.Fatalf("%+v", s)
		}
		did("a flip in the file to pause, until its session has ended", 2, 3)
		b.command("coder", "run_once")
		did("an order, until its session runs", 2, 3)
		b.command("coder", "pause")
		b.settle()
		b.host.session(b.host.running()[0]).tell()
		did("an order to pause, until its session has ended", 2, 3)

		var flow strings.Builder
		flow.WriteString("name: chain\nsteps:\n")
		for n := range steps {
			fmt.Fprintf(&flow, "  - {id: s%d, agent: coder, prompt: p.md%s}\n", n,
				map[bool]string{true: fmt.Sprintf(", needs: [s%d]", n-1)}[n > 0])
		}
		b.startRun("r", flow.String(), view.RunFlags{})
		b.after(time.Minute)
		if run := b.runView("r"); run.Status != "completed" {
			t.Fatalf("%+v", run)
		}
		did(fmt.Sprintf("a run of %d steps", steps), 2*steps+1, 5*steps+3)
	})
}
