package uitest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/rank"
)

// DispatchStory is a dispatch of a target, and the hooks by which a test controls it. The hooks are
// nil if agents work by themselves.
type DispatchStory struct {
	Name  string // of the dispatch; empty: the page begins one
	Input string // an input that fits the description of Agent
	Agent string
	File  string // the file that results from it
	Text  string // text in the file

	Deny         func() // MAIN is denied a write
	Delegate     func() // to Agent
	Made         func() // File
	Done         func() // Agent is done
	Respond      func() // MAIN has the answer
	Other        func(text string)
	Foreign      func(words string)                   // another program writes a line of its own
	Refuse       func() string                        // the next input is refused with this text
	MadeOf       func(text string)                    // a file with this text
	Edit         func(change func(*api.DispatchView)) // in all later answers
	EditDialogue func(change func(*api.DispatchDialogue))
}

// shownState returns a state in the page's spelling.
func shownState(state string) string { return strings.ToUpper(strings.ReplaceAll(state, "-", "_")) }

// sits opens the page of dispatches, and the target's dispatch.
func (p *Page) sits(target Target) {
	p.t.Helper()
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent) // the column left of the places has its width then
	p.Click(".places", "Dispatch")
	p.Until("the sessions are known", `document.querySelector('.session-list .run-rows, .session-list .empty h2')`)
	if name := target.DispatchStory.Name; name != "" {
		p.Click(".session-list", name)
		p.WaitText("#session-title", name)
	}
}

// types adds an input to the dispatch that is shown.
func (p *Page) types(text string) {
	p.t.Helper()
	p.Until("the field has the focus", `(document.querySelector('#words').focus(), document.activeElement.id === 'words')`)
	p.Press(text)
	p.Click(".say-card", "Send")
	p.Until("the field is empty", `document.querySelector('#words').value === ''`)
}

// DeniedAndDelegated checks that MAIN is denied a write, and that the agent that may write does it.
// The page of the person who asked and a second page both show the delegation, the permissions of
// the state, and the result.
func DeniedAndDelegated(t *testing.T, p *Page, target Target) {
	needs(t, target.DispatchStory != nil && target.DispatchStory.Deny != nil, "deny something in a session")
	s := target.DispatchStory
	q := Browse(t)
	q.sits(target)
	p.sits(target)
	p.WaitText(".state-now", "MAIN")
	p.WaitText(".may-cannot", "*.py")
	p.types(s.Input)
	for _, page := range []*Page{p, q} {
		page.WaitText(".convs", s.Input)
		page.WaitText(".ranked-card", s.Agent)
		page.WaitText(".place-count-dispatch", "1")
	}
	s.Deny()
	for _, page := range []*Page{p, q} {
		page.WaitText(".denials", "which MAIN cannot do")
		page.WaitText(".denial-then", s.Agent+" could do it")
	}
	s.Delegate()
	arrow := "[MAIN → " + shownState(s.Agent) + "]"
	for _, page := range []*Page{p, q} {
		page.WaitText(".state-now", shownState(s.Agent))
		page.WaitText(".state-came", arrow)
		page.WaitText(".denial-then", arrow)
		page.WaitText(".may-card", "everything")
		page.WaitText(".at-work", s.Agent)
	}
	p.types("And what comes after that?")
	q.WaitText(".waiting", "And what comes after that?")
	s.Made()
	s.Done()
	s.Respond()
	for _, page := range []*Page{p, q} {
		page.WaitText(".state-now", "MAIN")
		page.WaitText(".came-lines", "["+shownState(s.Agent)+" → MAIN]")
		page.Until("the waiting session has begun",
			`!document.querySelector('.waiting') && document.querySelectorAll('.conv-row').length >= 2`)
	}
	p.read(s)
	q.NoConsoleErrors()
}

