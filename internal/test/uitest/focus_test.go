package uitest_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestFocusWaitsForTheElement checks that the focus moves to the element for the next action, also
// if it is drawn later.
func TestFocusWaitsForTheElement(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n  tester: {driver: script, script: s.yaml}\n",
		"s.yaml":        "steps:\n  - ask: May I clean up?\n    tool: Bash\n    args: {command: rm -rf build}\n",
		"w.yaml":        "name: ship\nsteps:\n  - {id: approve, command: [\"true\", instant], human_in_the_loop: true}\n",
	})
	p := uitest.Browse(t)
	p.Open(s.URL)
	// A frame in which the page has drawn nothing yet.
	uitest.Eval[bool](p,
		`(() => { const later = requestAnimationFrame; window.requestAnimationFrame = (f) => { if (!String(f).includes('focus')) return later(f); f(performance.now()); return 1; }; return true; })()`)
	s.Do("POST", "/runs", strings.NewReader(`{"workflow":"w.yaml","run_id":"r1"}`))
	p.WaitText(".now-head", "1 thing needs you.")
	p.Click(".need", "Add a note")
	p.Until("the note has the focus", `document.activeElement.id.endsWith('-note')`)

	// With the answer the card disappears. The focus goes to the next card, and after the last one
	// to the heading.
	for _, agent := range []string{"coder", "tester"} {
		s.Do("POST", "/agents/"+agent+"/once", strings.NewReader(`{}`))
	}
	p.WaitText(".now-head", "3 things need you.")
	for n, next := range []string{
		`document.activeElement === document.querySelector('.need')`,
		`document.activeElement === document.querySelector('.need')`, `document.activeElement.id === 'now-title'`,
	} {
		uitest.Eval[bool](p, `(document.querySelector('.need').focus(), true)`)
		p.Press("a")
		p.Until("one card fewer is shown", `document.querySelectorAll('.need').length === `+string(rune('2'-n)))
		p.Until("the focus is at the next step", next)
	}

	// Enter in the list moves to the agent.
	p.Press("a")
	p.WaitText(".roster", "tester")
	p.Until("a row has the focus", `(document.querySelectorAll('.row-name')[1].focus(), document.activeElement.matches('.row-name'))`)
	p.Press(kb.Enter)
	p.Until("the agent has the focus", `document.activeElement.id === 'agent-title'`)
	p.NoConsoleErrors()
}
