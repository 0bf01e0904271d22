package uitest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// soulBytesMany is longer than any soul that a daemon accepts.
const soulBytesMany = 1 << 20

// HostileCrew checks that a member's name, colours, eyes, soul and texts are shown as text, and
// that the page stays usable.
func HostileCrew(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil && target.CrewStory.Edit != nil, "make up a crew")
	c := hatched(t, p, target)
	lie := Lie
	twin, rtl := "Mira", "\u202eمريم العاشرة"
	c.Edit(map[int]func(*Document){
		0: func(d *Document) {
			d.Name, d.Color, d.ColorName, d.Gender, d.Face = &lie, "red;background:url(//evil)", Lie, Lie, FaceWords{"__proto__", "constructor"}
			d.Soul = Lie + "\n" + strings.Repeat("soul ", soulBytesMany/5)
		},
		1: func(d *Document) { d.Name, d.Color = &twin, "#F2B705" },
		3: func(d *Document) { d.Name, d.Color, d.Face = &rtl, "", FaceWords{strings.Repeat("x", 1<<16), ""} },
		5: func(d *Document) { d.Status = "dancing" },
		6: func(d *Document) { d.Seat = 77 },
	})
	c.Spoken(lie, Lie)
	c.Notice(Lie)
	p.Open(target.URL + "#/crew")
	p.WaitText(".seats", "<img src=x")
	p.WaitText(".seats", "\u27e8RLO\u27e9")
	p.WaitText(".seat .seat-words", "dancing")
	p.WaitText(".seatless-title", "Without a seat")
	p.Until("both entries with the same name are listed", `[...document.querySelectorAll('.seat-name')].filter(e => e.textContent === 'Mira').length === 2`)
	p.WaitText(".noticed", "<img src=x")
	p.Click(".seats", "<img src=x")
	p.WaitText("#crew-who", "<img src=x onerror")
	p.WaitText(".soul", "Show all of it")
	p.Click(".soul", "Show all of it")
	p.WaitText(".soul", "Show less")
	if raw := Eval[string](p, `document.querySelector('#app').textContent.slice(0, 100000)`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
		t.Error("a control or an override reached the page as itself")
	}
	p.toCrew()
	p.meet("Noor") // the server takes no speaker as long as the hostile one
	p.Click(".portrait .tabs", "Transcript")
	p.WaitText(".said-box", "<img src=x onerror")
	if Eval[bool](p, `document.querySelector('.deck img, .deck script, .deck textarea') !== null || document.title.includes('owned') || document.querySelector('.deck [fill*="url"], .deck [style*="url"]') !== null`) {
		t.Error("text became markup")
	}
	if Eval[bool](p, "!"+Fits(p)) {
		t.Error("a text made the page wider than the window")
	}
	if !Eval[bool](p, `[...document.querySelectorAll('.face')].every(f => f.classList.contains('face-lead') || f.classList.contains('face-none') || f.querySelectorAll('[fill^="#"]').length > 4)`) {
		t.Error("a face lacks its colours")
	}
}

// CrewByKeyboard summons a crew, walks over it, looks at it and sends it to sleep without a mouse.
func CrewByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil, "summon a crew")
	c := target.CrewStory
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	p.Press("w")
	p.WaitText(".crew-line", "has no members yet")
	p.tabTo("the button", `e.classList.contains('crew-button')`)
	p.Press(kb.Enter)
	p.Until("eggs are shown", `document.querySelector('.seat-egg .egg')`)
	if c.Hatch != nil {
		c.Hatch()
	}
	p.count(".seat-alive:not(.seat-lead)", c.Size, "are awake")
	p.tabTo("the seats", `e.classList.contains('seat-name')`)
	at := func(seat string) {
		p.t.Helper()
		p.Until("the focus is on seat "+seat, `document.activeElement.closest('.seat')?.dataset.seat === '`+seat+`'`)
	}
	at("4")
	p.Press(kb.ArrowUp)
	at("1")
	p.Press(kb.ArrowLeft)
	at("0")
	p.Press(kb.ArrowLeft) // it is the first seat
	at("0")
	p.Press(kb.Enter)
	p.WaitText("#crew-who", c.Names[0])
	if target.CrewStory.Say != nil {
		p.Until("its soul or its words are shown", `document.querySelector('.portrait .tabs').checkVisibility()`)
		p.tabTo("the tabs", `e.id === 'side-soul'`)
		p.Press(kb.ArrowRight)
		p.Until("the other tab has the focus", `document.activeElement.id === 'side-transcript'`)
		p.Press("e")
		p.Until("the search has the focus", `document.activeElement.id === 'said-search'`)
		p.Press(kb.Escape)
		p.Until("the search is closed", `document.activeElement.id !== 'said-search'`)
	}
	p.Press(kb.Escape)
	p.Until("the crew is shown", `location.hash === '#/crew'`)
	p.tabTo("the quiet button", `e.tagName === 'BUTTON' && e.textContent.includes('Sleep')`)
	p.Press(kb.Enter)
	p.WaitText(".sure", "none is lost")
	p.Until("the safe answer has the focus", `document.activeElement.textContent === 'No'`)
	p.tabTo("the other answer", `e.textContent === 'Yes, sleep'`)
	p.Press(kb.Enter)
	p.count(".seat-dim:not(.seat-lead)", c.Size, "sleep")
	p.Press("a")
	p.WaitText(".roster", target.Agent)
}

// CrewAccessible checks that a crew breaks no rule of axe, in any state, at any size, in either
// theme.
func CrewAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil && target.CrewStory.Notice != nil, "have something noticed")
	c := target.CrewStory
	p.crewed(target)
	p.Axe() // no members yet
	p.Click(".crew-head", "SUMMON")
	p.count(".seat-egg", c.Size, "eggs")
	p.Axe()
	c.Hatch()
	c.Report(0, 2, 3)
	c.Say("Lyra", "Said with `code`.")
	c.Notice("a marker that cannot be read")
	p.WaitText(".crew-line", "3 awake, 5 asleep")
	words := c.Refuse()
	p.Click(".crew-head", "WAKE")
	p.WaitText(".crew > .fault-place", words)
	for _, v := range Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		p.toCrew()
		p.Until("nothing is wider than the window", Fits(p))
		p.Axe()
		for _, name := range []string{c.Names[0], c.Names[1], c.Lead} {
			p.meet(name)
			p.Click(".portrait .tabs", "Transcript")
			p.WaitText(".said", "messages")
			p.Axe()
			p.Until("the other tab is shown", `(document.querySelector('#side-soul').click(), document.querySelector('.soul, .notices'))`)
			p.Axe()
		}
		if t.Failed() {
			t.Fatalf("in the view %s", v.Name)
		}
	}
}
