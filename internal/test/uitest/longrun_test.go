package uitest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// A run of a thousand steps, and all of them changing, must leave the page usable.
func TestLongRun(t *testing.T) {
	const steps = 1000
	fake := uitest.NewFake("fleet")
	run := uitest.Run{ID: "long", Workflow: "long"}
	for i := range steps {
		s := &uitest.Step{ID: fmt.Sprintf("step-%04d", i), Needs: []string{}, Artifacts: []string{}, Metrics: map[string]string{}, Logs: []string{}}
		if i > 0 {
			s.Needs = append(s.Needs, fmt.Sprintf("step-%04d", (i-1)/2))
		}
		if i%100 == 99 {
			s.LoopBackTo = fmt.Sprintf("step-%04d", i/4)
		}
		run.Steps = append(run.Steps, s)
	}
	fake.AddRun(run)
	p := uitest.Browse(t)
	url := fake.Serve(t)
	p.Open(url)
	uitest.Eval[bool](p, `(() => {
		window.slowest = 0; let last = performance.now();
		const step = (now) => { window.slowest = Math.max(window.slowest, now - last); last = now; requestAnimationFrame(step); };
		requestAnimationFrame(step); return true; })()`)
	began := time.Now()
	p.Click(".places", "Runs")
	p.Click(".run-rows", "long")
	p.WaitText(".graph .node", "step-0000")
	t.Logf("%d steps drawn after %v", steps, time.Since(began).Round(time.Millisecond))
	if n := uitest.Eval[int](p, `document.querySelectorAll('.node').length`); n > 200 {
		t.Errorf("%d steps are in the page; only those in sight should be", n)
	}
	began = time.Now()
	for _, s := range run.Steps {
		fake.Move("long", s.ID, "RUNNING", nil)
		fake.Move("long", s.ID, "COMPLETED", nil)
	}
	p.WaitText(".run-head .state", "completed")
	slowest := uitest.Eval[int](p, `Math.round(window.slowest)`)
	t.Logf("%d changes taken in after %v; slowest frame %d ms", 2*steps, time.Since(began).Round(time.Millisecond), slowest)
	p.Click(".run-forms", "Timeline")
	p.WaitText(".time-row", "step-0000")
	p.Press("i")
	p.WaitText(".inbox", "Nothing waits")
	p.NoConsoleErrors()
}
