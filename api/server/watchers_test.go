package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// BenchmarkWatchers measures the time from a change in the journal until the last of 1,000
// watchers has its last byte, beside a bare loop that writes the same bytes to 1,000 sockets
// whose other ends are read in the same way. Both take turns in one run, in one process:
// readers and writers share its processors.
func BenchmarkWatchers(b *testing.B) {
	const watchers = 1000
	s := serve(b)
	heard, bareHeard := make(chan struct{}, watchers), make(chan struct{}, watchers)
	path := filepath.Join(filepath.Dir(socketOf(b, s)), "bare")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var bare []net.Conn
	for range watchers {
		c, err := net.Dial("unix", path)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		other, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer other.Close()
		bare = append(bare, other)
		go listen(c, bareHeard)

		w, err := net.Dial("unix", socketOf(b, s))
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		if _, err := io.WriteString(w, "GET "+api.Base+"/events HTTP/1.1\r\nHost: fairlead\r\n\r\n"); err != nil {
			b.Fatal(err)
		}
		go listen(w, heard)
	}
	wait.Until(b, "all watch", func() bool { return s.watchers.Load() == watchers })
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	var events, loops, ratios []float64
	for b.Loop() {
		began := time.Now()
		head := s.sup.add(b, "coder", 1)
		for range watchers {
			<-heard
		}
		event := time.Since(began)

		f, err := s.live(head)
		if err != nil {
			b.Fatal(err)
		}
		frames, _, err := f.since(head - 1)
		if err != nil {
			b.Fatal(err)
		}
		wire := fmt.Appendf(nil, "%x\r\n%s\r\n", len(frames[0].wire), frames[0].wire)
		began = time.Now()
		for _, c := range bare {
			if _, err := c.Write(wire); err != nil {
				b.Fatal(err)
			}
		}
		for range watchers {
			<-bareHeard
		}
		loop := time.Since(began)
		events = append(events, event.Seconds()*1e3)
		loops = append(loops, loop.Seconds()*1e3)
		ratios = append(ratios, event.Seconds()/loop.Seconds())
	}
	slices.Sort(events)
	slices.Sort(loops)
	slices.Sort(ratios)
	b.ReportMetric(events[len(events)/2], "ms-median")
	b.ReportMetric(events[len(events)*99/100], "ms-p99")
	b.ReportMetric(loops[len(loops)/2], "ms-bare")
	b.ReportMetric(ratios[len(ratios)/2], "x-bare")
	b.ReportMetric(float64(mem.HeapInuse+mem.StackInuse)/watchers/1024, "KiB/watcher")
}

// listen says each time that a change has come to its end.
func listen(c net.Conn, heard chan<- struct{}) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("event: change")) {
			heard <- struct{}{}
		}
	}
}
