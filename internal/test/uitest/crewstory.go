package uitest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
	p.Until("eggs are shown", `document.querySelector('.seat-egg .egg')`)
	if c.Hatch != nil {
		c.Hatch()
	}
	p.count(".seat-alive:not(.seat-lead)", c.Size, "are awake")
	return c
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
	return Eval[[]string](p, `[...document.querySelectorAll('.seats .seat:not(.seat-lead)')].map(s => s.querySelector('.seat-name bdi')?.textContent + ' ' + s.querySelector('.face')?.dataset.eyes + ' ' + s.querySelector('.face')?.dataset.mouth)`)
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
		page.Until("their faces are dimmed", `[...document.querySelectorAll('.seat-dim .face')].every(f => Math.abs(getComputedStyle(f).opacity - 0.4) < 0.02)`)
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
	p.Until("nothing can be ordered", `[...document.querySelectorAll('.crew .order')].every(o => o.getAttribute('aria-disabled') === 'true')`)
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
	p.Until("the newest is in sight", `(() => { const e = document.querySelector('.said-box'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
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
