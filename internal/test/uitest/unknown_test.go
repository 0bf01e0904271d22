package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestNowClaimsNothingBeforeItKnows checks that Now claims nothing before the server has answered.
func TestNowClaimsNothingBeforeItKnows(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, uitest.OneAgent)
	p := uitest.Browse(t)
	p.Open(s.URL)
	p.WaitText(".now", "Nothing is queued.")
	// Answers to requests of before arrive afterwards; later requests get none.
	uitest.Eval[bool](p, `Promise.all([import('/runs/state.js'), import('/now/state.js')]).then(async ([runs, now]) => {
		const ask = window.fetch, late = [];
		let held = true;
		window.fetch = (...of) => (/\/(runs|working|inbox)/.test(String(of[0]?.url ?? of[0]))
			? (held ? ask(...of).then((answer) => new Promise((go) => late.push(() => go(answer)))) : new Promise(() => {})) : ask(...of));
		now.refreshNow(true);
		while (late.length === 0) await new Promise((go) => setTimeout(go, 10));
		held = false;
		runs.forgetRuns(); now.forgetNow();
		late.forEach((go) => go());
		await new Promise((go) => setTimeout(go, 100));
		return true; })`)
	p.WaitText("#now-title", "Asking Fairlead")
	p.Until("no section says that it has nothing",
		`[...document.querySelectorAll('[aria-labelledby=now-next], [aria-labelledby=now-working]')].every(e => e.innerText.includes('Asking') && !/\d/.test(e.innerText))`)
	p.NoConsoleErrors()
}
