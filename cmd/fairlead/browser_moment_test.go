package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// The page looks back: at the hold, step by step, by a link, and back to now, which goes on.
func TestMomentPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for _, v := range uitest.Views {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  ada: {description: Writes code, driver: exec, command: [echo, hello], workspace: ada}\n  bob: {driver: exec, command: [echo, hello], workspace: bob}\nchannels:\n  desk: {agents: [ada]}\n",
			})
			if out, code := s.fairlead("once", "ada", "--wait"); code != cli.ExitDone {
				t.Fatalf("once: %d: %s", code, out)
			}
			s.must("hold", "--note", "a <b>break</b>")
			head := func() int {
				out, _ := s.fairlead("ps", "--json")
				_, rest, _ := strings.Cut(out, `"head":`)
				n, err := strconv.Atoi(rest[:strings.IndexAny(rest, ",}")])
				if err != nil {
					t.Fatal(err, out)
				}
				return n
			}
			held := head()
			s.must("unhold")
			s.must("start", "bob")
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.url + "#/agents")
			p.WaitText(".masthead", "Live")
			p.Until("nothing is held now", `!document.querySelector('.banner-hold')`)

			uitest.Eval[bool](p, `(document.querySelector('[aria-label="Look back"]').click(), true)`)
			p.WaitText(".moment", "As it was")
			p.Until("orders are off", `document.querySelector('.hold').getAttribute('aria-disabled') === 'true'`)
			p.Until("the slider moves",
				`(() => { const r = document.querySelector('.moment input[type=range]'); r.value = `+strconv.Itoa(held)+
					`; r.dispatchEvent(new Event('change', {bubbles: true})); return location.hash.endsWith('?at=`+strconv.Itoa(held)+
					`'); })()`)
			p.WaitText(".banner-hold", "a <b>break</b>")
			p.WaitText(".moment-change", "the team was held")
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			p.Until("one change earlier it was not held",
				`(() => { const place = document.querySelector('.moment-place').textContent; if (place.startsWith('`+strconv.Itoa(held)+
					` ')) document.querySelector('[aria-label^="One change earlier"]').click(); return !document.querySelector('.banner-hold'); })()`)
			p.Until("one change later it was",
				`(() => { const place = document.querySelector('.moment-place').textContent; if (place.startsWith('`+strconv.Itoa(held-1)+
					` ')) document.querySelector('[aria-label^="One change later"]').click(); return document.querySelector('.banner-hold'); })()`)

			// What happens now is not shown, until the page is back.
			s.must("hold", "--note", "a second one")
			p.Click(".moment", "Back to now")
			p.WaitText(".banner-hold", "a second one")
			p.WaitText(".masthead", "Live")
			s.must("unhold")
			p.Until("changes are shown again", `!document.querySelector('.banner-hold') && !location.hash.includes('at=')`)

			// A row of the history leads to its moment. Nothing later is shown there, and Now says what had happened last.
			p.Open(s.url + "#/history/" + strconv.Itoa(held))
			p.WaitText(".history-spot", "the team was held")
			uitest.Eval[bool](p, `(document.querySelector('.history-spot .change-time').click(), true)`)
			p.WaitText(".moment-change", "the team was held")
			p.Until("what came later is not listed",
				`document.querySelectorAll('.change').length > 3 && [...document.querySelectorAll('.change')].every(e => +e.dataset.seq <= `+strconv.Itoa(held)+`)`)
			p.Press("g")
			p.WaitText("[aria-labelledby=now-before]", "the team was held")
			p.WaitText("[aria-labelledby=now-before]", "ada session ada-1 ended: ok")
			p.Until("nothing is to be marked as seen", `!document.querySelector('.now-seen')`)
			p.Axe()
			p.Press("[")
			p.WaitGone("[aria-labelledby=now-before]", "the team was held")
			p.Click("[aria-labelledby=now-before]", "History")
			p.Until("the moment stays",
				`location.hash === '#/history?at=`+strconv.Itoa(held-1)+
					`' && document.querySelector('.change') && ![...document.querySelectorAll('.change')].some(e => e.innerText.toLowerCase().includes('was held'))`)
			p.Click(".moment", "Back to now")
			p.WaitText(".history", "bob session bob-")

			// A link opens a moment; one that is none says so.
			p.Open(s.url + "#/agents?at=" + strconv.Itoa(held))
			p.WaitText(".banner-hold", "a <b>break</b>")
			p.WaitText(".moment-place", " of ")
			uitest.Eval[bool](p, `(location.hash = '#/agents?at=99999', true)`)
			p.WaitText(".moment", "has no change 99999")
			p.Click(".moment", "Back to now")
			p.WaitText(".masthead", "Live")
			p.Until("nothing is held", `!document.querySelector('.banner-hold')`)
		})
	}
}
