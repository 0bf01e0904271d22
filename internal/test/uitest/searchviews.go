package uitest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// palette is the palette of a page.
type palette struct{ *Page }

// finds opens the palette, types, and waits until a result contains a text.
func (p palette) finds(query, words string) {
	p.t.Helper()
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
	p.replaces("#find", query)
	// The index follows a few seconds later, so the query is repeated.
	p.Until("the message is found", fmt.Sprintf(`(() => {
		if ([...document.querySelectorAll('.find-result')].some(e => e.innerText.includes(%s))) return true;
		const f = document.querySelector('#find');
		if (!(window.askedAt > Date.now() - 500)) { window.askedAt = Date.now(); f.dispatchEvent(new InputEvent('input', {bubbles: true})); }
		return false;
	})()`, quote(words)))
}

// replaces replaces the text of a field.
func (p palette) replaces(selector, text string) {
	p.t.Helper()
	Eval[bool](p.Page, fmt.Sprintf(`(() => { const f = document.querySelector(%s); f.value = ''; f.dispatchEvent(new InputEvent('input', {bubbles: true})); f.focus(); return true; })()`, quote(selector)))
	p.Press(text)
}

// walks presses the arrow key until an option with a text is chosen, and then Enter.
func (p palette) walks(words string) {
	p.t.Helper()
	for range 60 {
		if Eval[bool](p.Page, fmt.Sprintf(`(document.getElementById(document.querySelector('#find')?.getAttribute('aria-activedescendant'))?.innerText ?? '').includes(%s)`, quote(words))) {
			p.Press(kb.Enter)
			p.Until("the palette is closed", `!document.querySelector('.find')`)
			return
		}
		p.Press(kb.ArrowDown)
	}
	p.t.Fatalf("no option has %q: %s", words, p.Text(".find-list"))
}

// Found checks that an agent's text is found, that the words are marked, and that the result opens
// at its line.
func Found(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil && target.Liar == "" && target.Agent != "", "say something")
	started(p, target)
	target.Say("first line of many\nthe harbour pilot retries the upload of crates\nsomething after it\n")
	p.WaitText(".tape", "something after it")
	palette{p}.finds("pilot upload", "the harbour pilot retries the upload")
	p.Until("the words are marked", `['pilot', 'upload'].every(w => [...document.querySelectorAll('.find-result mark')].some(m => m.textContent === w))`)
	palette{p}.walks("the harbour pilot")
	p.Until("the address names the line", fmt.Sprintf(`/^#\/agents\/%s\/output\/%s-\d+\/\d+$/.test(location.hash)`, target.Agent, target.Agent))
	p.Until("the line is marked and in view", `(() => {
		const e = document.querySelector('.tape .spot');
		if (!e || !e.textContent.includes('the harbour pilot')) return false;
		const r = e.getBoundingClientRect(), box = document.querySelector('.tape').getBoundingClientRect();
		return r.top >= box.top - 1 && r.bottom <= box.bottom + 1;
	})()`)
	if Eval[bool](p, `document.querySelector('.tape .sheet').innerText.includes('first line of many')`) {
		t.Error("the output does not begin with the line that was found")
	}
	p.Click(".tape", "Show the newest output")
	p.WaitText(".tape", "first line of many")
	p.Until("the address names no line", `!/\d+$/.test(location.hash)`)
	if target.ChannelStory != nil {
		p.talks(target)
		p.say("where did we talk about barnacles?", "queue")
		p.WaitText(".say-human", "barnacles")
		p.Press(kb.Escape)
		palette{p}.finds("barnacle", "barnacles")
		palette{p}.walks("barnacles")
		p.Until("the address names the entry", fmt.Sprintf(`/^#\/channels\/%s\/\d+$/.test(location.hash)`, target.ChannelStory.Name))
		p.Until("the entry is marked", `document.querySelector('.talk .spot')?.innerText.includes('barnacles')`)
	}
	palette{p}.finds("opened running", "opened")
	palette{p}.walks("opened → running")
	p.WaitText(".history-spot", "started")
}

