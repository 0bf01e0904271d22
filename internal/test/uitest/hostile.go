package uitest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Lie is the name and the text of a hostile agent: markup, a script, an override of direction,
// control characters, an escape sequence.
const Lie = "<img src=x onerror=\"document.title='owned'\">\u202egnp.exe\u0007\x1b[31mred\x1b]0;owned\x07</textarea><script>document.title='owned'</script>"

// lineBytesMany is longer than any line that a screen can show.
const lineBytesMany = 1 << 20

// HostileWords checks that the names and texts of agents are shown as text, and that the page stays
// usable.
func HostileWords(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil, "make an agent say a given text")
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	if target.Liar != "" {
		p.WaitText(".roster", "<img src=x")
		p.WaitText(".roster", "\u27e8RLO\u27e9")
		p.Click(".row-head", "<img src=x")
		p.WaitText("#agent-title", "<img src=x onerror")
		if Eval[bool](p, `document.querySelector('.row img, .agent img') !== null || document.title.includes('owned')`) {
			t.Error("a name became markup")
		}
	}
	p.Choose(target.Agent)
	p.Click(".orders", "Start Agent")
	p.WaitText(".agent-title .badge", "RUNNING")
	target.Say("before\n" + Lie + "\n")
	target.Say("split \x1b[3")
	target.Say("1mhere\x1b[0m\n")
	target.Say("10%\r50%\r100%\n")
	p.WaitText(".tape", "split here") // a page that is later than the long line begins with its end
	p.WaitText(".tape", "100% drawn over 2 times")
	target.Say(strings.Repeat("x", lineBytesMany) + "\nafter\n")
	target.Say("\x1b]never ended\nstill heard\n")
	p.WaitText(".tape", "still heard")
	p.WaitText(".tape", "after")
	p.WaitText(".tape", "more characters in this line, not shown")
	p.WaitText(".tape", "<img src=x onerror")
	p.WaitText(".tape", "\u27e8RLO\u27e9gnp.exe")
	if raw := Eval[string](p, `document.querySelector('.tape').textContent`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
		t.Error("a control or an override reached the page as itself")
	}
	if Eval[bool](p, `document.querySelector('.tape img, .tape script, .tape textarea') !== null || document.title.includes('owned')`) {
		t.Error("output became markup")
	}
	p.Click(".output-bar", "Understood")
	p.WaitText(".facts", "<img src=x onerror")
	p.WaitText(".facts", "\u27e8RLO\u27e9gnp.exe")
	if Eval[bool](p, `document.querySelector('.facts img, .facts script') !== null || document.title.includes('owned')`) {
		t.Error("a fact became markup")
	}
	if raw := Eval[string](p, `document.querySelector('.facts').textContent`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
		t.Error("a control or an override reached the page as itself")
	}
	wide := Eval[bool](p, "!"+Fits(p))
	if wide {
		t.Error("a long line made the page wider than the window")
	}
}

// ReadingBack checks that a reader who scrolls up is not moved, is notified of new lines, and can go
// back to the newest.
func ReadingBack(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil, "make an agent say a given text")
	started(p, target)
	var many strings.Builder
	for i := range 400 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	target.Say(many.String())
	p.WaitText(".tape", "line 399")
	p.Until("the newest is in sight",
		`(() => { const e = document.querySelector('.tape'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
	size := Eval[[]int64](p, `[innerWidth, innerHeight]`)
	p.Resize(Size{size[0], size[1] - 120}) // the window becomes smaller, for example for a keyboard; the reader did not scroll
	p.Until("the newest is still in sight",
		`(() => { const e = document.querySelector('.tape'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
	p.Resize(Size{size[0], size[1]})
	p.Until("the newest is in sight at the old size",
		`innerHeight === `+strconv.FormatInt(size[1], 10)+
			` && (() => { const e = document.querySelector('.tape'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })() && !document.querySelector('[data-jump]')`)
	// A scroll in the same frame as the resize counts as the resize's own; a reader scrolls more than once.
	p.Until("after scrolling back, a button leads to the newest message",
		`(document.querySelector('.tape').scrollTop = 100, document.querySelector('.tape-frame')?.innerText.includes('Jump to newest'))`)
	target.Say("one more\n")
	p.WaitText(".tape-frame", "1 new, jump to newest")
	if top := Eval[float64](p, `document.querySelector('.tape').scrollTop`); top != 100 {
		t.Errorf("the reader was moved to %v, want to stay at 100", top)
	}
	if target.Finish != nil {
		target.Finish() // the next session begins and must not move the reader
		p.WaitText(".tape", "Session ended")
		if top := Eval[float64](p, `document.querySelector('.tape').scrollTop`); top != 100 {
			t.Errorf("the next session moved the reader to %v, want to stay at 100", top)
		}
		p.Click(".tape-frame", "jump to newest")
		p.WaitGone(".tape", "line 399")
		// A tab that was closed and opened shows the end again, also when the next session begins.
		target.Say(many.String())
		p.WaitText(".tape", "line 399")
		p.Until("scrolled back once more",
			`(document.querySelector('.tape').scrollTop = 100, document.querySelector('.tape-frame')?.innerText.includes('Jump to newest'))`)
		p.Click("[role=tablist]", "History")
		p.Click("[role=tablist]", "Output")
		p.WaitText(".tape", "line 399")
		target.Finish()
		p.WaitGone(".tape", "line 399")
		return
	}
	p.Click(".tape-frame", "jump to newest")
	p.Until("the newest is in sight again",
		`(() => { const e = document.querySelector('.tape'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
	p.WaitGone(".tape-frame", "jump to newest")
}
