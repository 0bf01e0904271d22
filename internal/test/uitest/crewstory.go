package uitest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// CrewStory is a crew that a target can summon and that has no members yet. The hooks are nil if
// the lead answers by itself.
type CrewStory struct {
	Lead  string
	Size  int      // of the crew
	Names []string // the first members by seat

	Hatch  func()             // every member registers, and the lead reports it
	Report func(seats ...int) // the lead reports these members as alive
	Ends   func()             // its session ends

	Woken         func() []string                       // the members that the last wake request named
	Say           func(speaker, text string)            // the lead or a member speaks in the lead's session
	Notice        func(text string)                     // the lead sends a faulty marker
	Edit          func(changes map[int]func(*Document)) // changes members by seat in all later answers
	Spoken        func(speaker, text string)            // the only message in all later transcripts
	LeaveOutSouls func()
	Refuse        func() string // the next wake is refused with this text
}

// count waits until this number of seats matches.
func (p *Page) count(selector string, n int, what string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%d %s", n, what), fmt.Sprintf(`document.querySelectorAll(%q).length === %d`, selector, n))
}

// crewed opens the crew's page.
func (p *Page) crewed(target Target) {
	p.t.Helper()
	p.OpenTeam(target.URL)
	p.Click(".places", "Crew")
	p.Until("the seats are shown", `document.querySelectorAll('.seats .seat').length === 9`)
}

// hatched opens the crew's page, summons a crew and waits for its members.
func hatched(t *testing.T, p *Page, target Target) *CrewStory {
	needs(t, target.CrewStory != nil, "summon a crew")
	c := target.CrewStory
	p.crewed(target)
	p.Click(".crew-head", "SUMMON")
	wakes(p, c)
	return c
}

// wakes waits until the members of a crew that was summoned are awake. Eggs are there to be seen if the test lets them hatch; a lead may
// do that before a slow page is drawn.
func wakes(p *Page, c *CrewStory) {
	p.t.Helper()
	if c.Hatch != nil {
		p.Until("eggs are shown", `document.querySelector('.seat-egg .egg')`)
		c.Hatch()
	}
	p.count(".seat-alive:not(.seat-lead)", c.Size, "are awake")
}

// toCrew goes back to the seats if a member is shown over them.
func (p *Page) toCrew() {
	p.t.Helper()
	if !Eval[bool](p, `document.querySelector('.crew').checkVisibility()`) {
		p.Click(".portrait", "Crew")
	}
	p.Until("the seats are in sight", `document.querySelector('.crew').checkVisibility()`)
}

// meet shows one member.
func (p *Page) meet(name string) {
	p.t.Helper()
	p.toCrew()
	p.Click(".seats", name)
	p.WaitText("#crew-who", name)
	p.Until("the member is in sight", `document.querySelector('#crew-who').checkVisibility()`)
}

// faces returns the parts of each member's face, by seat.
func (p *Page) faces() []string {
	p.t.Helper()
	return Eval[[]string](p,
		`[...document.querySelectorAll('.seats .seat:not(.seat-lead)')].map(s => s.querySelector('.seat-name bdi')?.textContent + ' ' + s.querySelector('.face')?.dataset.eyes + ' ' + s.querySelector('.face')?.dataset.mouth)`)
}

