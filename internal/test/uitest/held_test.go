package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// Behind a proxy that buffers answers the page is not live with a stream from which nothing comes: it says so, and asks
// for news instead, so that changes and output are shown all the same.
func TestStreamHeldBack(t *testing.T) {
	t.Parallel()
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coder: {description: Writes, driver: exec, command: [sh, -c, 'echo the first words; until [ -e finish ]; do sleep 0.05; done; echo the last words'], workspace: w}\n", "w/README": "w\n"})
			s.Intercept().HoldStreams()
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
			p.NoConsoleErrors()
		})
	}
}
