package boundedlog

import (
	"strings"
	"testing"
)

// A log writes whole lines up to its limit, and nothing after the first line that did not fit, however short.
func TestLog(t *testing.T) {
	const most = 1000
	var to strings.Builder
	l := New(&to, most)
	l.Print("%s %d", "line", 1)
	if !strings.HasSuffix(to.String(), "Z line 1\n") {
		t.Errorf("%q", to.String())
	}
	for range 100 {
		l.Print("%s", strings.Repeat("x", 100))
	}
	full := to.String()
	if len(full) > most || len(full) < most-150 || !strings.HasSuffix(full, "x\n") {
		t.Errorf("%d bytes, the last ones %q", len(full), full[len(full)-10:])
	}
	l.Print("short")
	if to.String() != full {
		t.Errorf("a line after the limit: %q", to.String()[len(full):])
	}
}
