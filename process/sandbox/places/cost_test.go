package places_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// crowded is a session in a workspace with so many files, 20 hidden folders and 20 patterns.
func crowded(tb testing.TB, base string, files int) places.Session {
	tb.Helper()
	workspace := filepath.Join(base, "repo", "w")
	s := places.Session{
		Agent: "coder", Driver: "exec", Argv: []string{"/bin/sh"}, Dir: workspace, Root: filepath.Join(base, "repo"),
		State: filepath.Join(base, "repo", ".fairlead"),
		Own:   filepath.Join(base, "repo", ".fairlead", "tmp", "coder-1"), Env: []string{"HOME=" + base, "PATH=/usr/bin:/bin"},
	}
	s.Ability.By = "namespaces"
	for i := range 20 {
		s.Hide = append(s.Hide, filepath.Join(workspace, "d", fmt.Sprint(i)))
		s.CannotWrite = append(s.CannotWrite, fmt.Sprintf("**/*.x%d", i))
	}
	if err := os.MkdirAll(s.State, 0o755); err != nil {
		tb.Fatal(err)
	}
	const each = 1000
	for i := range max(20, files/each) {
		dir := filepath.Join(workspace, "d", fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
		for j := range min(each, max(0, files-i*each)) {
			f, err := os.Create(filepath.Join(dir, fmt.Sprint(j)))
			if err != nil {
				tb.Fatal(err)
			}
			f.Close()
		}
	}
	return s
}

// TestCost checks that the work for a view is the same with one file and with many.
func TestCost(t *testing.T) {
	few, many := crowded(t, t.TempDir(), 1), crowded(t, t.TempDir(), 3000)
	work := func(s places.Session) float64 {
		return testing.AllocsPerRun(5, func() {
			if _, err := places.Of(s); err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := work(few), work(many); b > 1.05*a {
		t.Errorf("with one file there are %.0f allocations, with 3,000 there are %.0f", a, b)
	}
}

// BenchmarkOf decides the places in a workspace of 300,000 files, with 20 hidden folders and 20 patterns, and in an empty one.
func BenchmarkOf(b *testing.B) {
	for _, files := range []int{0, 300_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			s := crowded(b, b.TempDir(), files)
			for b.Loop() {
				if _, err := places.Of(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSession starts and ends `true`: without a view, and with all that a view of a session needs, its folders and its self-test
// included, in a workspace with no file and with 300,000 files. The kinds take turns, so that a busy machine slows all of them.
func BenchmarkSession(b *testing.B) {
	a := sandbox.Abilities()
	if a.By != sandbox.ByNamespaces {
		b.Skip("there is no view here")
	}
	kinds := map[string]*places.Session{"plain": nil}
	for name, files := range map[string]int{"few": 0, "many": 300_000} {
		base, err := filepath.EvalSymlinks(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		s := crowded(b, base, files)
		s.Ability = a
		kinds[name] = &s
	}
	syscall.Sync() // what is written back meanwhile would slow the starts
	took := map[string][]time.Duration{}
	for b.Loop() {
		for name, s := range kinds {
			began := time.Now()
			if s == nil {
				if err := exec.CommandContext(b.Context(), "/bin/true").Run(); err != nil {
					b.Fatal(err)
				}
				took[name] = append(took[name], time.Since(began))
				continue
			}
			p, err := places.Of(*s)
			if err == nil {
				err = p.Make()
			}
			if err != nil {
				b.Fatal(err)
			}
			points, err := sandbox.MakePoints(s.State, p.View)
			if err != nil {
				b.Fatal(err)
			}
			argv, err := sandbox.WrapView(os.Args[0], []string{"/bin/true"}, p.View)
			if err != nil {
				b.Fatal(err)
			}
			cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
			cmd.SysProcAttr, cmd.Env = p.View.Attr(), p.Env
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			took[name] = append(took[name], time.Since(began))
			if err := errors.Join(points.Remove(), places.End(s.Own)); err != nil {
				b.Fatal(err)
			}
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-median-ms")
	}
}
