package api

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkWatchers measures the time from a change in the journal until the last of 1,000
// watchers has it, all of them in this process: clients and server share its processors.
func BenchmarkWatchers(b *testing.B) {
	const watchers = 1000
	s := serve(b)
	ctx, cancel := context.WithCancel(b.Context())
	heard := make(chan struct{}, watchers)
	var all sync.WaitGroup
	for range watchers {
		c, err := Dial(s.dir)
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			defer c.Close()
			for _, err := range c.Events(ctx, EventsQuery{After: FromNow}) {
				if err != nil {
					b.Error(err)
					return
				}
				heard <- struct{}{}
			}
		})
	}
	eventually(b, "all watch", func() bool { return s.watchers.Load() == watchers })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		s.fake.add(b, "control/coder", 1)
		for range watchers {
			<-heard
		}
		took = append(took, time.Since(began))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(before.HeapInuse+before.StackInuse)/watchers/1024, "KiB/watcher")
	cancel()
	all.Wait()
}
