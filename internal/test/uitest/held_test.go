package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestStreamHeldBack checks the page behind a proxy that buffers answers. It does not count as live
// with a silent stream: it reports that and polls, so that changes and output are shown. When the
// proxy no longer buffers, the page is live again by itself.
func TestStreamHeldBack(t *testing.T) {
	t.Parallel()
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t,
				map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coder: {description: Writes, driver: exec, command: [sh, -c, 'echo the first words; until [ -e finish ]; do sleep 0.05; done; echo the last words'], workspace: w}\n", "w/README": "w\n"})
			proxy := s.Intercept()
			proxy.HoldStreams(true)
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.URL + "#/agents")
			p.WaitText(".line-state", "Connecting")
			p.WaitText(".line-polls", "Polling")
			p.WaitText(".banners", "A proxy holds the live stream back")
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			p.Click(".banners", "Close")
			p.WaitGone(".banners", "A proxy")
			p.Choose("coder")
			s.Command("coder", "run_once")
			p.WaitText(".agent-title .badge", "RUNNING")
			p.WaitText(".tape", "the first words")
			s.Put("w/finish", "")
			p.WaitText(".tape", "the last words")
			p.WaitText(".agent-title .badge", "IDLE")

			// The proxy passes streams on: the page notices when it is visible again, or after some polls.
			proxy.HoldStreams(false)
			if v.Size == uitest.Desktop {
				uitest.Eval[bool](p, `(document.dispatchEvent(new Event('visibilitychange')), true)`)
			} else {
				for n := 0; uitest.Eval[bool](p, `document.querySelector('.line-polls') !== null`); n++ {
					s.Command("coder", []string{"continuous", "pause"}[n%2])
				}
			}
			p.Until("the page is live without polls", `document.querySelector('.line-live:not(.line-polls)')`)
			s.Command("coder", "pause")
			p.WaitText(".agent-title .badge", "IDLE")
			p.NoConsoleErrors()
		})
	}
}
