package uitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// What an agent did in a time is one choice, one command of the palette, or one link.
func TestHistoryOfATime(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views[:2] {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n",
				"s.yaml":        "steps:\n  - ask: May I clean up?\n    tool: Bash\n    args: {command: rm -rf build}\n",
			})
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(s.URL)
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			p.WaitText(".now-head", "1 thing needs you.")
			s.Do("POST", "/questions/q1/answer", strings.NewReader(`{"allow":false}`))
			p.WaitText(".now-head", "Nothing needs you.")

			p.Press("/")
			p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
			p.Press("coder hour")
			p.WaitText(".find-list", "coder: last hour")
			p.Press(kb.Enter)
			p.Until("the address names the time", `location.hash === '#/agents/coder/history/last-hour'`)
			for _, words := range []string{"Ordered to run once", "Session coder-1 started", "Q1: asked: May I clean up?", "Q1: answered", "Session coder-1 ended: ok", "1 session ended: 1 ok."} {
				p.WaitText(".history", words)
			}
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if pictures := os.Getenv("PICTURES"); pictures != "" {
				p.Screenshot(filepath.Join(pictures, "history-"+view.Name+".png"))
			}

			// What happens meanwhile is added, and All is the way back.
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			p.WaitText(".history", "Session coder-2 started")
			p.Click(".history-times", "All")
			p.Until("all of it is shown", `location.hash === '#/agents/coder/history' && document.querySelector('.sheet-table')`)

			// A link of two times; the fields show it, and change it.
			p.Open(s.URL + "#/agents/coder/history/2020-01-01T00:00..2020-01-02T12:30")
			p.WaitText(".history", "Nothing happened in this time.")
			fields := `[...document.querySelectorAll('.history-ends input')]`
			p.Until("the fields show the time", fields+`.map(e => e.value).join() === '2020-01-01T00:00,2020-01-02T12:30'`)
			set := func(n, value string) {
				uitest.Eval[bool](p, `(() => { const e = `+fields+`[`+n+`]; e.value = '`+value+`'; e.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`)
			}
			set("1", "2019-12-31T00:00")
			p.WaitText(".history-times", "The end is before the beginning.")
			set("1", "")
			p.WaitText(".history", "Session coder-1 started")
			p.Until("the link has no end", `decodeURIComponent(location.hash) === '#/agents/coder/history/2020-01-01T00:00..'`)
			p.NoConsoleErrors()
		})
	}
}

// The words of an address name the same times as those of the command line, and no other word does.
func TestPeriods(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	if wrong := uitest.Eval[string](p, `(async () => {
		const { periodOf } = await import('/history/period.js');
		const at = (text) => new Date(text).getTime(), now = at('2026-11-25T05:30');
		for (const [word, from, to] of [['last-hour', at('2026-11-25T04:30'), Infinity], ['last-night', at('2026-11-24T18:00'), at('2026-11-25T08:00')], ['yesterday', at('2026-11-24T00:00'), at('2026-11-25T00:00')], ['since-you-looked', 77, Infinity],
			['2026-11-24T22:00..2026-11-25T07:00', at('2026-11-24T22:00'), at('2026-11-25T07:00')], ['2026-11-24T22:00..', at('2026-11-24T22:00'), Infinity], ['..2026-11-24T22:00', at('1970-01-01T00:00'), at('2026-11-24T22:00')]]) {
			const got = periodOf(word, now, 77);
			if (got?.from !== from || got?.to !== to) return word + ': ' + JSON.stringify(got);
		}
		for (const word of ['', '..', 'tomorrow', '2026-11-24T22:00', '2026-11-24T22:00..2026-11-23T22:00', '2026-13-24T22:00..', 'x..y', '12', '2026-11-24T22:00..x', '2026-11-24T22:00..2026-11-25T07:00..'])
			if (periodOf(word, now, 77) !== null) return word + ' names a time';
		return ''; })()`); wrong != "" {
		t.Error(wrong)
	}
}
