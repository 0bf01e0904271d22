package uitest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Questions are the questions of an agent and the hooks by which a test causes them. A nil hook is
// not possible on this target.
type Questions struct {
	Agent string // the agent that asks

	Ask func() string // asks to run `rm -rf build`; returns the question's id
	// asks to write a file outside of its workspace; one option has words of its own, and no answer can be saved
	Write    func()
	InWords  func() string                        // asks "Which branch?" and offers main and next
	Resume   func()                               // asks whether a conversation resumes under another model
	Withdraw func(id string)                      // the agent withdraws the question
	Refuse   func() string                        // the next answer is refused; returns the reason that the page must show
	Heard    func(t *testing.T, id string) string // the stored answer to a question, as the JSON of the request
	Know     func()                               // the agent reports its program and what it is doing
	Limit    func()                               // the agent's provider reaches its rate limit
	Use      func() []string                      // the agent and a run use something; returns text that the table of usage must show
	Hostile  func()                               // every text that an agent can choose is hostile
}

func (p *Page) asked(target Target, ask func() string) string {
	p.t.Helper()
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Questions.Agent)
	id := ask()
	p.WaitText(".place-count-now", "1")
	p.Click(".places", "Inbox")
	p.WaitText(".inbox-ask", target.Questions.Agent)
	return id
}

func (c *Questions) heard(t *testing.T, id, want string) {
	t.Helper()
	if c.Heard == nil {
		return
	}
	if got := c.Heard(t, id); got != want {
		t.Errorf("the answer to %s was %s, want %s", id, got, want)
	}
}

// PermissionGiven checks that the page shows what an agent asks, why and until when, and that a
// person can allow it once.
func PermissionGiven(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil, "ask")
	c := target.Questions
	id := p.asked(target, c.Ask)
	p.WaitText(".inbox-ask h3", "wants to run a command")
	p.WaitText(".ask-call", "rm -rf build")
	p.WaitText(".ask-hints", "deletes")
	p.WaitText(".ask-until", "is denied in")
	p.Until("the title of the tab counts the questions", `document.title.includes('(1) 1 needs you')`)
	p.Click(".inbox-ask .answer-foot", "Allow once")
	p.WaitText(".inbox", "Nothing waits for you")
	p.Until("the count is removed", `!document.querySelector('.place-count-now') && !document.title.includes('you')`)
	c.heard(t, id, `{"allow":true,"scope":"once"}`)
}

// PermissionStanding checks that an answer is saved, listed and revoked, and that another one
// applies to a session.
func PermissionStanding(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil, "ask")
	c := target.Questions
	id := p.asked(target, c.Ask)
	p.Click(".inbox-ask .answer-foot", "Always")
	p.WaitText(".ask-always", "exactly like this one")
	p.Click(".ask-always", "Always allow")
	p.WaitText(".standings", "rm -rf build")
	p.WaitText(".standings", "allowed")
	p.WaitText(".standings", "always")
	c.heard(t, id, `{"allow":true,"scope":"always"}`)
	p.Click(".standings", "Revoke")
	p.Until("no answer is saved", `!document.querySelector('.standings')`)
	id = c.Ask()
	p.WaitText(".inbox-ask", "rm -rf build")
	p.Click(".inbox-ask .answer-foot", "Allow for this session")
	p.WaitText(".standings", "for session")
	c.heard(t, id, `{"allow":true,"scope":"session"}`)
}

// AskedInWords checks that one question is answered by one of its options, and another by text.
func AskedInWords(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.InWords != nil, "ask in words")
	c := target.Questions
	id := p.asked(target, c.InWords)
	p.WaitText(".inbox-ask h3", "asks you")
	p.WaitText(".ask-words", "Which branch?")
	p.Click(".inbox-ask .ask-choices", "next")
	p.WaitText(".inbox", "Nothing waits for you")
	c.heard(t, id, `{"allow":true,"option":"next","scope":"once"}`)
	id = c.InWords()
	p.WaitText(".ask-words", "Which branch?")
	p.Click(".inbox-ask", "Send answer")
	p.Until("an empty answer is not sent: its field has the focus", `document.activeElement.tagName === 'TEXTAREA'`)
	p.Press("neither, wait for me")
	p.Click(".inbox-ask", "Send answer")
	p.WaitText(".inbox", "Nothing waits for you")
	c.heard(t, id, `{"allow":true,"text":"neither, wait for me","scope":"once"}`)
}

// AnswerRefused checks that a refusal is shown beside the button, and that a withdrawn question
// disappears.
func AnswerRefused(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Refuse != nil, "refuse an answer")
	c := target.Questions
	id := p.asked(target, c.Ask)
	words := c.Refuse()
	p.Click(".inbox-ask .answer-foot", "Deny")
	p.WaitText(".inbox-ask .fault", words)
	p.Click(".inbox-ask .answer-foot", "Deny")
	p.WaitText(".inbox", "Nothing waits for you")
	c.heard(t, id, `{"allow":false,"scope":"once"}`)
	other := c.Ask()
	p.WaitText(".inbox-ask", "rm -rf build")
	c.Withdraw(other)
	p.WaitText(".inbox", "Nothing waits for you")
}

