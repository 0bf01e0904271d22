package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestContextOfAModel checks that the filled share of a model's context is shown on Now and beside
// the agent's session, and is marked when it is nearly full. A program that reports none has no
// such figure.
func TestContextOfAModel(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: exec, command: [sh, -c, 'until [ -e finish ]; do sleep 0.05; done'], workspace: w}\n",
		"w/README":      "w\n",
	})
	first := func(list string, change func(any)) func(map[string]any) {
		return func(body map[string]any) {
			if all, _ := body[list].([]any); len(all) > 0 {
				change(all[0])
			}
		}
	}
	proxy := s.Intercept()
	s.Command("coder", "run_once")
	for i, c := range []struct {
		percent    float64
		now, pane  string
		full, none bool
	}{
		{0, "", "", false, true},
		{41, "context 41 %", "context 41 % used", false, false},
		{84, "context 84 %", "context 84 % used", true, false},
	} {
		set := func(one any) {
			if one, is := one.(map[string]any); is && c.percent > 0 {
				one["context_percent"] = c.percent
			}
		}
		agent := func(a any) { set(a.(map[string]any)["session"]) }
		proxy.Edit("/working", first("working", set))
		proxy.Edit("/agents", first("agents", agent))
		proxy.Edit("/agents/coder", func(body map[string]any) { agent(body["agent"]) })
		p, v := uitest.Browse(t), uitest.Views[i%2]
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		p.Open(s.URL)
		p.WaitText("[aria-labelledby=now-working]", "coder")
		p.WaitText("[aria-labelledby=now-working]", c.now)
		if full := uitest.Eval[bool](p, `document.querySelector('.now-full') !== null`); full != c.full {
			t.Errorf("%v %%: marked as nearly full: %t", c.percent, full)
		}
		p.Open(s.URL + "#/agents/coder/evidence")
		p.WaitText(".figures", "pid")
		p.WaitText(".figures", c.pane)
		if none := uitest.Eval[bool](p, `!document.querySelector('.figures').innerText.includes('context')`); none != c.none {
			t.Errorf("%v %%: without a figure: %t", c.percent, none)
		}
		if !c.none {
			p.Until("the gauge shows the value",
				`document.querySelector('.figures .gauge[aria-label*="per cent of the model\'s context used"]')`)
		}
		p.Axe()
		p.NoConsoleErrors()
	}
	s.Put("w/finish", "")
}
