package shim

import (
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// BenchmarkDone measures from the agent's SIGKILL to Done: everything in between
// is synced, the exit record included.
func BenchmarkDone(b *testing.B) {
	var worst, sum time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		h, err := Start(b.Context(), b.TempDir(), agent(b, "hang"))
		ok(b, err)
		lines(b, h, 1)
		st, err := h.Status(b.Context())
		ok(b, err)
		b.StartTimer()
		began := time.Now()
		ok(b, syscall.Kill(st.AgentPID, syscall.SIGKILL))
		<-h.Done()
		took := time.Since(began)
		worst, sum, n = max(worst, took), sum+took, n+1
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(n), "mean-ms")
}

// BenchmarkLost measures from the shim's SIGKILL to Done, its agent found and ended.
func BenchmarkLost(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		h, err := Start(b.Context(), b.TempDir(), agent(b, "hang"))
		ok(b, err)
		st, err := h.Status(b.Context())
		ok(b, err)
		b.StartTimer()
		ok(b, syscall.Kill(st.ShimPID, syscall.SIGKILL))
		<-h.Done()
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
}

// BenchmarkStart measures from Start to its return: two synced records, one exec of the shim, one of the agent. With a view it
// is made, tried, and entered, too. Both kinds of starts take turns, so that a busy machine slows both.
func BenchmarkStart(b *testing.B) {
	kinds := []string{"plain"}
	views := map[string]*sandbox.View{}
	if a := sandbox.Abilities(); a.By == sandbox.ByNamespaces {
		v := a.Apply(sandbox.View{Places: []sandbox.Place{{Path: b.TempDir(), Access: sandbox.Write}}})
		kinds, views["view"] = append(kinds, "view"), &v
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, kind := range kinds {
			spec := agent(b)
			spec.Launch.Argv, spec.Launch.View = []string{"/bin/sleep", "600"}, views[kind]
			dir := b.TempDir()
			began := time.Now()
			h, err := Start(b.Context(), dir, spec)
			took[kind] = append(took[kind], time.Since(began))
			ok(b, err)
			ok(b, h.End(b.Context(), 0))
			<-h.Done()
			h.Close()
		}
	}
	for kind, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, kind+"-median-ms")
	}
}

// BenchmarkOutput measures how fast output is spooled, synced and read back.
func BenchmarkOutput(b *testing.B) {
	const bytes = 64 << 20
	b.SetBytes(bytes)
	for b.Loop() {
		h, err := Start(b.Context(), b.TempDir(), agent(b, "bytes", "67108864"))
		ok(b, err)
		r, err := h.Output(b.Context(), 0)
		ok(b, err)
		if n, err := io.Copy(io.Discard, r); n != bytes || err != nil {
			b.Fatal(n, err)
		}
		r.Close()
		h.Close()
	}
}
