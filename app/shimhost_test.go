package app

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestShimIsLean checks that a shim is started before the rest of the program is initialised,
// because every session's start waits for it. The library that checks fairlead.yaml alone takes
// longer than the whole start.
func TestShimIsLean(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "__shim", "coder-1", t.TempDir()) //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	said, _ := cmd.CombinedOutput() // it reports that it was started by hand
	if !strings.Contains(string(said), "not by hand") || !strings.Contains(string(said), "init os ") {
		t.Fatalf("not a shim: %s", said)
	}
	if strings.Contains(string(said), "jsonschema") {
		t.Error("a shim waits for the whole program to be initialised")
	}
}
