// Command benchall measures every aim of doc/performance.md and prints its table.
//
//	go run ./internal/test/benchall                      all, in less than ten minutes
//	go run ./internal/test/benchall -only 'hand-off|f$'  rows whose text matches
//	go run ./internal/test/benchall -within 3m           as many rounds as fit into three minutes
//
// It builds each test program once, then runs all benchmarks alternately, round after round, until
// the time is over. A row shows the median of its rounds, and the smallest and largest ratio to its
// yardstick. A benchmark measures its yardstick in the same run, alternately. f is one bare write
// and sync of 200 bytes, measured before each round. Benchmarks of the loop let as many goroutines run
// at once as a daemon does ([loop.Processors]).
//
// The one promise: a figure that is printed was measured in this run, and the table says how often.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"
)

func main() {
	within := flag.Duration("within", 7*time.Minute, "begin no benchmark `this time` after the programs are built")
	only := flag.String("only", "", "only rows whose text matches this `expression`")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchall:", err)
		os.Exit(2)
	}
	if err := run(context.Background(), chosen, *within, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchall:", err)
		os.Exit(1)
	}
}

// run measures and prints. The error of a benchmark is reported at the end, after the table of the
// others.
func run(ctx context.Context, chosen *regexp.Regexp, within time.Duration, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "fairlead-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer os.RemoveAll(dir)
	runs := matching(chosen)
	if len(runs) == 0 {
		return fmt.Errorf("no row matches %q", chosen)
	}
	if err := build(ctx, dir, runs, progress); err != nil {
		return err
	}
	began := time.Now()
	m := &measured{values: map[string][]float64{}}
	failed := map[string]error{}
	for round := 0; ; round++ {
		f, err := bareSync(dir)
		if err != nil {
			return err
		}
		m.syncs = append(m.syncs, f)
		did := 0
		for i := range runs {
			r := &runs[i]
			name := r.pkg + " " + r.bench
			if r.once && round > 0 || failed[name] != nil || time.Since(began) > within {
				continue
			}
			did++
			fmt.Fprintf(progress, "%s round %d: %s\n", time.Since(began).Round(time.Second), round+1, name)
			text, err := r.measure(ctx, dir)
			if err != nil {
				failed[name] = err
				continue
			}
			m.take(r.pkg, text)
		}
		if did == 0 {
			break
		}
	}
	m.print(out, runs, time.Since(began))
	var all []error
	for name, err := range failed {
		all = append(all, fmt.Errorf("%s: %w", name, err))
	}
	return errors.Join(all...)
}

// matching returns the benchmarks that have a row whose text matches, with these rows.
func matching(chosen *regexp.Regexp) (runs []bench) {
	for _, r := range table() {
		r.rows = slices.DeleteFunc(slices.Clone(r.rows), func(w row) bool { return !chosen.MatchString(w.what) })
		if len(r.rows) > 0 {
			runs = append(runs, r)
		}
	}
	return runs
}

// programOf returns the path of a package's test program.
func programOf(dir, pkg string) string {
	return filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")
}

// build builds the test programs, and the program that some of them start.
func build(ctx context.Context, dir string, runs []bench, progress io.Writer) error {
	var builds [][]string
	if slices.ContainsFunc(runs, func(r bench) bool { return r.pkg == "cmd/fairlead" }) {
		builds = append(builds, []string{"build", "-o", filepath.Join(dir, "fairlead"), "./cmd/fairlead"})
	}
	made := map[string]bool{}
	for i := range runs {
		if pkg := runs[i].pkg; !made[pkg] {
			made[pkg] = true
			builds = append(builds, []string{"test", "-c", "-o", programOf(dir, pkg), "./" + pkg})
		}
	}
	for _, words := range builds {
		fmt.Fprintln(progress, "go", strings.Join(words, " "))
		if text, err := exec.CommandContext(ctx, "go", words...).CombinedOutput(); err != nil { //nolint:gosec // the words are ours
			return fmt.Errorf("go %s: %w: %s", strings.Join(words, " "), err, text)
		}
	}
	return nil
}

