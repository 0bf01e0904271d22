package controller

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A shim branches off before the rest of the program is initialised: every session's start
// waits for it, and the library that checks fairlead.yaml alone takes longer than all of it.
func TestShimIsLean(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "__holder", "coder-1", t.TempDir()) //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	said, _ := cmd.CombinedOutput() // it says that it was started by hand
	if !strings.Contains(string(said), "not by hand") || !strings.Contains(string(said), "init net ") {
		t.Fatalf("it was no shim: %s", said)
	}
	if strings.Contains(string(said), "jsonschema") {
		t.Error("a shim waits for the whole program to be initialised")
	}
}
