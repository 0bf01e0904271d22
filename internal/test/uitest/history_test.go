package uitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestHistoryOfATime checks that the history of an agent in a time range can be opened by one
// choice, one command of the palette, or one link.
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
			for _, words := range []string{
				"Ordered to run once", "Session coder-1 started", "Q1: asked: May I clean up?", "Q1: answered",
				"Session coder-1 ended: ok", "1 session ended: 1 ok.",
			} {
				p.WaitText(".history", words)
			}
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if pictures := os.Getenv("PICTURES"); pictures != "" {
				p.Screenshot(filepath.Join(pictures, "history-"+view.Name+".png"))
			}

			// Later events are added, and All shows everything again.
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			p.WaitText(".history", "Session coder-2 started")
			p.Click(".history-times", "All")
			p.Until("all of it is shown", `location.hash === '#/agents/coder/history' && document.querySelector('.sheet-table')`)

			// A link with two times. The fields show them and change them.
			p.Open(s.URL + "#/agents/coder/history/2020-01-01T00:00..2020-01-02T12:30")
			p.WaitText(".history", "Nothing happened in this time.")
			fields := `[...document.querySelectorAll('.history-ends input')]`
			p.Until("the fields show the time", fields+`.map(e => e.value).join() === '2020-01-01T00:00,2020-01-02T12:30'`)
			set := func(n, value string) {
				uitest.Eval[bool](p,
					`(() => { const e = `+fields+`[`+n+`]; e.value = '`+value+
						`'; e.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`)
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

// TestPeriods checks that the words in an address mean the same times as those of the command line,
// and that no other word is accepted.
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

// TestHistoryOfTheTeam checks the page with the history of the whole team: it is reached from what
// a person has not seen yet, can be narrowed to a time, and shows new events.
func TestHistoryOfTheTeam(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n  tester: {driver: script, script: s.yaml}\n",
		"s.yaml":        "steps:\n  - say: done\n",
		"w.yaml":        "name: ship\nsteps:\n  - {id: make, command: [\"true\", instant]}\n",
	})
	p := uitest.Browse(t)
	p.Open(s.URL)
	s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
	s.Do("POST", "/runs", strings.NewReader(`{"workflow":"w.yaml","run_id":"r1"}`))
	p.WaitText("[aria-labelledby=now-finished]", "coder finished a session")
	p.WaitText("[aria-labelledby=now-finished]", "r1 is done")
	p.Click("[aria-labelledby=now-finished] header", "History")
	p.Until("the team's history is open",
		`location.hash === '#/history' && document.querySelector('.places [aria-current]').innerText.includes('History')`)
	for _, words := range []string{
		"coder ordered to run once", "coder session coder-1 ended: ok", "tester was added to fairlead.yaml",
		"r1 the run started", "r1/make the step is done",
	} {
		p.WaitText(".history", words)
	}
	p.WaitGone(".history", "is about to start")
	s.Do("POST", "/agents/tester/once", strings.NewReader(`{}`))
	p.WaitText(".history", "tester session tester-1 ended: ok")
	p.Until("each change is listed once, the newest first",
		`(() => { const all = [...document.querySelectorAll('.change')].map(e => +e.dataset.seq); return all.every((n, i) => i === 0 || n < all[i - 1]); })()`)
	p.Click(".history-times", "Last hour")
	p.WaitText(".history-sum", "sessions ended:")
	p.Until("the address names the time", `location.hash === '#/history/last-hour'`)
	s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
	p.WaitText(".history", "coder session coder-2 ended: ok")
	uitest.Eval[bool](p, `(document.querySelector('.history-head input').click(), true)`)
	p.WaitText(".history", "session coder-2 is about to start")
	p.Until("the numbers are shown", `/^#\d+$/.test(document.querySelector('.change .seq')?.textContent)`)

	// A row leads to its subject, and back to the team.
	p.Click(".change-list", "coder")
	p.Until("the agent's history is open", `location.hash === '#/agents/coder/history'`)
	p.Click(".history-head", "Whole team")
	p.Until("the history of the team is open", `location.hash === '#/history'`)

	// A link to one change.
	seq := uitest.Eval[int](p, `+[...document.querySelectorAll('.change')].find(e => e.innerText.includes('coder-1 ended')).dataset.seq`)
	uitest.Eval[bool](p, fmt.Sprintf(`(location.hash = '#/history/%d', true)`, seq))
	p.WaitText(".history-spot", "coder session coder-1 ended: ok")
	// The palette, and the key.
	byPalette(p, "history night", "History: last night")
	p.Until("the palette opens the page", `location.hash === '#/history/last-night'`)
	p.Press("g")
	p.WaitText(".now-head", "Nothing needs you.")
	p.Press("y")
	p.Until("the key opens the page", `location.hash.startsWith('#/history')`)
	p.NoConsoleErrors()
}
