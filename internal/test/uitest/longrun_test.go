package uitest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestLongRun checks that a run of a thousand steps that all change leaves the page usable.
func TestLongRun(t *testing.T) {
	t.Parallel()
	steps := testsize.Pick(300, 1000, 1000)
	var plan strings.Builder
	plan.WriteString("name: long\nsteps:\n")
	for i := range steps {
		fmt.Fprintf(&plan, "  - {id: step-%04d, command: [\"true\", instant]", i)
		if i > 0 {
			fmt.Fprintf(&plan, ", needs: [step-%04d]", (i-1)/2)
		}
		if i%100 == 99 {
			fmt.Fprintf(&plan, ", loop_back_to: step-%04d", (i-1)/2)
		}
		plan.WriteString("}\n")
	}
	s := uitest.NewServer(t, map[string]string{"fairlead.yaml": uitest.OneAgent["fairlead.yaml"], "long.yaml": plan.String()})
	s.Do("POST", "/hold", strings.NewReader(`{}`))
	s.Do("POST", "/runs", strings.NewReader(`{"workflow":"long.yaml"}`))
	p := uitest.Browse(t)
	p.OpenTeam(s.URL)
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
	before := s.Head()
	s.Do("POST", "/unhold", strings.NewReader(`{}`))
	p.WaitText(".run-head .state", "completed")
	slowest := uitest.Eval[int](p, `Math.round(window.slowest)`)
	t.Logf("%d changes taken in after %v; slowest frame %d ms", s.Head()-before, time.Since(began).Round(time.Millisecond), slowest)
	p.Click(".run-forms", "Timeline")
	p.WaitText(".time-row", "step-0000")
	p.Press("i")
	p.WaitText(".inbox", "Nothing waits")
	p.NoConsoleErrors()
}
