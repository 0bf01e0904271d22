package counts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare checks that a larger count is a fault that says how to renew the baseline, that a
// smaller one is none, and that an unknown name is a fault.
func TestCompare(t *testing.T) {
	t.Parallel()
	baseline := map[string]int{"order: appends": 2, "start: allocations": 1000}
	for _, c := range []struct {
		name         string
		got, percent int
		bad          string
	}{
		{"order: appends", 2, 0, ""},
		{"order: appends", 1, 0, ""},
		{"order: appends", 3, 0, "order: appends: 3, and the baseline has 2"},
		{"start: allocations", 1019, 2, ""},
		{"start: allocations", 1021, 2, "the baseline has 1000"},
		{"order: appends", 3, 2, ""},
		{"order: appends", 4, 2, "the baseline has 2"},
		{"new", 1, 0, "the baseline does not have it, and 1 were counted"},
	} {
		why := compare(baseline, c.name, c.got, c.percent)
		if (why == "") != (c.bad == "") || !strings.Contains(why, c.bad) || why != "" && !strings.Contains(why, "UPDATE=1") {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "baseline.txt")
	for _, name := range []string{"b", "a", "b"} {
		if err := renew(path, name, len(name)+6); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != head+"     7 a\n     7 b\n" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := parse("many a\n"); err == nil {
		t.Error("a word is accepted as a number")
	}
}