// read opens the dispatch's first conversation, and the file that was made in it.
func (p *Page) read(s *DispatchStory) {
	p.t.Helper()
	p.Click(".convs", "conv_001")
	p.WaitText("#conv-title", "conv_001")
	p.WaitText(".dialogue", s.Input)
	p.WaitText(".dlg-move", "→ "+shownState(s.Agent))
	p.Click(".output-file", "Show")
	p.WaitText(".output-file-text", s.Text)
	p.WaitText(".output-file-acts", "Save")
	p.Click(".conv", "The whole dispatch")
	p.WaitText(".state-card", "State")
}

// SessionFromHere begins a dispatch on the page, adds inputs, is refused one, and ends it. Text of
// another program appears meanwhile.
func SessionFromHere(t *testing.T, p *Page, target Target) {
	needs(t, target.DispatchStory != nil && target.DispatchStory.Other != nil, "have another program speak in a session")
	s := target.DispatchStory
	p.sits(target)
	s.Other("said by another program")
	p.WaitText(".convs", "said by another program")
	s.Foreign("words of another program")
	p.WaitText(".came-foreign", "another program wrote this line")
	words := s.Refuse()
	p.Until("the field has the focus", `(document.querySelector('#words').focus(), document.activeElement.id === 'words')`)
	p.Press("this will be refused")
	p.Click(".say-card", "Send")
	p.WaitText(".session-head .fault-place", words)
	p.Until("nothing that was typed is lost", `document.querySelector('#words').value === 'this will be refused'`)
	p.Click(".session-head .fault-place", "Dismiss")
	if !Eval[bool](p, `document.querySelector('.session-list').checkVisibility()`) {
		p.Click(".session-head", "Dispatch")
	}
	p.Click(".session-list", "Start a dispatch")
	p.WaitText("dialog", "Who does the work")
	Eval[bool](p,
		`(() => { const e = document.querySelector('#session-mode'); e.value = 'response'; e.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`)
	p.WaitText("dialog", "messages of an inbox go to agents")
	p.Click("dialog .dialog-foot", "Start")
	p.WaitText(".state-now", "QUEUE")
	p.WaitText(".say-mute", "inbox")
	p.Click(".session-head", "End dispatch")
	p.WaitText(".sure", "permissions are no longer enforced")
	p.Click(".sure", "Yes, end it")
	p.WaitText(".session-head", "closed")
	p.WaitText(".may-card", "Permissions are not enforced")
	p.Until("there is nothing to end", `!document.querySelector('.session-end')`)
}

// SessionCut checks that a page without a connection offers nothing, and catches up by itself.
func SessionCut(t *testing.T, p *Page, target Target) {
	needs(t, target.Line != nil && target.DispatchStory != nil && target.DispatchStory.Other != nil, "cut the line")
	p.sits(target)
	target.Line.Cut()
	p.WaitText(".banners", "Cut off since")
	p.Until("nothing can be ordered",
		`[...document.querySelectorAll('.deck .order')].every(o => o.getAttribute('aria-disabled') === 'true')`)
	target.DispatchStory.Other("while the page was cut off")
	target.Line.Restore()
	p.WaitGone(".banners", "Cut off")
	p.WaitText(".convs", "while the page was cut off")
}

// HostedSession checks a dispatch that the page began and agents of the daemon serve: the agents in
// charge, the created files and the answer are shown.
func HostedSession(t *testing.T, p *Page, target Target) {
	needs(t, target.DispatchStory != nil && target.DispatchStory.Deny == nil, "have agents work in a session by themselves")
	s := target.DispatchStory
	p.sits(target)
	p.Click(".session-list", "Start a dispatch")
	p.WaitText("dialog", "Who does the work")
	p.Click("dialog .dialog-foot", "Start")
	p.WaitText(".state-now", "MAIN")
	p.WaitText(".session-head", "agents of fairlead.yaml")
	p.types(s.Input)
	p.WaitText(".came-lines", "[MAIN → "+shownState(s.Agent)+"]")
	p.WaitText(".came-lines", "["+shownState(s.Agent)+" → MAIN]")
	p.Until("the conversation is over", `document.querySelector('.conv-row') && !document.querySelector('.conv-row-open')`)
	p.WaitText(".convs", s.File)
	p.read(s)
}

