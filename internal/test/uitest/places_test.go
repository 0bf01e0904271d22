package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPlaceStaysInSight checks that on a phone the link to the present part stays in sight when a count before it comes.
func TestPlaceStaysInSight(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, uitest.OneAgent)
	p := uitest.Browse(t)
	p.Resize(uitest.Size{Width: 390, Height: 844})
	p.Open(s.URL + "#/usage")
	p.Until("the link to this part is in sight", uitest.PlaceInSight)
	// No answer of the server takes the runs away again.
	uitest.Eval[bool](p, `import('/runs/state.js').then(({ runs, forgetRuns }) => {
		const ask = window.fetch;
		window.fetch = (...of) => (/\/runs/.test(String(of[0]?.url ?? of[0])) ? new Promise(() => {}) : ask(...of));
		forgetRuns();
		runs.value = Array.from({ length: 120 }, (_, i) => ({ run_id: 'r' + i, status: 'running' }));
		return true; })`)
	p.WaitText(".places", "99+")
	p.Until("the link is still in sight", uitest.PlaceInSight)
	p.NoConsoleErrors()
}
