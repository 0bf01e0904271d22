// Package counts compares counts in tests with a committed baseline: the allocations, appends and
// syncs of one operation.
//
// A count does not depend on the machine, so a test may depend on it, unlike on a duration. The
// baseline of all packages is baseline.txt in this folder. A count that grew fails the test.
// UPDATE=1 writes the present counts, for an intended growth and for a count that shrank.
//
// The one promise: an operation in the baseline does not become more expensive without a change of
// that file.
package counts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Check compares a count with the baseline.
func Check(t testing.TB, name string, got int) {
	t.Helper()
	Within(t, name, got, 0)
}

// Within is Check for a count that may differ between two runs of the same program, by a percentage
// or by one.
func Within(t testing.TB, name string, got, percent int) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := renew(path(), name, got); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path())
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if why := compare(baseline, name, got, percent); why != "" {
		t.Error(why)
	}
}

// compare returns what is wrong with a count; empty: nothing.
func compare(baseline map[string]int, name string, got, percent int) string {
	const renew = "`UPDATE=1 go test -run Counts ./...` writes what is counted now into internal/test/counts/baseline.txt"
	was, known := baseline[name]
	may := was
	if percent > 0 {
		may += max(1, was*percent/100)
	}
	switch {
	case !known:
		return fmt.Sprintf("%s: the baseline does not have it, and %d were counted; %s", name, got, renew)
	case got > may:
		return fmt.Sprintf("%s: %d, and the baseline has %d. Find out what was added; if it is worth that, %s", name, got, was, renew)
	}
	return ""
}

// Allocations returns the smallest number of objects that one of some runs allocates. Without
// garbage collection, pools keep their objects; with one processor, no other goroutine runs in
// between for long. A test that calls it must not be parallel.
func Allocations(runs int, do func()) int {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	least := -1
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if n := int(after.Mallocs - before.Mallocs); least < 0 || n < least { //nolint:gosec // a count of some thousands
			least = n
		}
	}
	return least
}

func path() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "baseline.txt")
}

// parse parses lines of a count and a name.
func parse(text string) (map[string]int, error) {
	all := map[string]int{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		count, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		if _, twice := all[strings.TrimSpace(name)]; err != nil || twice {
			return nil, fmt.Errorf("internal/test/counts/baseline.txt: %q is not a line of a count and a new name", line)
		}
		all[strings.TrimSpace(name)] = n
	}
	return all, nil
}

const head = "# Counts of operations, compared by tests named Counts. UPDATE=1 go test -run Counts ./... renews them.\n"

// renew writes one count. Test programs of several packages may do so at the same time.
func renew(path, name string, got int) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	all, err := parse(string(text))
	if err != nil {
		return err
	}
	all[name] = got
	lines := make([]string, 0, len(all))
	for name, n := range all {
		lines = append(lines, fmt.Sprintf("%6d %s\n", n, name))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	now := head + strings.Join(lines, "")
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(now), 0)
	return err
}
