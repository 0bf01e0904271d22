package uitest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// ChannelStory is a channel of a target with two agents in its queue, and the hooks by which a test
// controls them. An agent keeps its turn if the message contains the word slow; otherwise it says
// something and completes the turn. The hooks are nil if the agents act by themselves.
type ChannelStory struct {
	Name      string
	First     string // the agent with the first turn; empty: the one that the page shows
	Next      string // the agent with the second turn
	Says      string // text that an agent says by itself
	SaysAside string // text in its answer to a person who asks which quay

	Done    func(text string) // the agent with the turn says this and completes it
	Aside   func(text string) // the agent that was interrupted answers the person
	TimeOut func()            // the turn times out
	Wait    func(why string)  // the agent with the turn asks to wait; nil: not possible
	Late    func(text string) // an agent speaks after its turn
	Refuse  func() string     // the next skip is refused with this text
	Deaf    func() string     // the same for the next message
}

// slowWords make the agent that receives them keep its turn.
const slowWords = "please be slow"

// openChannel opens the channel of the story.
func (p *Page) openChannel(target Target) {
	p.t.Helper()
	p.OpenTeam(target.URL)
	p.Click(".places", "Channels")
	p.WaitText(".channel-list", target.ChannelStory.Name)
	p.Click(".channel-rows", target.ChannelStory.Name)
	p.WaitText("#channel-title", target.ChannelStory.Name)
	p.Until("a message can be written",
		`document.querySelector('#words') && document.querySelector('.entries-edge, .entries-empty') && document.querySelectorAll('.member').length > 1`)
	if m := target.ChannelStory; m.First == "" {
		agents := Eval[[]string](p, `[...document.querySelectorAll('ol.members .member-name bdi')].map(e => e.textContent)`)
		if len(agents) != 2 {
			p.t.Fatalf("the participants are %q, want two", agents)
		}
		m.First, m.Next = agents[0], agents[1]
	}
}

// say types into the channel and sends it. An empty mode is the channel's own.
func (p *Page) say(text, mode string) {
	p.t.Helper()
	p.Until("the field has the focus", `(document.querySelector('#words').focus(), document.activeElement.id === 'words')`)
	p.Press(text)
	if mode != "" {
		p.Click(".modes", mode)
		p.Until("the mode is chosen", fmt.Sprintf(`document.querySelector('.modes input:checked').value === %s`, quote(mode)))
	}
	p.Click(".composer", "Send")
	p.Until("the field is empty again", `document.querySelector('#words').value === ''`)
}

// both opens the same page in two browsers.
func both(t *testing.T, p *Page, target Target) (*Page, *Page) {
	needs(t, target.ChannelStory != nil, "have a channel")
	q := Browse(t)
	p.openChannel(target)
	q.openChannel(target)
	t.Cleanup(func() {
		if !t.Failed() {
			q.NoConsoleErrors()
		}
	})
	return p, q
}

// ownWords waits until a message is shown with its state.
func (p *Page) ownWords(text, state string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%q is shown as %s", text, state), fmt.Sprintf(
		`[...document.querySelectorAll('.say-human .say-part')].some(e => e.innerText.includes(%s) && e.querySelector('.say-state').innerText.includes(%s))`, quote(text), quote(state)))
}

// SeenByBoth checks that a person's message and an agent's answer are shown on every page.
func SeenByBoth(t *testing.T, p *Page, target Target) {
	p, q := both(t, p, target)
	m := target.ChannelStory
	p.say("Which berth is free?", "")
	q.WaitText(".say-human", "Which berth is free?")
	said := m.Says
	if m.Done != nil {
		q.WaitText(".standing", m.First)
		q.ownWords("Which berth is free?", "delivered")
		said = "berth seven"
		m.Done(said)
	}
	for _, page := range []*Page{p, q} {
		page.WaitText(".say-turn", said)
		page.ownWords("Which berth is free?", "answered")
		page.WaitText(".turns", m.First+" \u2192 "+m.Next)
	}
	q.say("Thank you", "queue")
	p.WaitText(".say-human", "Thank you")
}