// SummonedAndWoken checks eggs, faces, sleep, and the same faces after a wake, on all pages.
func SummonedAndWoken(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil, "summon a crew")
	c := target.CrewStory
	q := Browse(t)
	q.crewed(target)
	q.WaitText(".crew-line", "has no members yet")
	p.crewed(target)
	p.Click(".crew-head", "SUMMON")
	if c.Hatch != nil { // otherwise the lead does it, possibly before a slow page is drawn
		for _, page := range []*Page{p, q} {
			page.Until("eggs are shown", `document.querySelector('.seat-egg .egg')`)
		}
		p.count(".seat-egg", c.Size, "eggs")
		p.WaitText(".crew-head .order", "WAKING\u2026")
		c.Hatch()
	}
	for _, page := range []*Page{p, q} {
		page.count(".seat-alive:not(.seat-lead)", c.Size, "are awake")
		page.Until("there is no button", `!document.querySelector('.crew-head .order')`)
		page.WaitText(".seats", c.Names[0])
		page.WaitText(".seat-alive .seat-words", "alive")
		page.WaitText(".place-count-crew", fmt.Sprint(c.Size))
	}
	before := p.faces()
	p.Click(".crew-foot", "Sleep")
	p.WaitText(".sure", "none is lost")
	p.Click(".sure", "Yes, sleep")
	for _, page := range []*Page{p, q} {
		page.count(".seat-dim:not(.seat-lead)", c.Size, "sleep")
		page.WaitText(".crew-head .order", "WAKE")
		page.Until("their faces are dimmed",
			`[...document.querySelectorAll('.seat-dim .face')].every(f => Math.abs(getComputedStyle(f).opacity - 0.4) < 0.02)`)
		page.Until("the lead is asleep", `document.querySelector('.seat-lead').dataset.status === 'asleep'`)
	}
	q.Click(".crew-head", "WAKE")
	if c.Report != nil {
		p.WaitText(".crew-head .order", "WAKING\u2026")
		p.WaitText(".crew-line", "Asking "+c.Lead)
		c.Report(0, 1, 2)
		p.count(".seat-alive:not(.seat-lead)", 3, "are awake")
		q.WaitText(".crew-line", "3 awake, 5 asleep")
		c.Report(seatsOf...)
	}
	for _, page := range []*Page{p, q} {
		page.count(".seat-alive:not(.seat-lead)", c.Size, "are awake again")
	}
	if after := p.faces(); !slices.Equal(before, after) {
		t.Errorf("other faces woke than fell asleep:\n%q\n%q", before, after)
	}
	q.NoConsoleErrors()
}

// CrewCutAndRestored checks that a page without a connection shows no member as awake and offers no
// command, and that it catches up by itself.
func CrewCutAndRestored(t *testing.T, p *Page, target Target) {
	needs(t, target.Line != nil, "cut the line")
	c := hatched(t, p, target)
	Eval[bool](p, `(window.notReloaded = true)`)
	target.Line.Cut()
	p.WaitText(".banners", "Cut off since")
	p.count(".seat-dim", c.Size+1, "are dimmed, the lead with them")
	p.WaitText(".crew-line", "not known which members are awake")
	p.Until("no member is shown as awake", `!document.querySelector('.place-count-crew')`)
	p.Until("nothing can be ordered",
		`[...document.querySelectorAll('.crew .order')].every(o => o.getAttribute('aria-disabled') === 'true')`)
	awake := c.Size
	if c.Report != nil {
		c.Report(0, 2)
		awake = 2
	}
	target.Line.Restore()
	p.WaitGone(".banners", "Cut off")
	p.count(".seat-alive:not(.seat-lead)", awake, "are awake")
	p.Until("the page was not loaded again", `window.notReloaded`)
}

// CrewRefused checks that a refusal is shown at the button in its own text until it is dismissed.
func CrewRefused(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil && target.CrewStory.Refuse != nil, "refuse to wake")
	c := hatched(t, p, target)
	c.Ends()
	p.WaitText(".crew-head .order", "WAKE")
	words := c.Refuse()
	p.Click(".crew-head", "WAKE")
	p.WaitText(".crew > .fault-place", words)
	p.count(".seat-dim:not(.seat-lead)", c.Size, "still sleep")
	p.Click(".crew > .fault-place", "Dismiss")
	p.WaitGone(".crew > .fault-place", words)
	p.meet(c.Names[1])
	words = c.Refuse()
	p.Click(".portrait-head", "Wake "+c.Names[1])
	p.WaitText(".portrait > .fault-place", words)
}

