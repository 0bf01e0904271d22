package uitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// loading is when a loaded page was first painted and when its largest part was, in milliseconds
// from its request; and the requests until then, with their transferred bytes.
type loading struct{ First, Largest, Requests, KB float64 }

const loadingOf = `(async () => {
	const largest = new Promise((done) => new PerformanceObserver((l) => done(l.getEntries().at(-1).startTime)).observe({ type: 'largest-contentful-paint', buffered: true }));
	const files = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => !e.name.includes('/api/'));
	return { First: performance.getEntriesByName('first-contentful-paint')[0].startTime, Largest: await largest,
		Requests: files.length, KB: files.reduce((n, e) => n + e.transferSize, 0) / 1024 };
})()`

// TestLoadMeasured measures how long the page takes to appear, without a cache and with one, if
// FAIRLEAD_LOAD_MEASURED=1 is set. The yardstick is a bare page in the same browser. Timings are
// printed and not checked.
func TestLoadMeasured(t *testing.T) {
	if os.Getenv("FAIRLEAD_LOAD_MEASURED") == "" {
		t.Skip("set FAIRLEAD_LOAD_MEASURED=1 to measure how long the page takes to appear")
	}
	var config strings.Builder
	config.WriteString("version: 1\nagents:\n")
	for i := range 8 {
		fmt.Fprintf(&config, "  agent-%d: {driver: script, script: s.yaml}\n", i)
	}
	s := uitest.NewServer(t, map[string]string{"fairlead.yaml": config.String(), "s.yaml": "steps:\n  - say: done\n"})
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><title>bare</title><p class=masthead>Some words")
	}))
	defer bare.Close()
	all := map[string][]loading{}
	for range 9 {
		for _, c := range []struct{ name, url string }{{"bare", bare.URL}, {"page", s.URL + "#/now"}} {
			p := uitest.Browse(t)
			for _, cache := range []string{"first visit", "again"} {
				p.Open(c.url)
				p.Until("the page is shown", `document.querySelector('p, .now-head') !== null && performance.getEntriesByName('first-contentful-paint').length > 0`)
				all[c.name+", "+cache] = append(all[c.name+", "+cache], uitest.Eval[loading](p, loadingOf))
			}
		}
	}
	middle := func(of []loading, what func(loading) float64) float64 {
		var n []float64
		for _, l := range of {
			n = append(n, what(l))
		}
		slices.Sort(n)
		return n[len(n)/2]
	}
	t.Log("| page | first paint | largest paint | requests | KB |")
	for _, name := range []string{"bare, first visit", "bare, again", "page, first visit", "page, again"} {
		of := all[name]
		t.Logf("| %s | %.0f ms | %.0f ms | %.0f | %.0f |", name, middle(of, func(l loading) float64 { return l.First }), middle(of, func(l loading) float64 { return l.Largest }),
			middle(of, func(l loading) float64 { return l.Requests }), middle(of, func(l loading) float64 { return l.KB }))
	}
}