// AsksByKeyboard finds, reads and answers a question without a mouse. Enter in a field does not
// send an answer.
func AsksByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Heard != nil, "ask")
	c := target.Questions
	p.OpenTeam(target.URL)
	p.WaitText(".roster", c.Agent)
	id := c.Ask()
	p.Press("i")
	p.WaitText(".inbox-ask", "rm -rf build")
	p.tabTo("the word with it", `e.tagName === 'INPUT'`)
	p.Press("use make clean" + kb.Enter)
	p.tabTo("the button", `e.dataset.answer === 'no'`)
	c.heard(t, id, "")
	p.Press(kb.Enter)
	p.WaitText(".inbox", "Nothing waits for you")
	c.heard(t, id, `{"allow":false,"text":"use make clean","scope":"once"}`)
	p.Until("the heading has the focus", `document.activeElement.id === 'inbox-title'`)
	p.Press("u")
	p.WaitText("#usage-title", "Usage")
}

// HostileAsks checks that hostile texts of an agent are shown as text.
func HostileAsks(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Hostile != nil, "ask with hostile words")
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Questions.Agent)
	target.Questions.Hostile()
	clean := func(where string) {
		t.Helper()
		if Eval[bool](p,
			`document.querySelector('main img, main script') !== null || document.title.includes('owned') || ({}).polluted !== undefined`) {
			t.Errorf("%s: text became markup", where)
		}
		if raw := Eval[string](p,
			`document.body.textContent + [...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.value)).join('')`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
			t.Errorf("%s: a control or an override reached the page as itself: %s", where,
				Eval[string](p,
					`[...document.querySelectorAll('*')].filter(e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).concat([...e.attributes].map(a => a.value)).some(v => /[\x1b\x07\u202e\0]/.test(v))).map(e => e.outerHTML.slice(0, 200)).join(' | ').slice(0, 600)`))
		}
		if Eval[bool](p, "!"+Fits(p)) {
			t.Errorf("%s: the page is wider than the window", where)
		}
	}
	p.Choose(target.Questions.Agent)
	p.WaitText(".conv-facts", "<img src=x")
	clean("the agent")
	p.Click(".places", "Inbox")
	p.WaitText(".inbox-ask", "<img src=x")
	p.WaitText(".standings", "<img src=x")
	p.Until("all of it is there", `document.querySelectorAll('.inbox-ask').length >= 3`)
	clean("the inbox")
	p.Press("u")
	p.WaitText(".usage", "<img src=x")
	clean("usage")
	p.Press("g")
	p.Until("all kinds are there",
		`['permission', 'question', 'resume', 'step', 'failed', 'run', 'limit'].every(k => document.querySelector('.need[data-need=' + k + ']'))`)
	p.Until("all cards are open",
		`(document.querySelectorAll('.need-toggle[aria-expanded=false]').forEach(b => b.click()), !document.querySelector('.need-toggle[aria-expanded=false]'))`)
	p.WaitText(".now-rows", "<img src=x")
	p.WaitText(".need-error", "<img src=x")
	p.WaitText(".need-file", "<img src=x")
	clean("now")
}

// ProgramKnown checks that the agent's card shows its program, its restrictions, what it is doing
// and a rate limit.
func ProgramKnown(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Know != nil, "report its program")
	c := target.Questions
	p.OpenTeam(target.URL)
	p.Choose(c.Agent)
	c.Know()
	p.WaitText(".conv-facts", "reading the tests")
	p.WaitText(".conv-facts", "opencode 1.18.33")
	p.WaitText(".conv-facts", "asks before it writes")
	c.Limit()
	p.WaitText(".conv-facts", "rate limited until")
	p.Until("the roster shows it too", `document.querySelector('.roster').textContent.includes('rate limited until')`)
	p.Click(".conv-facts", "Try again now")
	p.Until("the limit is removed", `!document.querySelector('.conv-limit')`)
	c.Ask()
	p.WaitText(".conv-facts", "asks for permission: run")
	p.Click(".conv-facts", "asks for")
	p.WaitText(".inbox-ask", "rm -rf build")
}

// UsageShown checks that usage is shown by day, by task and by agent, and links to the agent.
func UsageShown(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Use != nil, "use something")
	words := target.Questions.Use()
	p.OpenTeam(target.URL)
	p.Choose(target.Questions.Agent)
	p.Click(".figures", "all usage")
	p.WaitText("#usage-title", "Usage")
	text := ""
	for _, by := range []string{"Day", "Task", "Agent"} {
		p.Click(".usage-switch", by)
		p.WaitText("#usage-by", "By "+strings.ToLower(by))
		text += Eval[string](p, `document.querySelector('.usage').innerText`)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("the page of usage lacks %q:\n%s", word, text)
		}
	}
	p.Click(".usage", target.Questions.Agent)
	p.WaitText("#agent-title", target.Questions.Agent)
}

// AsksAccessible checks that questions, saved answers and usage break no rule of axe, at any size,
// in either theme.
func AsksAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Hostile != nil, "ask all it can")
	c := target.Questions
	c.Ask()
	c.Write()
	c.InWords()
	c.Resume()
	c.Know()
	c.Use()
	p.Open(target.URL + "#/inbox")
	p.WaitText(".inbox", "rm -rf build")
	p.Click(".inbox-ask .answer-foot", "Allow for this session")
	p.WaitText(".standings", "for session")
	c.Ask()
	p.WaitText(".inbox-ask", "rm -rf build")
	for range inViews(p) {
		for place, shown := range map[string]string{"inbox": ".inbox", "usage": ".usage", "agents/" + c.Agent + "/evidence": ".conv-facts"} {
			p.Open(target.URL + "#/" + place)
			p.Until(place+" is shown", `document.querySelector('`+shown+`')?.innerText.length > 60`)
			p.Until("nothing is wider than the window", Fits(p))
			p.Axe()
		}
	}
}