// Interrupted checks that a person interrupts the turn and gets an answer first, on both pages.
func Interrupted(t *testing.T, p *Page, target Target) {
	p, q := both(t, p, target)
	m := target.ChannelStory
	p.say(slowWords, "")
	q.WaitText(".standing", m.First+" has the turn")
	q.say("Stop: which quay?", "interrupt")
	p.WaitText(".say-human", "Stop: which quay?")
	p.WaitText(".turns", "stopped for a person")
	said := m.SaysAside
	if m.Aside != nil {
		p.WaitText(".aside-line", "every turn waits for that")
		said = "the north quay"
		m.Aside(said)
	}
	for _, page := range []*Page{p, q} {
		page.WaitText(".say-aside", said)
		page.ownWords("Stop: which quay?", "answered")
		page.WaitText(".turns", m.First+" answers first")
	}
}

// TimedOut checks that an agent that takes too long loses the turn, with an announcement in the
// channel.
func TimedOut(t *testing.T, p *Page, target Target) {
	p, q := both(t, p, target)
	m := target.ChannelStory
	p.say(slowWords, "")
	q.WaitText(".standing", m.First+" has the turn")
	p.Until("a clock runs", `/^\d+[ms]/.test(document.querySelector('.standing .countdown')?.innerText ?? '')`)
	if m.TimeOut != nil {
		m.TimeOut()
	}
	for _, page := range []*Page{p, q} {
		page.WaitText(".notice", m.First+" turn timed out")
		page.WaitText(".turns", "out of time")
	}
}

// Unheard checks that a refused message stays in the field, with the refusal beside it.
func Unheard(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil && target.ChannelStory.Deaf != nil, "refuse a message")
	p.openChannel(target)
	words := target.ChannelStory.Deaf()
	Eval[bool](p, `(document.querySelector('#words').focus(), true)`)
	p.Press("Is anybody there?")
	p.Click(".composer", "Send")
	p.WaitText(".composer .fault", words)
	p.Until("nothing is lost", `document.querySelector('#words').value === 'Is anybody there?'`)
	p.Click(".composer", "Send")
	p.WaitText(".say-human", "Is anybody there?")
	p.Until("the refusal is removed", `!document.querySelector('.composer .fault') && document.querySelector('#words').value === ''`)
}

// SkippedByHand checks that a person skips a turn, and that the next agent gets it, on both pages.
func SkippedByHand(t *testing.T, p *Page, target Target) {
	p, q := both(t, p, target)
	m := target.ChannelStory
	p.say(slowWords, "")
	q.WaitText(".standing", m.First+" has the turn")
	if m.Refuse != nil {
		words := m.Refuse()
		q.Click(".channel-acts", "Skip")
		q.WaitText(".channel-head .fault", words)
		q.Click(".channel-head .fault", "Dismiss")
		q.Until("the refusal is dismissed", `!document.querySelector('.fault')`)
	}
	q.Click(".channel-acts", "Skip")
	for _, page := range []*Page{p, q} {
		page.WaitText(".turns", m.First+" skipped")
		page.Until(m.Next+" has the turn, or has lost it on a slow machine", fmt.Sprintf(
			`['.standing', '.turns'].some(s => [%q + ' has the turn', %[1]q + ' out of time'].some(w => (document.querySelector(s)?.innerText ?? '').includes(w)))`,
			m.Next))
	}
}

// toCircle shows the list of participants, which is beside the messages if there is room.
func (p *Page) toCircle(on bool) {
	p.t.Helper()
	if !Eval[bool](p, `document.querySelector('.sides').checkVisibility()`) {
		return
	}
	if on {
		p.Click(".sides", "Rotation")
	} else {
		p.Click(".sides", "Messages")
	}
}

// unfold shows the actions for a participant.
func (p *Page) unfold(name string) {
	p.t.Helper()
	p.Click(".members", name)
	p.Until(name+" is unfolded, and no other agent",
		fmt.Sprintf(`document.querySelectorAll('.member-more').length === 1 && document.querySelector('.member:has(.member-more)').innerText.includes(%s)`, quote(name)))
}

