package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestRefetchPausesAfterAnAnswer checks that a view is requested as soon as something changes after
// a quiet time, and less often while much changes.
func TestRefetchPausesAfterAnAnswer(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.OpenTeam(uitest.RealTarget(t, "").URL)
	got := uitest.Eval[[]float64](p, `(async () => {
		const { Refetch } = await import('/shell/refetch.js');
		const now = performance.now, later = window.setTimeout, pauses = [];
		let clock = 1e9, due = [];
		performance.now = () => clock;
		window.setTimeout = (f, ms) => { pauses.push(ms); due.push(f); return due.length; };
		const turn = () => new Promise((go) => later(go, 0));
		try {
			const view = new Refetch(async () => { clock += 10; }, 500);
			view.want();            // quiet until now
			due.pop()();
			await turn();           // it was answered 10 ms later
			view.want();            // at once something changes again
			view.want();            // and again: one request serves both
			clock += 520;
			due.pop()();
			await turn();
			clock += 5000;
			view.want();            // quiet for long
			return pauses;
		} finally { performance.now = now; window.setTimeout = later; }
	})()`)
	want := []float64{16, 520, 16}
	if len(got) != len(want) {
		t.Fatalf("pauses %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("pauses %v, want %v", got, want)
		}
	}
}