// CommandsByKeyboard opens pages and gives orders from the palette, without a pointer.
func CommandsByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.Finish != nil && target.Says != "" && target.Liar == "", "start an agent")
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	open := func(query, words string) {
		t.Helper()
		p.Press("/")
		p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
		palette{p}.replaces("#find", query)
		palette{p}.walks(words)
	}
	open("usag", "Usage")
	p.Until("usage is shown", `location.hash === '#/usage'`)
	open("rns", "Runs")
	p.Until("the runs are shown", `location.hash.startsWith('#/runs')`)
	open(target.Agent+" hist", target.Agent+": history")
	p.Until("the history is shown", fmt.Sprintf(`location.hash === '#/agents/%s/history'`, target.Agent))
	open("start "+target.Agent, "Start Agent: "+target.Agent)
	p.WaitText(".agent-title .badge", "RUNNING")
	open("stop agent "+target.Agent, "Stop Agent: "+target.Agent)
	p.WaitText(".agent-title", "stopping after this session")
	target.Finish()
	p.WaitText(".agent-title .badge", "IDLE")
	open("hold", "Hold the team")
	p.WaitText("dialog", "Hold the team?")
	p.Until("the dialog has the focus", `document.querySelector('dialog').contains(document.activeElement)`)
	p.Press(kb.Escape)
	p.Until("the dialog is closed", `!document.querySelector('dialog')`)
	open("new task", "New task")
	p.Until("the dialog of a task is open", `location.hash === '#/tasks' && document.querySelector('dialog:has(textarea)')?.contains(document.activeElement)`)
	p.Press(kb.Escape)
	p.Until("the dialog is closed", `!document.querySelector('dialog')`)
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
	p.Press(kb.Escape)
	p.Until("the palette is closed", `!document.querySelector('dialog')`)
	Eval[bool](p, `(dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, cancelable: true})), true)`)
	p.Until("Ctrl K opens the palette", `document.activeElement.id === 'find'`)
}

// HostileFound checks that text that tries to be markup or control characters is found and shown as
// text, and that a link of the server that leads elsewhere opens nothing.
func HostileFound(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil && target.Liar == "", "say something")
	started(p, target)
	target.Say("barque <img src=x onerror=\"document.title='owned'\"> </script> \u202eover\n")
	p.WaitText(".tape", "barque")
	palette{p}.finds("barque img", "<img src=x")
	if Eval[bool](p, `document.querySelector('.find img, .find script') !== null || document.title.includes('owned')`) {
		t.Error("words became markup")
	}
	if Eval[bool](p, `/[\u202e\u0007\u001b]/.test(document.querySelector('.find').textContent)`) {
		t.Error("an override reached the page as itself")
	}
	bad := Eval[[]string](p, `import('/search/words.js').then(m => ['javascript:alert(1)', 'https://elsewhere/', '//x', '#/a b', '#"x', null, 7, '#/agents/x'].map(l => m.linkOf(l)).filter(Boolean))`)
	if len(bad) != 1 || bad[0] != "#/agents/x" {
		t.Errorf("links that are followed: %q", bad)
	}
	pieces := Eval[string](p, `import('/search/words.js').then(m => m.piecesOf('a\u{1f6a2}bcd', [[1, 2], [1, 3], [3, 99], [2, 4]]).map(x => (x.hit ? '[' : '') + x.text + (x.hit ? ']' : '')).join('|'))`)
	if pieces != "a|[\U0001f6a2]|[bc]|d" {
		t.Errorf("pieces: %s", pieces)
	}
}

// SearchAccessible checks that the palette breaks no rule of axe, at any size, in either theme.
func SearchAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil && target.Liar == "", "say something")
	started(p, target)
	target.Say("the dredger clears the channel\n")
	p.WaitText(".tape", "dredger")
	for _, v := range Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		p.Press("/")
		p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
		palette{p}.replaces("#find", " ")
		p.WaitText(".find-list", "Usage")
		p.Axe()
		p.Press(kb.Escape)
		p.Until("the palette is closed", `!document.querySelector('dialog')`)
		palette{p}.finds("dredger", "dredger clears")
		p.Until("the options name the chosen one", `document.getElementById(document.querySelector('#find').getAttribute('aria-activedescendant'))?.getAttribute('aria-selected') === 'true'`)
		p.Axe()
		p.Until("nothing is wider than the window", Fits(p)+` && document.querySelector('.find').getBoundingClientRect().right <= innerWidth && document.querySelector('.find-list').scrollWidth <= document.querySelector('.find-list').clientWidth`)
		palette{p}.walks("dredger clears")
		p.Until("the line is marked", `document.querySelector('.tape .spot')`)
		p.Axe()
		if t.Failed() {
			t.Fatalf("in the view %s", v.Name)
		}
	}
}
