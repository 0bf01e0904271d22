package driver_test

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
)

func lines(t testing.TB, w driver.Wire, from int64) []driver.Line {
	t.Helper()
	var all []driver.Line
	for l, err := range driver.ReadLines(t.Context(), w, from) {
		if err != nil {
			t.Fatal(err)
		}
		l.Bytes = slices.Clone(l.Bytes)
		all = append(all, l)
	}
	return all
}

func TestLines(t *testing.T) {
	const most = driver.LineBytesMax
	for name, c := range map[string]struct {
		output string
		length int64 // of the first line
		end    int64
		cut    bool
		text   string // its beginning
	}{
		"half":            {"half", 4, 4, false, "half"},
		"empty":           {"\n", 0, 1, false, ""},
		"carriage return": {"a\r\n", 1, 3, false, "a"},
		"return inside":   {"a\rb\n", 3, 4, false, "a\rb"},
		"half, return":    {"a\r", 2, 2, false, "a\r"},
		"just fits":       {strings.Repeat("x", most) + "\n", most, most + 1, false, "xxx"},
		"fits, return":    {strings.Repeat("x", most) + "\r\n", most, most + 2, false, "xxx"},
		"one too many":    {strings.Repeat("x", most+1) + "\n", most + 1, most + 2, true, "xxx"},
		"character cut":   {"x" + strings.Repeat("ä", most) + "\n", 2*most + 1, 2*most + 2, true, "xäää"},
		"no UTF-8":        {"a\xffb\n", 3, 4, false, "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1 << 30, 4097} {
				l := lines(t, &drivertest.Recording{Bytes: []byte(c.output + "next\n"), Sizes: []int{size}}, 0)[0]
				if !strings.HasSuffix(c.output, "\n") {
					l = lines(t, &drivertest.Recording{Bytes: []byte(c.output), Sizes: []int{size}}, 0)[0]
				}
				if l.Length != c.length || l.End != c.end || l.Cut != c.cut || !strings.HasPrefix(l.Text(), c.text) {
					t.Errorf("length %d, end %d, cut %t, %.20q", l.Length, l.End, l.Cut, l.Text())
				}
				if c.cut && (!utf8.Valid(l.Bytes) || len(l.Bytes) > 5000 || !strings.Contains(l.Text(), "cut")) {
					t.Errorf("a cut line shows %d bytes and ends %q", len(l.Bytes), l.Text()[len(l.Text())-30:])
				}
			}
		})
	}
}

// TestLinesMemory checks that reading a line needs little memory, regardless of its length.
func TestLinesMemory(t *testing.T) {
	const longLine = 64 << 20
	w := &endless{left: longLine}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all := lines(t, w, 0)
	runtime.ReadMemStats(&after)
	if len(all) != 1 || all[0].Length != longLine || !all[0].Cut {
		t.Errorf("%d lines, the first of %d bytes", len(all), all[0].Length)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("allocated %d bytes for one line", used)
	}
}

// endless is output that consists of one long line.
type endless struct {
	drivertest.Recording
	left int
}

func (e *endless) Output(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(e), nil }

func (e *endless) Read(b []byte) (int, error) {
	n := min(len(b), e.left)
	for i := range b[:n] {
		b[i] = 'x'
	}
	if e.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestLinesFail(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, w := range []driver.Wire{&wire{err: broken}, &wire{r: io.MultiReader(strings.NewReader("a\nhalf"), failing{broken})}} {
		var last error
		for l, err := range driver.ReadLines(t.Context(), w, 0) {
			if last = err; err == nil && string(l.Bytes) != "a" {
				t.Errorf("the line %q was read from output with a read error", l.Bytes)
			}
		}
		if !errors.Is(last, broken) {
			t.Errorf("ended with %v", last)
		}
	}
}

type wire struct {
	drivertest.Recording
	r   io.Reader
	err error
}

func (w *wire) Output(context.Context, int64) (io.ReadCloser, error) {
	return io.NopCloser(w.r), w.err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestEnvironment(t *testing.T) {
	t.Setenv("FAIRLEAD_TOKEN", "the daemon's own")
	t.Setenv("NOTIFY_SOCKET", "/run/systemd/notify")
	t.Setenv("SECRET_API_KEY", "of another agent")
	t.Setenv("PATHS", "a longer name")
	t.Setenv("LANG", "C")
	t.Setenv("LC_TIME", "C")
	t.Setenv("https_proxy", "http://proxy")
	t.Setenv("WANTED_BY_DRIVER", "yes")
	env := driver.Environment(driver.Agent{
		Name: "coder", Workspace: "/w", Model: "m1",
		Env: []string{"LANG=de_DE", "KEY=a=b", "FAIRLEAD_AGENT=boss", "=odd", "odd"},
	},
		driver.Session{ID: "coder-17", Kind: driver.Cleanup, Attempt: 2}, "WANTED_*")
	for _, want := range []string{
		"PATH=" + os.Getenv("PATH"), "LC_TIME=C", "https_proxy=http://proxy", "WANTED_BY_DRIVER=yes", "LANG=de_DE", "KEY=a=b", "PWD=/w",
		"FAIRLEAD_AGENT=coder", "FAIRLEAD_SESSION=coder-17",
		"FAIRLEAD_SESSION_KIND=cleanup", "FAIRLEAD_ATTEMPT=2", "FAIRLEAD_MODEL=m1",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, c := range []struct {
		s    driver.Session
		want []string // of the two variables that a turn adds
	}{
		{driver.Session{Kind: driver.Work}, nil},
		{driver.Session{Kind: driver.Turn, Channel: "reviews", Turn: 7}, []string{"FAIRLEAD_CHANNEL=reviews", "FAIRLEAD_TURN=7"}},
		{driver.Session{Kind: driver.Turn, Channel: "reviews"}, []string{"FAIRLEAD_CHANNEL=reviews"}}, // an answer that needs no turn
	} {
		var got []string
		for _, kv := range driver.Environment(driver.Agent{}, c.s) {
			if strings.HasPrefix(kv, "FAIRLEAD_CHANNEL=") || strings.HasPrefix(kv, "FAIRLEAD_TURN=") {
				got = append(got, kv)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v adds %q, want %q", c.s, got, c.want)
		}
	}
	names := make(map[string]bool)
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if names[name] || name == "" || name == "FAIRLEAD_TOKEN" || name == "NOTIFY_SOCKET" || name == "SECRET_API_KEY" || name == "PATHS" {
			t.Errorf("%q is there twice, or should not be there", name)
		}
		names[name] = true
	}
}