// RotationByHand grants the turn, and disables, removes and assigns agents.
func RotationByHand(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil, "have a channel")
	m := target.ChannelStory
	p.openChannel(target)
	p.say(slowWords, "")
	p.WaitText(".standing", m.First+" has the turn")
	p.toCircle(true)
	p.WaitText(".member-active", m.First)
	p.unfold(m.Next)
	p.Click(".member-acts", "Grant now")
	p.WaitText(".standing", m.Next+" has the turn")
	p.unfold(m.First)
	p.Click(".member-acts", "Disable")
	p.WaitText(".member-out", "disabled")
	p.Click(".member-acts", "Enable")
	p.WaitGone(".member-out", "disabled")
	p.Click(".member-acts", "Remove")
	p.Until("the agent is removed from the rotation",
		fmt.Sprintf(`![...document.querySelectorAll('.member')].some(e => e.innerText.includes(%s))`, quote(m.First)))
	Eval[bool](p,
		fmt.Sprintf(`(() => { const s = document.querySelector('#assign'); s.value = %s; s.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`, quote(m.First)))
	p.Click(".assign", "Assign")
	p.WaitText(".members", m.First)
	p.unfold(m.Next)
	p.Click(".member-more", "Output")
	p.WaitText("#agent-title", m.Next)
	p.WaitText(".turn-chip-active", m.Name+": ACTIVE")
	p.Axe()
	p.Click(".turn-chips", m.Name)
	p.WaitText("#channel-title", m.Name)
	p.WaitText(".standing", m.Next+" has the turn")
}

// Waited checks that a person ends a wait, in both ways.
func Waited(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil && target.ChannelStory.Wait != nil, "make an agent wait")
	m := target.ChannelStory
	p.openChannel(target)
	p.say(slowWords, "")
	p.WaitText(".standing", m.First+" has the turn")
	m.Wait("the signature of a person")
	p.WaitText(".standing", "waits: the signature of a person")
	p.Click(".channel-acts", "Resume")
	p.WaitText(".standing", m.First+" has the turn")
	m.Wait("a second signature")
	p.WaitText(".standing", "waits: a second signature")
	p.Click(".channel-acts", "End its turn")
	p.WaitText(".standing", m.Next+" has the turn")
	m.Late("one thing more")
	p.WaitText(".say-late", "one thing more")
	p.WaitText(".say-late", "this moved nothing")
}

// HostileMessages checks that any text in a channel is shown as text.
func HostileMessages(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil && target.ChannelStory.Done != nil, "make an agent say a given text")
	m := target.ChannelStory
	p.openChannel(target)
	p.say(slowWords, "")
	p.WaitText(".standing", m.First+" has the turn")
	m.Done("before\n" + Lie + "\n```html\n" + Lie + "\n```\n`" + Lie[:20] + "`\n" + strings.Repeat("x", lineBytesMany/16))
	p.WaitText(".say-turn", "<img src=x onerror")
	p.WaitText(".say-turn", "\u27e8RLO\u27e9gnp.exe")
	p.Click(".say-turn", "Show all")
	p.WaitText(".say-turn", "Show less")
	if raw := Eval[string](p, `document.querySelector('.entries').textContent`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
		t.Error("a control or an override reached the page as itself")
	}
	if Eval[bool](p,
		`document.querySelector('.entries img, .entries script, .entries textarea, .channel-list img') !== null || document.title.includes('owned')`) {
		t.Error("text became markup")
	}
	if Eval[bool](p, "!"+Fits(p)+` || document.querySelector('.entries').scrollWidth > document.querySelector('.entries').clientWidth`) {
		t.Error("a long line pushed the page wider than the window")
	}
}

// ChannelByKeyboard opens a channel, posts in it and leaves it without a mouse.
func ChannelByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil, "have a channel")
	m := target.ChannelStory
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	p.Press("m")
	p.WaitText(".channel-list", m.Name)
	p.tabTo("the channels", `e.classList.contains('channel-name')`)
	p.Press(kb.Enter)
	p.WaitText("#channel-title", m.Name)
	p.Until("there is a field to write in", `document.querySelector('#words') && document.activeElement.id !== 'words'`)
	p.Press("e")
	p.Until("the field has the focus", `document.activeElement.id === 'words'`)
	p.Press("by keyboard, m and all")
	p.tabTo("the button", `e.classList.contains('order-send')`)
	p.Press(kb.Enter)
	p.WaitText(".say-human", "by keyboard, m and all")
	p.Until("the field has the focus again", `document.activeElement.id === 'words'`)
	if !Eval[bool](p, `matchMedia('(pointer: coarse)').matches`) {
		p.Press("and by Enter")
		p.Press(kb.Enter)
		p.WaitText(".say-human", "and by Enter")
		p.Until("the field is empty", `document.querySelector('#words').value === ''`)
	}
	p.tabTo("the modes", `e.name === 'mode'`)
	p.Press(kb.ArrowRight)
	p.Until("another mode is chosen", `document.querySelector('.modes input:checked').value === 'queue'`)
	Eval[bool](p, `(document.querySelector('#words').focus(), true)`)
	p.Press(kb.Escape)
	p.Until("the field has lost the focus", `document.activeElement.id !== 'words'`)
	p.Press(kb.Escape)
	p.Until("the channels are shown; a wide page keeps one open beside them", `location.hash === '#/channels' || innerWidth > 820`)
	p.Press("a")
	p.WaitText(".roster", target.Agent)
}

