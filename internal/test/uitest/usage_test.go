package uitest_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestUsagePage checks the page of usage: sums, budgets with a forecast, a chart with the table
// beside it, and the same as CSV.
func TestUsagePage(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, map[string]string{
				"fairlead.yaml": "version: 1\nteam: {limits: {cost_per_day_usd: 100}}\nagents:\n  coder: {driver: script, script: s.yaml, limits: {tokens_per_day: 1000}}\n  reader: {driver: script, script: r.yaml}\n",
				"r.yaml":        "steps:\n  - usage: {input_tokens: 20}\n",
				"s.yaml":        "steps:\n  - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 2.5, model: 'opus <b>x</b>'}\n  - usage: {input_tokens: 300}\n",
			})
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(s.URL + "#/usage")
			s.Do("POST", "/agents/reader/once", strings.NewReader(`{}`))
			p.WaitText(".usage-chart-head", "Tokens by day") // no cost is known yet
			s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
			p.WaitText(".usage-sum", "tokens in 2 sessions")
			p.WaitText(".usage-chart-head", "Cost by day")
			p.WaitText(".usage", "The team: $2.50 of $100.00 today")
			p.WaitText(".usage", "Reached. No session starts until the next day")
			p.Until("the chart has one bar",
				`document.querySelector('.usage-chart canvas') !== null && document.querySelector('.usage-chart').getAttribute('aria-label').includes('the most was $2.50')`)
			// The bar is drawn: the middle of the canvas has another colour than its corner.
			p.Until("the bar is drawn",
				`(() => { const c = document.querySelector('.usage-chart canvas'), copy = document.createElement('canvas'); copy.width = c.width; copy.height = c.height;
				const x = copy.getContext('2d', { willReadFrequently: true }); x.drawImage(c, 0, 0);
				const at = (px, py) => x.getImageData(px, py, 1, 1).data.join(); return at(Math.round(c.width * 0.55), Math.round(c.height * 0.6)) !== at(1, 1); })()`)
			p.WaitText(".usage-table tfoot", "$2.50")
			p.Axe()
			for _, by := range []struct{ word, text string }{
				{"Agent", "coder"},
				{"Model", "opus <b>x</b>"},
				{"Model", "not reported"},
				{"Task", "Nothing has been reported by task yet."},
			} {
				p.Click(".usage-switch", by.word)
				p.WaitText(".usage", by.text)
				p.Axe()
				p.Until("nothing is wider than the window", uitest.Fits(p))
			}
			p.Click(".usage-switch", "Model")
			p.WaitText(".usage-table tfoot", "1.5k")
			if pictures := os.Getenv("PICTURES"); pictures != "" {
				p.Screenshot(filepath.Join(pictures, "usage-"+view.Name+".png"))
			}
			p.Click(".usage-chart-head", "Show tokens")
			p.WaitText(".usage-chart-head", "Tokens by day")
			text := uitest.Eval[string](p, `(async () => { let said = ''; const was = URL.createObjectURL;
				URL.createObjectURL = (blob) => { window.blob = blob; return was(blob); };
				HTMLAnchorElement.prototype.click = () => {};
				[...document.querySelectorAll('.usage-sum button')].find((b) => b.textContent.includes('CSV')).click();
				while (!window.blob) await new Promise(requestAnimationFrame);
				return window.blob.text(); })()`)
			lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if err != nil || len(lines) != 5 || lines[1][2] != "coder" || lines[1][8] != "1500" || lines[2][2] != "reader" ||
				lines[2][10] != "" || lines[3][6] != "opus <b>x</b>" || lines[3][8] != "1200" || lines[4][6] != "" || lines[4][8] != "320" {
				t.Errorf("%v: %q", err, text)
			}
			p.Until("nothing is wider than the window", uitest.Fits(p))
			p.NoConsoleErrors()
		})
	}
}

// TestUsageSeries checks that days without a report are gaps in the table and zero in the chart,
// and that invalid days are omitted.
func TestUsageSeries(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	got := uitest.Eval[string](p, `(async () => { const { series } = await import('/usage/chart.js');
		const rows = [{day: '2026-11-25', cost_usd: 2}, {day: '2026-11-25', cost_usd: 1, input_tokens: 5}, {day: '2026-11-23', output_tokens: 7}, {day: 'x', cost_usd: 9}, {}, {day: '2020-01-01', cost_usd: 1}];
		return JSON.stringify([series(rows, 'cost')[1].slice(-3), series(rows, 'tokens')[1].slice(-3), series(rows, 'cost')[0].length, series([], 'cost')]); })()`)
	if want := `[[0,0,3],[7,0,5],31,[[],[]]]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