// HostileSession checks that everything in a dispatch folder is shown as text: agents, files and
// texts.
func HostileSession(t *testing.T, p *Page, target Target) {
	needs(t, target.DispatchStory != nil && target.DispatchStory.EditDialogue != nil, "make up a session")
	s := target.DispatchStory
	s.Other(Lie + "\n" + strings.Repeat("x", lineBytesMany/32))
	s.Deny()
	s.MadeOf(Lie)
	s.Edit(func(d *api.DispatchView) {
		d.Agents = append(d.Agents, api.DispatchAgent{Name: Lie, Description: Lie, File: Lie})
		d.Notes, d.Layers, d.Session.Path = []string{Lie}, []api.DispatchLayer{{Name: Lie, Text: Lie}}, "/"+Lie
		x := &d.Denials[0]
		x.Tool, x.Call, x.Reason, x.Delegate, x.Row = Lie, Lie, Lie, Lie, Lie
		d.Ranking.Input, d.Ranking.Ranking.Reason = Lie+"\n"+strings.Repeat("x", lineBytesMany), Lie
		d.Ranking.Ranking.Scores = []rank.Candidate{{Name: Lie, Score: 1e308, Terms: []rank.Term{{Word: Lie, Score: -1}}}, {Name: "NaN"}}
		d.Lines[len(d.Lines)-1].Trigger = Lie
		d.Conversations[0].Summary, d.Conversations[0].Agents = Lie, []string{Lie}
	})
	s.EditDialogue(func(dialogue *api.DispatchDialogue) {
		dialogue.Summary, dialogue.Agents = Lie, []string{Lie}
		dialogue.Outputs = append(dialogue.Outputs, api.DispatchOutput{Name: Lie, Bytes: int64(len(Lie))},
			api.DispatchOutput{Name: "../../x", Bytes: 1})
		dialogue.Files = append(dialogue.Files, api.DispatchFile{Path: Lie, Summary: Lie})
		dialogue.Dialogue += "\n## 2026-11-21T15:00:00 " + Lie + "\n\n" + Lie + "\n\n```\nnever closed " + Lie +
			"\n## 2026-11-21T15:00:01 next\n\nstill a part of its own\n" + strings.Repeat("y", lineBytesMany) + "\n# head\nbelow\n"
	})
	p.sits(target)
	p.WaitText(".denials", "<img src=x onerror")
	p.WaitText(".session-pane", "\u27e8RLO\u27e9gnp.exe")
	unhurt := func() {
		t.Helper()
		if raw := Eval[string](p, `document.querySelector('#app').textContent.slice(0, 400000)`); strings.ContainsAny(raw,
			"\x1b\x07\u202e\x00") {
			t.Error("a control or an override reached the page as itself")
		}
		if Eval[bool](p,
			`document.querySelector('.deck img, .deck script, .session-pane textarea:not(#words)') !== null || document.title.includes('owned')`) {
			t.Error("text became markup")
		}
		p.Until("nothing is wider than the window",
			Fits(p)+` && document.querySelector('.session-pane').scrollWidth <= document.querySelector('.session-pane').clientWidth`)
	}
	unhurt()
	p.Click(".convs", "conv_001")
	p.WaitText(".dialogue", "never closed")
	p.WaitText(".dlg-timed .dlg-title", "next")
	p.WaitText(".dialogue", "Show all of it")
	p.Click(".output-file", "Show")
	p.WaitText(".output-file-text", "<img src=x onerror")
	unhurt()
}

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
	p.WaitText(".convs", "by keyboard, d and all")
	p.tabTo("the conversation", `e.classList.contains('conv-name')`)
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
	for range inViews(p) {
		p.Open(at)
		p.WaitText(".state-now", shownState(s.Agent))
		p.Until("nothing is wider than the window", Fits(p))
		p.Click(".may-card", "by description")
		p.Click(".may-card", "What holds MAIN")
		p.Axe()
		p.Click(".session-head", "End dispatch")
		p.WaitText(".sure", "End it?")
		p.Axe()
		p.Click(".convs", "conv_001")
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
	}
}
