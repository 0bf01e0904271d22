package uitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// A person who comes back sees what happened meanwhile, puts it away, and does not see it again in another browser. Without
// news nothing is shown.
func TestWhileYouWereAway(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views {
		t.Run(view.Name, func(t *testing.T) {
			s := uitest.NewServer(t, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n  bob: {driver: script, script: bad.yaml, failures_max: 1}\n",
				"s.yaml":        "steps:\n  - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 2.5, model: opus}\n",
				"bad.yaml":      "steps:\n  - fail: broken <b>x</b>\n",
			})
			seen := filepath.Join(s.Dir, ".fairlead", "seen.json")
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(s.URL)
			p.WaitText(".now-head", "Nothing needs you.")
			if uitest.Eval[bool](p, `document.querySelector('.now-away') !== null`) {
				t.Error("something happened before the first visit")
			}
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			s.Do("POST", "/agents/bob/start", strings.NewReader(`{}`))
			p.WaitText(".now-head", "1 thing needs you.")
			p.WaitText("[aria-labelledby=now-finished]", "coder")
			at := time.Now().Add(-8 * time.Hour).UTC().Format(time.RFC3339)
			if err := os.WriteFile(seen, []byte(`{"visited":"`+at+`"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			p.Open(s.URL)
			for _, words := range []string{"While you were away", "8h", "bob failed too often and gave up", "coder finished a session", "It cost $2.50."} {
				p.WaitText(".now-away", words)
			}
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if pictures := os.Getenv("PICTURES"); pictures != "" {
				p.Screenshot(filepath.Join(pictures, "away-"+view.Name+".png"))
			}
			p.Click(".now-away", "bob failed")
			p.WaitText("#agent-title", "bob")
			p.Until("the place is the history of bob", `location.hash.startsWith('#/agents/bob/history/')`)
			uitest.Eval[bool](p, `(location.hash = '#/now', true)`)
			p.Click(".now-away", "Seen")
			p.Until("it is put away", `document.querySelector('.now-away') === null`)
			p.WaitText("[aria-labelledby=now-finished]", "Nothing has finished since you looked.")

			phone := uitest.Browse(t)
			phone.Open(s.URL)
			phone.WaitText("[aria-labelledby=now-finished]", "Nothing has finished since you looked.")
			if uitest.Eval[bool](phone, `document.querySelector('.now-away') !== null`) {
				t.Error("what was put away in one browser is shown in another")
			}
			p.NoConsoleErrors()
		})
	}
}
