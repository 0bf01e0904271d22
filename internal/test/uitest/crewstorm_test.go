package uitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestCrewStorm checks that a lead that reports without pause, with members of very long souls,
// leaves the page usable. The time is logged and not checked, because machines differ.
func TestCrewStorm(t *testing.T) {
	t.Parallel()
	const soulBytes = 256 << 10
	reports := testsize.Pick(60, 300, 1500)
	c := uitest.NewCrewByHand(t)
	c.Do("POST", "/crew/summon", strings.NewReader(`{}`))
	c.Hatch(func(who *crew.Identity) { who.Soul = strings.Repeat("soul ", soulBytes/5) })
	p := uitest.Browse(t)
	p.Open(c.URL + "#/crew")
	p.WaitText(".seats", "Tamsin")
	uitest.Eval[bool](p, `(() => {
		window.slowest = 0; let last = performance.now(); window.asked = 0;
		const step = (now) => { window.slowest = Math.max(window.slowest, now - last); last = now; requestAnimationFrame(step); };
		const ask = window.fetch; window.fetch = (url, init) => { if (String(url).endsWith('/crew')) window.asked++; return ask(url, init); };
		requestAnimationFrame(step); return true; })()`)
	began := time.Now()
	for i := range reports {
		c.Report(i%3, 5, 6+i%3)
	}
	c.Report(0, 1, 2, 3, 5, 6, 7, 8)
	p.Until("all are awake", `document.querySelectorAll('.seat-alive:not(.seat-lead)').length === 8`)
	p.Until("the button is removed", `!document.querySelector('.crew-head .order')`)
	t.Logf("%d changes of 8 agents with %d KiB of soul each taken in after %v; slowest frame %d ms; the crew was asked for %d times",
		c.Head(), soulBytes>>10,
		time.Since(began).Round(time.Millisecond), uitest.Eval[int](p, `Math.round(window.slowest)`), uitest.Eval[int](p, `window.asked`))
	p.NoConsoleErrors()
}

// TestEggsRest checks that eggs rock, except for people who prefer reduced motion.
func TestEggsRest(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewCrewByHand(t).URL + "#/crew")
	p.Click(".crew-head", "SUMMON")
	p.Until("eggs are shown", `document.querySelectorAll('.egg').length === 8`)
	const rocking = `document.getAnimations().some(a => a.effect.target?.classList.contains('egg-body') && a.effect.getComputedTiming().duration > 1000)`
	p.Until("the eggs are not animated", `!(`+rocking+`)`)
	p.Prefer("dark", "no-preference")
	p.Until("the eggs are animated", rocking)
	if dir := os.Getenv("PICTURES"); dir != "" {
		p.Until("one egg tilts",
			`document.getAnimations().some(a => a.effect.target?.classList.contains('egg-body') && a.effect.getComputedTiming().progress > 0.62 && a.effect.getComputedTiming().progress < 0.7)`)
		p.Screenshot(filepath.Join(dir, "crew-eggs-moving.png"))
	}
	p.NoConsoleErrors()
}
