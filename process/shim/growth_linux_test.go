package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestHandleGrowth: of two sessions in one folder, the one that fills the disk grows, and the other one, which writes a little, does not
// grow by what its neighbour writes. Both rest when nothing is written.
func TestHandleGrowth(t *testing.T) {
	dir := t.TempDir()
	spec := func(name string, args ...string) Spec {
		s := agent(t, args...)
		s.Session, s.Launch.Dir = name, dir
		return s
	}
	ok(t, os.WriteFile(filepath.Join(dir, "before"), make([]byte, 32*mib), 0o600))
	quiet := start(t, filepath.Join(t.TempDir(), "quiet"), spec("t-1", "hang"))
	lines(t, quiet, 1)
	eater := start(t, filepath.Join(t.TempDir(), "eater"), spec("t-2", "eat", "disk", strconv.Itoa(64*mib)))
	grows := func(h *Handle) int64 {
		rate, err := h.Growth(t.Context())
		ok(t, err)
		return rate
	}
	wait.Until(t, "the eater grows", func() bool {
		if rate := grows(quiet); rate > mib/8 {
			t.Fatalf("the quiet one grows by %d bytes a second", rate)
		}
		return grows(eater) > mib
	})
	wait.Until(t, "both rest", func() bool { return grows(eater)+grows(quiet) < mib })
}

// TestWrittenIn: what a process has written, by calls and to disks.
func TestWrittenIn(t *testing.T) {
	if got := writtenIn([]byte("rchar: 1\nwchar: 20\nsyscr: 4\nread_bytes: 8\nwrite_bytes: 300\ncancelled_write_bytes: 7\n")); got != 320 {
		t.Fatal(got)
	}
}
