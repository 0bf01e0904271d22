package remote_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/driver"
)

// starter starts a session on this machine, or on the host.
type starter func(session string, l driver.Launch) seam.Process

// both are the two ways to run a session, with real shims. The host is on loopback.
func both(b *testing.B) (here, there starter) {
	w := newWorld(b)
	local := w.shims()
	local.Folder = b.TempDir()
	n := 0
	of := func(start func(context.Context, string, uint64, driver.Launch, time.Duration) (seam.Process, error)) starter {
		return func(session string, l driver.Launch) seam.Process {
			n++
			p := must[seam.Process](b)(start(b.Context(), fmt.Sprintf("%s-%d", session, n), 1, l, 0))
			b.Cleanup(func() {
				_ = p.End(context.Background(), 0)
				<-p.Done()
				p.Close()
			})
			return p
		}
	}
	return of(local.Start), of(w.Start)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkOutput reads 64 MiB that a session on a host has printed, and those of one on this machine, in turns.
func BenchmarkOutput(b *testing.B) {
	here, there := both(b)
	const size = 64 << 20
	var took [2][]time.Duration
	var procs [2]seam.Process
	for i, start := range []starter{here, there} {
		procs[i] = start("coder", shell(fmt.Sprintf("head -c %d /dev/zero", size)))
		<-procs[i].Done()
	}
	for b.Loop() {
		for i, p := range procs {
			began := time.Now()
			out := must[io.ReadCloser](b)(p.Output(b.Context(), 0))
			if n := must[int64](b)(io.Copy(io.Discard, out)); n != size {
				b.Fatalf("%d bytes", n)
			}
			out.Close()
			took[i] = append(took[i], time.Since(began))
		}
	}
	own, other := median(took[0]), median(took[1])
	b.ReportMetric(size/1e6/own.Seconds(), "MB/s-here")
	b.ReportMetric(size/1e6/other.Seconds(), "MB/s-host")
	b.ReportMetric(other.Seconds()/own.Seconds(), "host/here")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLine waits for lines with the time at which they were printed, on a host and on this machine, in turns.
func BenchmarkLine(b *testing.B) {
	here, there := both(b)
	var took [2][]time.Duration
	var outs [2]io.Reader
	for i, start := range []starter{here, there} {
		out := must[io.ReadCloser](b)(start("clock", shell("while :; do date +%s%N; sleep 0.02; done")).Output(b.Context(), 0))
		b.Cleanup(func() { out.Close() })
		outs[i] = out
	}
	for b.Loop() {
		for i, out := range outs {
			var at int64
			for range 2 { // the first may have waited for its turn
				if _, err := fmt.Sscan(readLine(b, out), &at); err != nil {
					b.Fatal(err)
				}
			}
			took[i] = append(took[i], time.Since(time.Unix(0, at)))
		}
	}
	own, other := median(took[0]), median(took[1])
	b.ReportMetric(own.Seconds()*1000, "ms/line-here")
	b.ReportMetric(other.Seconds()*1000, "ms/line-host")
	b.ReportMetric(other.Seconds()/own.Seconds(), "host/here")
	b.ReportMetric(0, "ns/op")
}
