package main

import (
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/read/view"
)

// newcomer does a job on the page, and counts what it takes.
type newcomer struct {
	*uitest.Page
	clicks, keys int
}

func (n *newcomer) click(within, text string) {
	n.Click(within, text)
	n.clicks++
}

func (n *newcomer) press(keys string) {
	n.Press(keys)
	n.keys += utf8.RuneCountInString(keys)
}

// Five jobs of a new user, each from the landing page. Clicks and keys are the promise; the seconds of the scripted
// user are printed.
func TestFiveJobs(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	s, _ := filledTeam(t)
	if _, err := s.client().Runs.Start(t.Context(),
		view.RunFlags{Workflow: "ship.yaml", RunID: "ship-2", PauseForHumans: true}); err != nil { // one approval for each view
		t.Fatal(err)
	}
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			for _, job := range []struct {
				name         string
				clicks, keys int
				do           func(n *newcomer)
			}{
				{"find what is stuck and why", 1, 0, func(n *newcomer) {
					n.WaitText(".need[data-need=failed] h3", "bob gave up")
					n.click(".need[data-need=failed]", "Show all")
					n.WaitText(".need[data-need=failed]", "--- FAIL: TestUpload")
				}},
				{"what coder did in the last hour", 0, 14, func(n *newcomer) {
					n.press("/")
					n.Until("the palette has the focus", `document.activeElement.id === 'find'`)
					n.press("coder l hour")
					n.WaitText(".find-option[aria-selected=true]", "coder: last hour")
					n.press(kb.Enter)
					n.WaitText(".history", "asked: May I clean up?")
				}},
				{"the same by clicks", 4, 0, func(n *newcomer) {
					n.click(".places", "Team")
					n.click(".roster", "coder")
					n.click(".tabs", "History")
					n.click(".history-times", "Last hour")
					n.WaitText(".history", "asked: May I clean up?")
				}},
				{"find where retry was discussed", 2, 5, func(n *newcomer) {
					n.click(".masthead", "Search")
					n.Until("the palette has the focus", `document.activeElement.id === 'find'`)
					n.press("retry")
					n.WaitText(".find-result", "Shall we retry")
					n.click(".find-list", "Shall we retry")
					n.WaitText(".entries .spot", "Shall we retry")
				}},
				{"what it cost", 1, 0, func(n *newcomer) {
					n.click(".places", "Usage")
					n.Until("the sum is shown", `/\$\d/.test(document.querySelector('.usage-sum')?.innerText)`)
				}},
				{"approve with knowledge", 1, 0, func(n *newcomer) {
					n.WaitText(".need[data-need=step]", "uploads are tried again")
					n.WaitText(".need[data-need=step]", "passed 412")
					n.WaitText(".need[data-need=step]", "Approved: publish begins.")
					left := uitest.Eval[int](n.Page, `document.querySelectorAll('.need[data-need=step]').length`) - 1
					n.click(".need[data-need=step]", "Approve")
					n.Until("it is answered", fmt.Sprintf(`document.querySelectorAll('.need[data-need=step]').length === %d`, left))
				}},
			} {
				p.Open(s.url + "#/now")
				p.WaitText(".need[data-need=failed]", "bob gave up")
				n, began := &newcomer{Page: p}, time.Now()
				job.do(n)
				t.Logf("| %s | %d clicks, %d keys | %.1f s |", job.name, n.clicks, n.keys, time.Since(began).Seconds())
				if n.clicks != job.clicks || n.keys != job.keys {
					t.Errorf("%s takes %d clicks and %d keys, want %d and %d", job.name, n.clicks, n.keys, job.clicks, job.keys)
				}
			}
			p.NoConsoleErrors()
		})
	}
}
