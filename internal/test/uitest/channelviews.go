package uitest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

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
	p.talks(target)
	p.say("Which berth is free?", "")
	p.WaitText(".standing", m.First+" has the turn")
	p.ownWords("Which berth is free?", "delivered")
	Eval[bool](p, `(window.notReloaded = true)`)
	target.Line.Cut()
	p.WaitText(".banners", "Cut off since")
	Eval[bool](p, `(document.querySelector('#words').focus(), true)`)
	p.Press("half a thought")
	p.Until("nothing can be said", `document.querySelector('.order-send').getAttribute('aria-disabled') === 'true' && document.querySelector('.channel-acts .order').getAttribute('aria-disabled') === 'true'`)
	p.Until("the clock stands still", `(() => { const now = document.querySelector('.standing .countdown').innerText; const was = window.clockWas; window.clockWas = now; return now === was; })()`)
	m.Done("seven, while you were away")
	m.TimeOut()
	target.Line.Restore()
	p.WaitGone(".banners", "Cut off")
	p.WaitText(".say-turn", "seven, while you were away")
	p.ownWords("Which berth is free?", "answered")
	p.WaitText(".notice", "timed out")
	p.Until("the draft is kept and can be sent", `document.querySelector('#words').value === 'half a thought' && !document.querySelector('.order-send').hasAttribute('aria-disabled') && window.notReloaded`)
}

// ChannelsAccessible checks that channels break no rule of axe, at any size, in either theme.
func ChannelsAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.ChannelStory != nil && target.ChannelStory.Done != nil, "make an agent say a given text")
	m := target.ChannelStory
	p.talks(target)
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
	for _, v := range Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		p.Axe()
		p.Until("nothing is wider than the window", Fits(p)+` && document.querySelector('.talk').scrollWidth <= document.querySelector('.talk').clientWidth`)
		p.toCircle(true)
		p.Click(".members", m.First)
		p.WaitText(".member-more", "Output")
		p.Axe()
		p.Click(".members", m.First)
		p.toCircle(false)
		p.Click(".places", "Channels")
		p.WaitText(".channel-list", m.Name)
		p.Until("no channel is chosen; a wide page opens the first", `location.hash === '#/channels' || innerWidth > 820 && document.querySelector('#channel-title')`)
		p.Axe()
		p.Click(".channel-rows", m.Name)
		p.WaitText("#channel-title", m.Name)
		p.WaitText(".say-late", "too late")
		if t.Failed() {
			t.Fatalf("in the view %s", v.Name)
		}
	}
}
