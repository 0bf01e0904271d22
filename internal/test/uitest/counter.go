package uitest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Counter is where agents put questions, and what a test has to do for it. A hook that is nil is
// something that this target cannot do on purpose.
type Counter struct {
	Agent string // who asks

	Ask      func() string                        // it wants to run `rm -rf build`, which the file gives as its call; the question's id
	Write    func()                               // it wants to write a file outside of its workspace, which no answer can stand for, with an answer of its own words
	InWords  func() string                        // it asks "Which branch?" and offers main and next
	Resume   func()                               // it would go on under another model
	Withdraw func(id string)                      // it does not want to know any more
	Refuse   func() string                        // the next answer is refused; these words must be shown
	Heard    func(t *testing.T, id string) string // the body of the answer to a question, as JSON
	Know     func()                               // its program, its words, and a limit of its provider become known
	Use      func()                               // it has used something, on a day and in a run
	Lie      func()                               // everything that an agent can word is a lie
}

func (p *Page) asked(target Target, ask func() string) string {
	p.t.Helper()
	p.Open(target.URL)
	p.WaitText(".roster", target.Counter.Agent)
	id := ask()
	p.WaitText(".place-count-inbox", "1")
	p.Click(".places", "Inbox")
	p.WaitText(".inbox-ask", target.Counter.Agent)
	return id
}

func (c *Counter) heard(t *testing.T, id, want string) {
	t.Helper()
	if c.Heard == nil {
		return
	}
	if got := c.Heard(t, id); got != want {
		t.Errorf("the answer to %s was %s, want %s", id, got, want)
	}
}

// PermissionGiven: somebody is asked, sees what and why and until when, and allows it once.
func PermissionGiven(t *testing.T, p *Page, target Target) {
	needs(t, target.Counter != nil, "ask")
	c := target.Counter
	id := p.asked(target, c.Ask)
	p.WaitText(".inbox-ask h3", "wants to run a command")
	p.WaitText(".ask-call", "rm -rf build")
	p.WaitText(".ask-hints", "deletes")
	p.WaitText(".ask-until", "is denied in")
	p.Until("the tab tells that somebody is waited for", `document.title.includes('1 waiting for you')`)
	p.Click(".inbox-ask .answer-foot", "Allow once")
	p.WaitText(".inbox", "Nothing waits for you")
	p.Until("the count is gone", `!document.querySelector('.place-count-inbox') && !document.title.includes('waiting for you')`)
	c.heard(t, id, `{"allow":true,"scope":"once"}`)
}

// PermissionStanding: an answer is left standing, is listed, and is taken back; another is given for a session.
func PermissionStanding(t *testing.T, p *Page, target Target) {
	needs(t, target.Counter != nil, "ask")
	c := target.Counter
	id := p.asked(target, c.Ask)
	p.Click(".inbox-ask .answer-foot", "Always")
	p.WaitText(".ask-always", "exactly like this one")
	p.Click(".ask-always", "Always allow")
	p.WaitText(".standings", "rm -rf build")
	p.WaitText(".standings", "allowed")
	p.WaitText(".standings", "always")
	c.heard(t, id, `{"allow":true,"scope":"always"}`)
	p.Click(".standings", "Revoke")
	p.Until("nothing stands any more", `!document.querySelector('.standings')`)
	id = c.Ask()
	p.WaitText(".inbox-ask", "rm -rf build")
	p.Click(".inbox-ask .answer-foot", "Allow for this session")
	p.WaitText(".standings", "for session")
	c.heard(t, id, `{"allow":true,"scope":"session"}`)
}

// AskedInWords: a question is answered by one of its options, another in words of one's own.
func AskedInWords(t *testing.T, p *Page, target Target) {
	needs(t, target.Counter != nil && target.Counter.InWords != nil, "ask in words")
	c := target.Counter
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

// AnswerRefused: what came too late is said at its button; what is taken back goes by itself.
func AnswerRefused(t *testing.T, p *Page, target Target) {
	needs(t, target.Counter != nil && target.Counter.Refuse != nil, "refuse an answer")
	c := target.Counter
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

// AsksByKeyboard: a question is found, read and answered without a mouse; Enter in a field allows nothing.
func AsksByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.Counter != nil && target.Counter.Heard != nil, "ask")
	c := target.Counter
	p.Open(target.URL)
	p.WaitText(".roster", c.Agent)
	id := c.Ask()
	p.Press("i")
	p.WaitText(".inbox-ask", "rm -rf build")
	p.tabTo("the word with it", `e.tagName === 'INPUT'`)
	p.Press("use make clean" + kb.Enter)
	p.tabTo("the button", `e.classList.contains('order-stop')`)
	c.heard(t, id, "")
	p.Press(kb.Enter)
	p.WaitText(".inbox", "Nothing waits for you")
	c.heard(t, id, `{"allow":false,"text":"use make clean","scope":"once"}`)
	p.Until("the keyboard has a place", `document.activeElement.id === 'inbox-title'`)
	p.Press("u")
	p.WaitText("#usage-title", "Usage")
}
