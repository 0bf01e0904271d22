package uitest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPaletteReachesWhatNeedsYou checks that what needs a person is in the palette, so that it can
// be reached by keyboard, and that an answered question is shown if a link names it.
func TestPaletteReachesWhatNeedsYou(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n",
		"s.yaml":        "steps:\n  - ask: May I clean <b>up</b>?\n    tool: Bash\n    args: {command: rm -rf build}\n  - hang: waits\n",
	})
	p := uitest.Browse(t)
	p.Open(s.URL)
	s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
	p.WaitText(".now-head", "1 thing needs you.")
	byPalette(p, "answer clean", "Answer: coder")
	p.Until("the card has the focus",
		`location.hash === '#/inbox/q1' && document.activeElement.matches('.need') && document.activeElement.innerText.includes('rm -rf build')`)
	s.Do("POST", "/questions/q1/answer", strings.NewReader(`{"allow":false}`))
	p.WaitText(".answered", "coder asked: ")
	p.WaitText(".answered", "clean <b>up</b>?")
	p.WaitText(".answered", ": no")
	p.Axe()
	p.NoConsoleErrors()
}

// byPalette chooses an option of the palette by keyboard.
func byPalette(p *uitest.Page, typed, option string) {
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
	uitest.Eval[bool](p,
		`(() => { const f = document.querySelector('#find'); f.value = ''; f.dispatchEvent(new InputEvent('input', {bubbles: true})); return true; })()`)
	p.Press(typed)
	p.Until("the option "+option+" is there",
		`[...document.querySelectorAll('.find-option')].some(e => e.innerText.includes('`+option+`'))`)
	for range 20 {
		if uitest.Eval[bool](p,
			`(document.getElementById(document.querySelector('#find').getAttribute('aria-activedescendant'))?.innerText ?? '').includes('`+
				option+`')`) {
			break
		}
		p.Press(kb.ArrowDown)
	}
	p.Press(kb.Enter)
	p.Until("the palette is closed", `!document.querySelector('.find')`)
}

// TestPaletteOrdersTheCrew checks that the crew is summoned, sent to sleep and woken from the
// palette, which offers only what is possible now.
func TestPaletteOrdersTheCrew(t *testing.T) {
	t.Parallel()
	target := uitest.RealCrew(t)
	p := uitest.Browse(t)
	p.OpenTeam(target.URL)
	seats := func(selector string) string {
		return fmt.Sprintf(`document.querySelectorAll('.seat-%s:not(.seat-lead)').length === %d`, selector, target.CrewStory.Size)
	}
	byPalette(p, "summon", "Summon the crew")
	p.Until("the crew hatches", seats("alive"))
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
	uitest.Eval[bool](p,
		`(() => { const f = document.querySelector('#find'); f.value = ''; f.dispatchEvent(new InputEvent('input', {bubbles: true})); return true; })()`)
	p.Press("crew")
	p.Until("sleep is offered, and no summons",
		`(() => { const all = [...document.querySelectorAll('.find-option')].map(e => e.innerText).join('|'); return all.includes('Send the crew to sleep') && !all.includes('Summon the crew'); })()`)
	p.Press(kb.Escape)
	p.Until("the palette is closed", `!document.querySelector('.find')`)
	byPalette(p, "sleep", "Send the crew to sleep")
	p.Click(".sure", "Yes, sleep")
	p.Until("the crew sleeps", seats("dim"))
	byPalette(p, "wake", "Wake the crew")
	p.Until("the crew is awake again", seats("alive"))
	p.NoConsoleErrors()
}
