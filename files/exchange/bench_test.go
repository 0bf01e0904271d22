package exchange_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/exchange"

	"github.com/fsnotify/fsnotify"
)

// swapIn replaces a file by rename, as a careful program does, and returns the time of the rename.
func swapIn(b *testing.B, folder, content string) (began time.Time) {
	tmp := filepath.Join(folder, "theirs.tmp")
	if err := os.WriteFile(tmp, []byte(content), 0o644); err != nil {
		b.Fatal(err)
	}
	began = time.Now()
	if err := os.Rename(tmp, filepath.Join(folder, agentState.base)); err != nil {
		b.Fatal(err)
	}
	return began
}

func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkReaction measures the time from a rename by another program to the seenFile.
func BenchmarkReaction(b *testing.B) {
	w := exchange.Watch(agentState.content, nil)
	arrived := make(chan seenFile, 2048)
	w.Deliver(func(s seenFile) { arrived <- s })
	defer func() { _ = w.Close() }()
	folder := b.TempDir()
	if err := w.Add(agentState.name, folder); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Read(agentState.name); err != nil { // the watch is active from here on
		b.Fatal(err)
	}
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := range b.N {
		began := swapIn(b, folder, agentState.says(fmt.Sprint(i)))
		<-arrived
		took = append(took, time.Since(began))
	}
	percentiles(b, took)
}

// BenchmarkReactionOfABareWatcher measures only a watch and a read: the lower bound.
func BenchmarkReactionOfABareWatcher(b *testing.B) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = notify.Close() }()
	folder := b.TempDir()
	if err := notify.Add(folder); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(folder, agentState.base)
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := range b.N {
		began := swapIn(b, folder, agentState.says(fmt.Sprint(i)))
		for ev := range notify.Events {
			if ev.Name == path {
				if _, err := os.ReadFile(path); err != nil {
					b.Fatal(err)
				}
				break
			}
		}
		took = append(took, time.Since(began))
	}
	percentiles(b, took)
}

// BenchmarkPollOf1000AtRest measures one poll over 1,000 unchanged files, which happens every 5 s.
func BenchmarkPollOf1000AtRest(b *testing.B) {
	w := exchange.Watch(agentState.content, nil)
	arrived := make(chan seenFile, 2048)
	w.Deliver(func(s seenFile) { arrived <- s })
	defer func() { _ = w.Close() }()
	root := b.TempDir()
	long := time.Now().Add(-time.Hour)
	for i := range 1000 {
		folder := filepath.Join(root, fmt.Sprint(i))
		path := filepath.Join(folder, agentState.base)
		if os.Mkdir(folder, 0o755) != nil || os.WriteFile(path, []byte(agentState.says("")), 0o644) != nil ||
			os.Chtimes(path, long, long) != nil {
			b.Fatal("cannot lay out the files")
		}
		if err := w.Add(fmt.Sprint(i), folder); err != nil {
			b.Fatal(err)
		}
	}
	for range 1000 {
		s := <-arrived
		if _, err := w.Read(s.Name); err != nil { // returns after the look that saw the file
			b.Fatal(err)
		}
	}
	files := w.Folders()
	stale := 0
	for b.Loop() {
		for _, f := range files {
			if w.Stale(f) { // true only while w's own poll looks at this file
				stale++
			}
		}
	}
	b.ReportMetric(float64(stale)/float64(b.N), "stale/op")
}

// BenchmarkWrite measures one write over our own file, with two syncs.
func BenchmarkWrite(b *testing.B) {
	w := exchange.Watch(agentState.content, nil)
	arrived := make(chan seenFile, 2048)
	w.Deliver(func(s seenFile) { arrived <- s })
	defer func() { _ = w.Close() }()
	if err := w.Add(agentState.name, b.TempDir()); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if err := w.Write(b.Context(), agentState.name, []byte(agentState.says(fmt.Sprint(i))), exchange.AnyLook, nil); err != nil {
			b.Fatal(err)
		}
	}
}
