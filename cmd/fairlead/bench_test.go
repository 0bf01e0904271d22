package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Benchmarks of the program as people have it: built as it is shipped, started as a process
// of its own. Each alternates between a baseline and the measured operation, so that both run
// on the same machine, and reports the median of the ratios; none of them can fail for being slow.
// doc/performance.md has the results.

// repeats of the operation and of its baseline in one iteration of a benchmark.
const repeats = 9

// built gives the program as `go build` makes it, and one that does nothing.
func built(b *testing.B) (fairlead, empty string) {
	b.Helper()
	dir := b.TempDir()
	fairlead, empty = filepath.Join(dir, "fairlead"), filepath.Join(dir, "empty")
	source := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for out, what := range map[string]string{fairlead: ".", empty: source} {
		build := exec.Command("go", "build", "-o", out, what)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the README installs it
		if said, err := build.CombinedOutput(); err != nil {
			b.Fatalf("go build %s: %v: %s", what, err, said)
		}
	}
	return fairlead, empty
}

// needProc leaves a benchmark out where a process cannot be looked at.
func needProc(b *testing.B) {
	b.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("this system has no /proc, from which memory and processor time are read")
	}
}

// pairs are measurements of the thing and of its yardstick, one beside the other.
type pairs struct {
	ours, bare []time.Duration
}

// measure runs both in turns, and lets each be the first as often.
func (p *pairs) measure(ours, bare func() time.Duration) {
	for n := range repeats {
		if n%2 == 0 {
			p.bare = append(p.bare, bare())
			p.ours = append(p.ours, ours())
		} else {
			p.ours = append(p.ours, ours())
			p.bare = append(p.bare, bare())
		}
	}
}

// report says both medians and the median of the ratios of neighbours.
func (p *pairs) report(b *testing.B, ours, bare string) {
	ratios := make([]float64, len(p.ours))
	for i := range p.ours {
		ratios[i] = p.ours[i].Seconds() / p.bare[i].Seconds()
	}
	b.ReportMetric(millis(middle(p.ours)), "ms/"+ours)
	b.ReportMetric(millis(middle(p.bare)), "ms/"+bare)
	b.ReportMetric(middle(ratios), ours+"/"+bare)
	b.ReportMetric(0, "ns/op")
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }

// middle is the median.
func middle[T int64 | float64 | time.Duration](of []T) T {
	of = slices.Clone(of)
	slices.Sort(of)
	return of[len(of)/2]
}

// benchRig is a repository with a built daemon, for benchmarks.
type benchRig struct {
	b      *testing.B
	exe    string
	dir    string
	daemon *exec.Cmd // nil: none runs
	said   bytes.Buffer
}

// newBenchRig writes the files of a repository. Its daemon is ended after the benchmark.
func newBenchRig(b *testing.B, exe string, files map[string]string) *benchRig {
	b.Helper()
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	h := &benchRig{b: b, exe: exe, dir: dir}
	b.Cleanup(h.down)
	return h
}

// up starts the daemon, and says how long its line took that it is ready.
func (h *benchRig) up() time.Duration {
	h.b.Helper()
	cmd := exec.Command(h.exe, "up", "--dir", h.dir, "--listen", "127.0.0.1:0", "--no-browser")
	h.said.Reset()
	cmd.Stderr = &h.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		h.b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := time.Since(began)
	if err != nil || !strings.HasPrefix(line, "ready ") {
		_, _ = io.Copy(io.Discard, out)
		h.b.Fatalf("the daemon did not get ready: %q, %v, %v; it said: %s", line, err, cmd.Wait(), h.said.String())
	}
	h.daemon = cmd
	return took
}

// down ends the daemon and every session.
func (h *benchRig) down() {
	h.b.Helper()
	if h.daemon == nil {
		return
	}
	if said, err := exec.Command(h.exe, "down", "--now", "--dir", h.dir).CombinedOutput(); err != nil {
		h.b.Errorf("fairlead down: %v: %s", err, said)
		_ = h.daemon.Process.Signal(syscall.SIGKILL)
	}
	if err := h.daemon.Wait(); err != nil {
		h.b.Errorf("the daemon ended with %v: %s", err, h.said.String())
	}
	h.daemon = nil
}

func (h *benchRig) pid() int { return h.daemon.Process.Pid }

// memoryOf is a process's in bytes: what is resident, and what of it is its own and not the
// program's text, which all processes of one program share.
func memoryOf(b *testing.B, pid int) (resident, own float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch {
		case name == "VmRSS" && err == nil:
			resident = kb * 1024
		case name == "RssAnon" && err == nil:
			own = kb * 1024
		}
	}
	if resident == 0 {
		b.Fatalf("/proc/%d/status does not say how much is resident", pid)
	}
	return resident, own
}
