package sandbox

import (
	"os"
	"runtime"
	"testing"
)

// What restricts itself here is the first thread, as in the program: what a parent has asked for belongs to that one.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // TestMain may begin on another one

func TestMain(m *testing.M) {
	Intercept()
	boxIfAsked()
	actIfAsked()
	wallIfAsked()
	ipcApart()
	os.Exit(m.Run())
}

// need skips the test if the kernel has no Landlock.
func need(t testing.TB) {
	t.Helper()
	if _, why := Supported(); why != "" {
		t.Skip("skipped, the kernel has no sandbox: ", why)
	}
}
