package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/counts"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// Every command initializes all packages that are linked, before it does anything; a shim, a hook and version
// branch off earlier. What that allocates is the same on a slow machine: if it grows, compile or build the new thing on
// first use (see internal/lazy).
func TestCountsOfStart(t *testing.T) {
	if testsize.Race {
		t.Skip("the race detector changes what is allocated")
	}
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"a command", []string{"ps", "--dir", t.TempDir()}},
		{"version", []string{"version"}},
		{"a hook", []string{"hook", "Stop"}},
		{"a shim", []string{"__holder", "s", t.TempDir()}},
	} {
		cmd := exec.Command(program, c.args...)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		said, _ := cmd.CombinedOutput() // without a daemon some fail, after they were initialized
		sum, packages := 0, 0
		for line := range strings.Lines(string(said)) {
			fields := strings.Fields(line)
			if len(fields) < 4 || fields[0] != "init" || fields[len(fields)-1] != "allocs" {
				continue
			}
			var allocs int
			if _, err := fmt.Sscan(fields[len(fields)-2], &allocs); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			sum, packages = sum+allocs, packages+1
		}
		if packages < 50 {
			t.Fatalf("the trace of %s names %d packages: %s", c.name, packages, said)
		}
		counts.Within(t, c.name+" before main: allocations", sum, 2) // maps differ a little
	}
}