// OneIsWoken checks that one member is woken from its own page, and no other member is.
func OneIsWoken(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil && target.CrewStory.Woken != nil, "see whom an order to wake names")
	c := hatched(t, p, target)
	c.Report(0, 2, 3, 5, 6, 7, 8)
	p.WaitText(".crew-line", "7 awake, 1 asleep")
	p.meet(c.Names[1])
	p.WaitText(".portrait-words", "asleep")
	p.Click(".portrait-head", "Wake "+c.Names[1])
	p.WaitText(".portrait-words", "no report")
	p.Until("the request cannot be repeated", `document.querySelector('.portrait-head .order').getAttribute('aria-disabled') === 'true'`)
	if who := c.Woken(); !slices.Equal(who, []string{"agent-2"}) {
		t.Errorf("the order to wake named %q, want agent-2 alone", who)
	}
	c.Report(seatsOf...)
	p.WaitText(".portrait-words", "alive")
	p.Until("there is nothing to wake", `!document.querySelector('.portrait-head .order')`)
}

// manySaid is more than one page of a transcript.
const manySaid = 150

// CrewRead checks that souls and transcripts can be read, searched and followed, and that notices
// are shown.
func CrewRead(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil && target.CrewStory.Say != nil, "let a member of a crew speak")
	c := hatched(t, p, target)
	c.LeaveOutSouls() // each soul is requested separately then
	p.crewed(target)
	p.meet("Lyra")
	p.WaitText(".soul", "position on the wager")
	for i := range manySaid {
		c.Say("Lyra", fmt.Sprintf("This is thought %d of mine.", i))
		c.Say("Kael", "Not hers.")
	}
	p.Click(".portrait .tabs", "Transcript")
	p.WaitText(".said-box", "thought 149 of mine")
	p.WaitGone(".said-box", "Not hers")
	p.Until("the newest is in sight",
		`(() => { const e = document.querySelector('.said-box'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
	c.Say("Lyra", "One more, while you look.")
	p.WaitText(".said-box", "One more, while you look")
	p.Click(".said-box", "Earlier messages")
	p.WaitText(".said-box", "thought 31 of mine")
	p.Click(".said-box", "Earlier messages")
	p.WaitText(".said-box", "thought 0 of mine")
	p.WaitText(".said-box", "No earlier messages")
	p.Until("the search has the focus", `(document.querySelector('#said-search').focus(), document.activeElement.id === 'said-search')`)
	p.Press("THOUGHT 7 ")
	p.WaitGone(".said-box", "thought 149")
	p.WaitText(".said-box", "thought 7 of mine")
	c.Notice("seat 1 is held by Kael; Nemo cannot register there")
	p.toCrew()
	p.WaitText(".noticed", "Nemo cannot register there")
	p.Click(".noticed", "Dismiss")
	p.Until("the notice is dismissed", `!document.querySelector('.noticed')`)
	p.meet(c.Lead)
	p.Click(".portrait .tabs", "Notices")
	p.WaitText(".notices", "Nemo cannot register there")
	p.Click(".portrait .tabs", "Transcript")
	p.WaitText(".said", "No messages yet")
}

// drop drops files on the seats.
func (p *Page) drop(files map[string]string) {
	p.t.Helper()
	var add strings.Builder
	for name, text := range files {
		fmt.Fprintf(&add, "d.items.add(new File([%s], %s, {type: 'application/json'}));", quote(text), quote(name))
	}
	Eval[bool](p, `(() => { const d = new DataTransfer(); `+add.String()+`
		const at = document.querySelector('.seats');
		for (const kind of ['dragenter', 'dragover']) at.dispatchEvent(new DragEvent(kind, {dataTransfer: d, bubbles: true, cancelable: true}));
		requestAnimationFrame(() => requestAnimationFrame(() => at.dispatchEvent(new DragEvent('drop', {dataTransfer: d, bubbles: true, cancelable: true}))));
		return true; })()`)
}

// CrewTakenIn checks that a dropped document appears on its seat, and that a refused one is
// reported.
func CrewTakenIn(t *testing.T, p *Page, target Target) {
	needs(t, target.CrewStory != nil, "have a crew")
	p.crewed(target)
	one := `{"type":"agent-identity","status":"alive","name":"Wren","color":"#66aa88","colorName":"Fern","gender":"woman","gridPosition":6,"faceVariant":{"eyes":"round","mouth":"smile"},"individuationArtifact":"I am Wren.","createdAt":"2026-02-16T00:00:00.000Z","lastAliveAt":null,"lastSessionId":null}`
	p.drop(map[string]string{"wren.json": one})
	p.WaitText(".imported", "Wren sits on seat 6")
	p.WaitText(".seats", "Wren")
	p.count(".seat-dim:not(.seat-lead)", 1, "is not known to be awake")
	p.WaitText(".crew-head .order", "WAKE")
	p.drop(map[string]string{"twin.json": strings.Replace(one, "Wren", "Wrenna", 1), "broken.json": `{"name":`})
	p.WaitText(".imported", "seat 6 is taken")
	p.WaitText(".imported", "broken.json")
	p.Click(".imported", "Dismiss")
	p.WaitGone(".imported", "seat 6")
	p.Until("nothing covers the seats", `!document.querySelector('.crew-over')`)
}

// RealCeremony is the crew of examples/crew, whose lead answers by itself.
func RealCeremony(lead string) *CrewStory {
	return &CrewStory{Lead: lead, Size: len(seatsOf), Names: []string{"Lyra", "Kael"}}
}

// seatsOf are the seats in the order in which they are filled: all but the lead's.
var seatsOf = []int{0, 1, 2, 3, 5, 6, 7, 8}

// Document is one member of the crew as the API shows it, as far as a story changes it.
type Document struct {
	Name      *string   `json:"name"`
	Status    string    `json:"status"`
	Color     string    `json:"color"`
	ColorName string    `json:"colorName"`
	Gender    string    `json:"gender"`
	Seat      int       `json:"gridPosition"`
	Face      FaceWords `json:"faceVariant"`
	Soul      string    `json:"individuationArtifact"`
}

// FaceWords are what a member's face is drawn from.
type FaceWords struct {
	Eyes  string `json:"eyes"`
	Mouth string `json:"mouth"`
}

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
			d.Name, d.Color, d.ColorName, d.Gender, d.Face = &lie, "red;background:url(//evil)", Lie, Lie,
				FaceWords{"__proto__", "constructor"}
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
	p.Until("both entries with the same name are listed",
		`[...document.querySelectorAll('.seat-name')].filter(e => e.textContent === 'Mira').length === 2`)
	p.WaitText(".noticed", "<img src=x")
	p.Click(".seats", "<img src=x")
	p.WaitText("#crew-who", "<img src=x onerror")
	p.WaitText(".soul", "Show all of it")
	p.Click(".soul", "Show all of it")
	p.WaitText(".soul", "Show less")
	if raw := Eval[string](p, `document.querySelector('#app').textContent.slice(0, 100000)`); strings.ContainsAny(raw,
		"\x1b\x07\u202e\x00") {
		t.Error("a control or an override reached the page as itself")
	}
	p.toCrew()
	p.meet("Noor") // the server takes no speaker as long as the hostile one
	p.Click(".portrait .tabs", "Transcript")
	p.WaitText(".said-box", "<img src=x onerror")
	if Eval[bool](p,
		`document.querySelector('.deck img, .deck script, .deck textarea') !== null || document.title.includes('owned') || document.querySelector('.deck [fill*="url"], .deck [style*="url"]') !== null`) {
		t.Error("text became markup")
	}
	if Eval[bool](p, "!"+Fits(p)) {
		t.Error("a text made the page wider than the window")
	}
	if !Eval[bool](p,
		`[...document.querySelectorAll('.face')].every(f => f.classList.contains('face-lead') || f.classList.contains('face-none') || f.querySelectorAll('[fill^="#"]').length > 4)`) {
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
	wakes(p, c)
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
	for range inViews(p) {
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
	}
}
