package server

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // every program here would wait a second at its end
	runtime, err := newRuntimeFolder()       // one for all tests, so that they can run in parallel
	if err != nil {
		panic(err)
	}
	os.Setenv(runtimedir.Var, runtime)
	testsize.Parallel(6) // parallel tests wait for time limits and connections
	code := leaktest.Main(m)
	os.RemoveAll(runtime)
	os.Exit(code)
}

// newRuntimeFolder makes a folder for sockets.
func newRuntimeFolder() (string, error) {
	return os.MkdirTemp("/tmp", "fl") // the folder of a test is too long for a socket
}

// ownRuntimeFolder gives a test, which cannot run in parallel then, a runtime folder that it may change.
func ownRuntimeFolder(t *testing.T) (dir string) {
	t.Helper()
	dir, err := newRuntimeFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv(runtimedir.Var, dir)
	return dir
}