// ChannelCutAndRestored checks that messages from a time without a connection are shown after it,
// with their present states, and that nothing can be posted meanwhile.
func ChannelCutAndRestored(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil && target.ChannelStory.Done != nil && target.Line != nil, "cut the line of a channel")
	m := target.ChannelStory
	p.openChannel(target)
	p.say("Which berth is free?", "")
	p.WaitText(".standing", m.First+" has the turn")
	p.ownWords("Which berth is free?", "delivered")
	Eval[bool](p, `(window.notReloaded = true)`)
	target.Line.Cut()
	p.WaitText(".banners", "Cut off since")
	Eval[bool](p, `(document.querySelector('#words').focus(), true)`)
	p.Press("half a thought")
	p.Until("nothing can be said",
		`document.querySelector('.order-send').getAttribute('aria-disabled') === 'true' && document.querySelector('.channel-acts .order').getAttribute('aria-disabled') === 'true'`)
	p.Until("the clock stands still",
		`(() => { const now = document.querySelector('.standing .countdown').innerText; const was = window.clockWas; window.clockWas = now; return now === was; })()`)
	m.Done("seven, while you were away")
	m.TimeOut()
	target.Line.Restore()
	p.WaitGone(".banners", "Cut off")
	p.WaitText(".say-turn", "seven, while you were away")
	p.ownWords("Which berth is free?", "answered")
	p.WaitText(".notice", "timed out")
	p.Until("the draft is kept and can be sent",
		`document.querySelector('#words').value === 'half a thought' && !document.querySelector('.order-send').hasAttribute('aria-disabled') && window.notReloaded`)
}

// ChannelsAccessible checks that channels break no rule of axe, at any size, in either theme.
func ChannelsAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil && target.ChannelStory.Done != nil, "make an agent say a given text")
	m := target.ChannelStory
	p.openChannel(target)
	p.Axe() // no messages yet
	p.say("Which berth is free?", "")
	p.WaitText(".standing", m.First+" has the turn")
	p.say("Stop", "interrupt") // in a turn without a short limit, which could end before the page is seen
	p.WaitText(".aside-line", "every turn waits")
	m.Aside("as you say")
	p.WaitText(".say-aside", "as you say")
	m.Done("Number `seven`.\n```\ncode\n```")
	m.Late("too late")
	p.WaitText(".say-late", "too late")
	m.TimeOut()
	p.WaitText(".notice", "timed out")
	p.say("And now?", "queue")
	m.Wait("a signature")
	p.WaitText(".standing", "waits: a signature")
	for range inViews(p) {
		p.Axe()
		p.Until("nothing is wider than the window",
			Fits(p)+` && document.querySelector('.entries').scrollWidth <= document.querySelector('.entries').clientWidth`)
		p.toCircle(true)
		p.Click(".members", m.First)
		p.WaitText(".member-more", "Output")
		p.Axe()
		p.Click(".members", m.First)
		p.toCircle(false)
		p.Click(".places", "Channels")
		p.WaitText(".channel-list", m.Name)
		p.Until("no channel is chosen; a wide page opens the first",
			`location.hash === '#/channels' || innerWidth > 820 && document.querySelector('#channel-title')`)
		p.Axe()
		p.Click(".channel-rows", m.Name)
		p.WaitText("#channel-title", m.Name)
		p.WaitText(".say-late", "too late")
	}
}
