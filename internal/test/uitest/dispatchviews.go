package uitest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/api"
)

// SessionByKeyboard opens a dispatch, adds an input, reads it and leaves it without a mouse.
func SessionByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.DispatchStory != nil && target.DispatchStory.Deny != nil, "have a session")
	s := target.DispatchStory
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	p.Press("d")
	p.WaitText(".session-list", s.Name)
	p.tabTo("the sessions", `e.classList.contains('run-name')`)
	p.Press(kb.Enter)
	p.WaitText("#session-title", s.Name)
	p.Press("e")
	p.Until("the field has the focus", `document.activeElement.id === 'words'`)
	p.Press("by keyboard, d and all")
	p.tabTo("the button", `e.classList.contains('order-send')`)
	p.Press(kb.Enter)
	p.WaitText(".talks", "by keyboard, d and all")
	p.tabTo("the conversation", `e.classList.contains('talk-name')`)
	p.Press(kb.Enter)
	p.WaitText("#conv-title", "conv_001")
	p.Press(kb.Escape)
	p.WaitText(".state-card", "State")
	p.tabTo("the end", `e.tagName === 'BUTTON' && e.textContent.includes('End dispatch')`)
	p.Press(kb.Enter)
	p.Until("the safe answer has the focus", `document.activeElement.textContent === 'No'`)
	p.Press(kb.Enter)
	p.Until("the dispatch continues", `document.activeElement.textContent.includes('End dispatch')`)
	p.Press(kb.Escape)
	p.Until("the sessions are shown; a wide page keeps one open beside them", `location.hash === '#/dispatch' || innerWidth > 820`)
}

// SessionsAccessible checks that dispatches break no rule of axe, at any size, in either theme.
func SessionsAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.DispatchStory != nil && target.DispatchStory.Edit != nil, "make up a session")
	s := target.DispatchStory
	s.Edit(func(d *api.DispatchView) {
		d.Notes = []string{"A line of its history changed nothing."}
		d.Layers = []api.DispatchLayer{{Name: "rules", Holds: true, Text: "what MAIN asks"}, {Name: "sandbox", Text: "no Landlock here"}}
	})
	s.Other(s.Input)
	s.Deny()
	s.Delegate()
	s.Made()
	s.Other("And then?")
	s.Foreign("words")
	p.sits(target)
	at := Eval[string](p, `location.href`)
	for _, v := range Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		p.Open(at)
		p.WaitText(".state-now", shownState(s.Agent))
		p.Until("nothing is wider than the window", Fits(p))
		p.Click(".may-card", "by description")
		p.Click(".may-card", "What holds MAIN")
		p.Axe()
		p.Click(".session-head", "End dispatch")
		p.WaitText(".sure", "End it?")
		p.Axe()
		p.Click(".talks", "conv_001")
		p.WaitText(".dialogue", s.Input)
		p.Click(".output-file", "Show")
		p.WaitText(".output-file-text", s.Text)
		p.Axe()
		p.Press("d")
		p.WaitText(".session-list", s.Name)
		p.Axe()
		p.Click(".session-list", "Start a dispatch")
		p.WaitText("dialog", "Who does the work")
		p.Axe()
		p.Press(kb.Escape)
		if t.Failed() {
			t.Fatalf("in the view %s", v.Name)
		}
	}
}