// measure runs a benchmark once, in its package's folder.
func (r *bench) measure(ctx context.Context, dir string) (text []byte, err error) {
	const most = 5 * time.Minute // the limit for one benchmark in one round, on a busy machine
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	took := cmp.Or(r.time, "200ms")
	cmd := exec.CommandContext(ctx, programOf(dir, r.pkg), "-test.run=^$", "-test.bench="+r.bench,
		"-test.benchtime="+took) //nolint:gosec // our own test program
	cmd.Dir, cmd.Env = r.pkg, append(os.Environ(), "FAIRLEAD_TEST_PROGRAM="+filepath.Join(dir, "fairlead"), "FAIRLEAD_LONG=ci")
	if r.pkg == "app" || r.pkg == "api/server" { // they have a loop in the process of the test
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(loop.Processors()))
	}
	text, err = cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, text[max(0, len(text)-1000):])
	}
	return text, nil
}

// bareSync measures f: the median of some writes of 200 bytes, each synced.
func bareSync(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	took := make([]time.Duration, 101)
	for i := range took {
		began := time.Now()
		if _, err := f.Write(make([]byte, 200)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// measured holds the values of all rounds, by package, benchmark and metric.
type measured struct {
	syncs  []time.Duration
	values map[string][]float64
}

func key(pkg, name, metric string) string { return pkg + " " + name + " " + metric }

var processors = regexp.MustCompile(`-\d+$`)

// take reads the output of a test program.
func (m *measured) take(pkg string, text []byte) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(words[0], "")
		for i := 2; i+1 < len(words); i += 2 {
			if v, err := strconv.ParseFloat(words[i], 64); err == nil {
				k := key(pkg, name, words[i+1])
				m.values[k] = append(m.values[k], v)
			}
		}
	}
}

// print writes the table in the format of doc/performance.md.
func (m *measured) print(out io.Writer, runs []bench, took time.Duration) {
	slices.Sort(m.syncs)
	fmt.Fprintf(out, "Measured on %s with %s, %d processors, %sin %s; f is %s.\n", time.Now().Format(time.DateOnly), runtime.Version(),
		runtime.NumCPU(), load(),
		took.Round(time.Second), m.syncs[len(m.syncs)/2].Round(100*time.Nanosecond))
	fmt.Fprint(out, "\n| what | figure | to its yardstick: median, from, to | aim | rounds |\n|---|---|---|---|---|\n")
	for i := range runs {
		r := &runs[i]
		for j := range r.rows {
			fmt.Fprintln(out, m.line(r.pkg, &r.rows[j]))
		}
	}
}

func (m *measured) line(pkg string, w *row) string {
	shown := func(metric string, span bool) (string, float64, int) {
		values := slices.Sorted(slices.Values(m.values[key(pkg, w.bench, metric)]))
		n := len(values)
		if n == 0 {
			return "", 0, 0
		}
		middle := values[n/2]
		text := readable(middle, metric)
		if span && n > 1 {
			text += fmt.Sprintf(", %s to %s", digits(values[0]), digits(values[n-1]))
		}
		return text, middle, n
	}
	figure, ratio, n := shown(w.figure, w.beside == "")
	if n == 0 {
		figure = "not measured"
	}
	has := n
	beside := ""
	if w.beside != "" {
		beside, ratio, has = shown(w.beside, true)
	}
	aim := ""
	if w.aim != 0 && has > 0 {
		aim = digits(w.aim) + ": met"
		if w.more && ratio < w.aim || !w.more && ratio > w.aim {
			aim = digits(w.aim) + ": missed"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d |", w.what, figure, beside, aim, max(n, has))
}

// readable formats a value with its metric, and a duration in a larger unit if that is shorter.
func readable(v float64, metric string) string {
	for _, larger := range [][2]string{{"ns/", "µs/"}, {"µs/", "ms/"}} {
		if rest, is := strings.CutPrefix(metric, larger[0]); is && v >= 1000 {
			v, metric = v/1000, larger[1]+rest
		}
	}
	return digits(v) + " " + metric
}

// digits formats a value with three significant digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// load describes the machine's load; empty if the system does not report it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return "load " + strings.Fields(string(text))[0] + ", "
}
