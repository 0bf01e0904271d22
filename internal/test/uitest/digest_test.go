package uitest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestSinceYouLooked checks that a person sees what happened since it was marked as seen, once.
// What needs the person is not repeated, and what was seen in one browser is not shown in another.
func TestSinceYouLooked(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views[:2] {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n  bob: {driver: script, script: bad.yaml, failures_max: 1}\n",
				"s.yaml":        "steps:\n  - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 2.5, model: opus}\n",
				"bad.yaml":      "steps:\n  - fail: broken <b>x</b>\n",
			})
			const part = "[aria-labelledby=now-finished]"
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(s.URL)
			p.WaitText(part, "Nothing has finished in the last day.")
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			s.Do("POST", "/agents/bob/start", strings.NewReader(`{}`))
			p.WaitText(".now-head", "1 thing needs you.")
			for _, words := range []string{"In the last day", "coder finished a session", "a session of bob failed", "It cost $2.50."} {
				p.WaitText(part, words)
			}
			p.WaitText(".need", "bob")
			if text := p.Text(part); strings.Contains(text, "gave up") {
				t.Errorf("what needs the person is repeated: %s", text)
			}
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if pictures := os.Getenv("PICTURES"); pictures != "" {
				p.Screenshot(filepath.Join(pictures, "digest-"+view.Name+".png"))
			}
			p.Click(part, "coder finished")
			p.WaitText("#agent-title", "coder")
			p.Until("the page shows the output of the session", `location.hash.startsWith('#/agents/coder/output/coder-1')`)
			uitest.Eval[bool](p, `(location.hash = '#/now', true)`)
			p.WaitText(part, "coder finished")
			p.Until("the digest is marked as seen", `(document.querySelector('.now-seen')?.click(), !document.querySelector('.now-seen'))`)
			p.WaitText(part, "Nothing has finished since you looked.")

			phone := uitest.Browse(t)
			phone.Open(s.URL)
			phone.WaitText(part, "Nothing has finished since you looked.")
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			for _, page := range []*uitest.Page{p, phone} {
				page.WaitText(part, "coder finished a session")
			}
			p.Until("the history begins there too",
				`(location.hash = '#/agents/coder/history/since-you-looked', document.querySelector('.history-sum')?.innerText.includes('1 session ended: 1 ok'))`)
			p.NoConsoleErrors()
		})
	}
}

// TestDigestIsExtended checks that a digest that is requested again reads only new changes, and has
// the same lines as one that is read from the beginning.
func TestDigestIsExtended(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml}\n",
		"s.yaml":        "steps:\n  - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 2.5, model: opus}\n",
		"w.yaml":        "name: build\nsteps:\n  - {id: make, command: [\"true\"]}\n",
	})
	begin := time.Now().UTC().Add(-time.Minute)
	read := func(since time.Time) (lines string, d view.Digest) {
		t.Helper()
		if err := json.Unmarshal(s.Do("GET", "/digest?since="+since.Format(time.RFC3339Nano), nil), &d); err != nil {
			t.Fatal(err)
		}
		for _, l := range d.Lines {
			lines += l.Kind + " " + l.Text + "\n"
		}
		return fmt.Sprintf("%s%.1f USD", lines, d.CostUSD), d
	}
	s.Do("POST", "/runs", strings.NewReader(`{"workflow":"w.yaml","run_id":"r1"}`))
	for n := 1; n <= 3; n++ {
		s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
		wait.Until(t, "the session and the run are over", func() bool {
			lines, d := read(begin)
			return d.CostUSD == 2.5*float64(n) && strings.Contains(lines, "build r1 is done") &&
				strings.Contains(lines, fmt.Sprintf("coder finished %s session", map[int]string{1: "a", 2: "2", 3: "3"}[n]))
		})
	}
	again, _ := read(begin)
	if whole, _ := read(begin.Add(-time.Second)); whole != again || strings.Count(again, "r1 is done") != 1 {
		t.Errorf("read on:\n%s\nread from the beginning:\n%s", again, whole)
	}
}
