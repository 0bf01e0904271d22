package uitest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestLongChannel checks that thousands of entries leave the page usable. Only a window of them is
// drawn; it moves with the reader, and new entries do not move the reader. The time is logged and
// not checked.
func TestLongChannel(t *testing.T) {
	t.Parallel()
	bySize(t)
	words := 10_000
	agents := []string{"coder", "reviewer"}
	g := uitest.NewGuests(t, uitest.GuestsYAML("channels:\n  quay: {agents: [coder, reviewer], maxRounds: 0}\n", agents...), agents...)
	g.Hear("quay", "Begin.", "")
	began := time.Now()
	g.Converse("quay", words)
	t.Logf("%d turns after %v", words, time.Since(began).Round(time.Millisecond))
	p := uitest.Browse(t)
	began = time.Now()
	p.Open(g.URL + "#/channels/quay")
	last := fmt.Sprintf("word %d of many", words-1)
	p.WaitText(".entries", last)
	t.Logf("%d entries: the newest on screen after %v", words, time.Since(began).Round(time.Millisecond))
	p.Until("the newest is in sight",
		`(() => { const e = document.querySelector('.entries'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
	watchFrames(p)
	began = time.Now()
	reached := func(n int) string {
		// A reader continues to scroll: the page ignores a scroll in the frame of a redraw.
		return fmt.Sprintf(`(() => { const box = document.querySelector('.entries'); box.scrollTop = box.scrollTop === 50 ? 100 : 50; return box.innerText.includes('word %d of many'); })()`, n)
	}
	p.Until("scrolling back shows older messages", reached(words-3000))
	t.Logf("3,000 entries back after %v; slowest frame %d ms of %d", time.Since(began).Round(time.Millisecond),
		uitest.Eval[int](p, `Math.round(window.slowest)`), uitest.Eval[int](p, `window.frames`))
	if n := uitest.Eval[int](p, `document.querySelectorAll('.say-part').length`); n > 900 {
		t.Errorf("%d entries are drawn; only a window of them should be", n)
	}
	p.Until("nothing is being fetched", `!document.querySelector('.entries-edge')?.innerText.includes('Fetching')`)
	place := uitest.Eval[string](p,
		`(() => { const box = document.querySelector('.entries'); box.scrollTop = box.scrollHeight / 2; const edge = box.getBoundingClientRect().top; const e = [...box.querySelectorAll('[data-k]')].find(e => e.getBoundingClientRect().bottom > edge); window.held = e.dataset.k; return e.innerText; })()`)
	g.Converse("quay", 50)
	p.Until("after scrolling back, a button leads to the newest message", `document.querySelector('[data-jump]')`)
	if now := uitest.Eval[string](p,
		`document.querySelector('[data-k="' + CSS.escape(window.held) + '"]')?.innerText ?? ''`); now != place {
		t.Errorf("the reader was at %q and is now at %q", place, now)
	}
	began = time.Now()
	p.Press("n")
	p.WaitText(".entries", last)
	p.Until("the newest is in sight again",
		`(() => { const e = document.querySelector('.entries'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30 && !document.querySelector('[data-jump]'); })()`)
	t.Logf("back at the newest after %v", time.Since(began).Round(time.Millisecond))
	g.Hear("quay", "and one more", "")
	p.WaitText(".say-human", "and one more")
	p.Until("new messages are in sight",
		`(() => { const e = document.querySelector('.entries'); return e.scrollHeight - e.scrollTop - e.clientHeight < 30; })()`)
	began = time.Now()
	g.Converse("quay", words)
	p.WaitText(".entries", last)
	p.Until("the newest of a storm is in sight",
		fmt.Sprintf(`[...document.querySelectorAll('.say-part')].at(-1)?.innerText.includes(%q)`, last))
	t.Logf("%d more at once: the newest on screen after %v", words, time.Since(began).Round(time.Millisecond))
	p.NoConsoleErrors()
}

// watchFrames counts frames from now on, and measures the slowest.
func watchFrames(p *uitest.Page) {
	uitest.Eval[bool](p, `(() => {
		window.slowest = 0; window.frames = 0; let last = performance.now();
		const step = (now) => { window.slowest = Math.max(window.slowest, now - last); window.frames++; last = now; requestAnimationFrame(step); };
		requestAnimationFrame(step); return true; })()`)
}

// TestFullChannel checks a channel with sixty agents and the maximum number of messages without an
// answer: all agents are in the rotation, the first messages are listed, and the page responds.
func TestFullChannel(t *testing.T) {
	t.Parallel()
	bySize(t)
	const open = 256
	var agents []string
	for i := range 60 {
		agents = append(agents, fmt.Sprintf("hand-%02d", i+1))
	}
	g := uitest.NewGuests(t,
		uitest.GuestsYAML("channels:\n  all-hands: {agents: ["+strings.Join(agents, ", ")+"], maxRounds: 0}\n", agents...), agents...)
	g.Hear("all-hands", "Everybody: how far are you?", "inject")
	g.Converse("all-hands", 5*len(agents))
	for i := range open {
		g.Hear("all-hands", fmt.Sprintf("Question %d: what is the state of hatch %d?", i+1, i+1), []string{"queue", "inject"}[i%2])
	}
	g.Say("all-hands", strings.Repeat("Hatch after hatch, and every one of them is to be looked at. ", 12), false)
	p := uitest.Browse(t)
	p.Open(g.URL + "#/channels/all-hands")
	p.WaitText(".standing", "hand-01 has the turn")
	p.Until("all members are in the rotation",
		`document.querySelectorAll('.member').length === 60 && document.querySelectorAll('.dot').length === 60`)
	p.WaitText(".open-messages summary", "256 messages not answered")
	p.Click(".open-messages", "256 messages")
	p.WaitText(".open-messages", "and 216 more")
	watchFrames(p)
	began := time.Now()
	p.Click(".channel-acts", "Skip")
	p.WaitText(".standing", "hand-02 has the turn")
	t.Logf("the next of 60 has the turn after %v; slowest frame %d ms", time.Since(began).Round(time.Millisecond),
		uitest.Eval[int](p, `Math.round(window.slowest)`))
	p.Axe()
	p.NoConsoleErrors()
}

// TestManyChannels checks that the maximum number of channels is listed, and that changes in all of
// them leave the page usable.
func TestManyChannels(t *testing.T) {
	t.Parallel()
	bySize(t)
	const channels = 256
	var config strings.Builder
	config.WriteString("channels:\n")
	for i := range channels {
		fmt.Fprintf(&config, "  quay-%03d: {agents: [coder]}\n", i)
	}
	g := uitest.NewGuests(t, uitest.GuestsYAML(config.String(), "coder"), "coder")
	p := uitest.Browse(t)
	began := time.Now()
	p.Open(g.URL + "#/channels")
	p.WaitText(".channel-list", "quay-000")
	t.Logf("%d channels on screen after %v", channels, time.Since(began).Round(time.Millisecond))
	if n := uitest.Eval[int](p, `document.querySelectorAll('.channel-row').length`); n > 100 {
		t.Errorf("%d rows are drawn at first, want 100", n)
	}
	watchFrames(p)
	began = time.Now()
	for i := range channels {
		g.Hear(fmt.Sprintf("quay-%03d", i), "all hands", "")
	}
	p.WaitText(".channel-list", "all hands")
	p.WaitText(".place-count-channels", "99+")
	t.Logf("%d channels changed, shown after %v; slowest frame %d ms", channels, time.Since(began).Round(time.Millisecond),
		uitest.Eval[int](p, `Math.round(window.slowest)`))
	uitest.Eval[bool](p, `(document.querySelector('.channel-find input').focus(), true)`)
	p.Press("quay-25")
	p.WaitText(".channel-list", "quay-250")
	p.WaitGone(".channel-list", "quay-000")
	p.NoConsoleErrors()
}
