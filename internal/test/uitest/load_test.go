package uitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

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

// BenchmarkLoad measures how long the page takes to appear in a window with an empty cache: on loopback, beside a bare page in
// the same browser, and on a line as slow as 3G is at its slowest: 400 ms to an answer, 400 kbit a second.
func BenchmarkLoad(b *testing.B) {
	var config strings.Builder
	config.WriteString("version: 1\nagents:\n")
	for i := range 8 {
		fmt.Fprintf(&config, "  agent-%d: {driver: script, script: s.yaml}\n", i)
	}
	s := uitest.NewServer(b, map[string]string{"fairlead.yaml": config.String(), "s.yaml": "steps:\n  - say: done\n"})
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><title>bare</title><p class=masthead>Some words")
	}))
	defer bare.Close()
	const shown = `document.querySelector('p, .now-head') !== null && performance.getEntriesByName('first-contentful-paint').length > 0`
	load := func(url string) loading {
		p := uitest.Browse(b)
		p.Open(url)
		p.Until("the page is shown", shown)
		return uitest.Eval[loading](p, loadingOf)
	}
	var bares, pages []loading
	var slow []float64
	for b.Loop() {
		for range 5 {
			bares, pages = append(bares, load(bare.URL)), append(pages, load(s.URL+"#/now"))
		}
		p := uitest.Browse(b)
		p.Slow3G()
		began := time.Now()
		p.Open(s.URL + "#/now")
		p.Until("the page is shown", shown)
		slow = append(slow, time.Since(began).Seconds())
	}
	middle := func(of []loading, what func(loading) float64) float64 {
		var n []float64
		for _, l := range of {
			n = append(n, what(l))
		}
		slices.Sort(n)
		return n[len(n)/2]
	}
	b.ReportMetric(middle(bares, func(l loading) float64 { return l.First }), "ms/bare-page")
	b.ReportMetric(middle(pages, func(l loading) float64 { return l.First }), "ms/first-paint")
	b.ReportMetric(middle(pages, func(l loading) float64 { return l.Requests }), "requests")
	b.ReportMetric(middle(pages, func(l loading) float64 { return l.KB }), "KB")
	slices.Sort(slow)
	b.ReportMetric(slow[len(slow)/2], "s/slow-3G")
	b.ReportMetric(0, "ns/op")
}
