package uitest_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// What needs a person is in the palette, so that the keyboard reaches it; a question that was answered is shown where a link names it.
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
	run := func(typed, option string) {
		t.Helper()
		p.Press("/")
		p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
		uitest.Eval[bool](p, `(() => { const f = document.querySelector('#find'); f.value = ''; f.dispatchEvent(new InputEvent('input', {bubbles: true})); return true; })()`)
		p.Press(typed)
		p.Until("the option "+option+" is there", `[...document.querySelectorAll('.find-option')].some(e => e.innerText.includes('`+option+`'))`)
		for range 20 {
			if uitest.Eval[bool](p, `(document.getElementById(document.querySelector('#find').getAttribute('aria-activedescendant'))?.innerText ?? '').includes('`+option+`')`) {
				break
			}
			p.Press(kb.ArrowDown)
		}
		p.Press(kb.Enter)
		p.Until("the palette is closed", `!document.querySelector('.find')`)
	}
	run("answer clean", "Answer: coder")
	p.Until("the card has the focus", `location.hash === '#/inbox/q1' && document.activeElement.matches('.need') && document.activeElement.innerText.includes('rm -rf build')`)
	s.Do("POST", "/questions/q1/answer", strings.NewReader(`{"allow":false}`))
	p.WaitText(".answered", "coder asked: ")
	p.WaitText(".answered", "clean <b>up</b>?")
	p.WaitText(".answered", ": no")
	p.Axe()
	p.NoConsoleErrors()
}
