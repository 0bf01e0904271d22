package uitest

import (
	"strings"
	"testing"
)

// HostileAsks checks that hostile texts of an agent are shown as text.
func HostileAsks(t *testing.T, p *Page, target Target) {
	needs(t, target.Questions != nil && target.Questions.Hostile != nil, "ask with hostile words")
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Questions.Agent)
	target.Questions.Hostile()
	clean := func(where string) {
		t.Helper()
		if Eval[bool](p, `document.querySelector('main img, main script') !== null || document.title.includes('owned') || ({}).polluted !== undefined`) {
			t.Errorf("%s: text became markup", where)
		}
		if raw := Eval[string](p, `document.body.textContent + [...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.value)).join('')`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
			t.Errorf("%s: a control or an override reached the page as itself: %s", where, Eval[string](p, `[...document.querySelectorAll('*')].filter(e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).concat([...e.attributes].map(a => a.value)).some(v => /[\x1b\x07\u202e\0]/.test(v))).map(e => e.outerHTML.slice(0, 200)).join(' | ').slice(0, 600)`))
		}
		if Eval[bool](p, "!"+Fits(p)) {
			t.Errorf("%s: the page is wider than the window", where)
		}
	}
	p.Choose(target.Questions.Agent)
	p.WaitText(".talked", "<img src=x")
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
	p.Until("all kinds are there", `['permission', 'question', 'resume', 'step', 'failed', 'run', 'limit'].every(k => document.querySelector('.need[data-need=' + k + ']'))`)
	p.Until("all cards are open", `(document.querySelectorAll('.need-toggle[aria-expanded=false]').forEach(b => b.click()), !document.querySelector('.need-toggle[aria-expanded=false]'))`)
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
	p.WaitText(".talked", "reading the tests")
	p.WaitText(".talked", "opencode 1.18.33")
	p.WaitText(".talked", "asks before it writes")
	c.Limit()
	p.WaitText(".talked", "rate limited until")
	p.Until("the roster shows it too", `document.querySelector('.roster').textContent.includes('rate limited until')`)
	p.Click(".talked", "Try again now")
	p.Until("the limit is removed", `!document.querySelector('.talked-limit')`)
	c.Ask()
	p.WaitText(".talked", "asks for permission: run")
	p.Click(".talked", "asks for")
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
	for _, v := range Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		for place, shown := range map[string]string{"inbox": ".inbox", "usage": ".usage", "agent/" + c.Agent + "/evidence": ".talked"} {
			p.Open(target.URL + "#/" + place)
			p.Until(place+" is shown", `document.querySelector('`+shown+`')?.innerText.length > 60`)
			p.Until("nothing is wider than the window", Fits(p))
			p.Axe()
		}
		if t.Failed() {
			t.Fatalf("in the view %s", v.Name)
		}
	}
}
