// Package nemesis tries real hosts under real faults: daemons, shims and agents of the program itself, each host in a
// network namespace of its own.
//
// What the agents' processes note in a log outside of all hosts is compared with the leader's journal. The table of
// failures in doc/hosts.md is a table of tests, and a random test combines the faults. Times are measured and printed,
// and decide nothing. The tests need Linux, root and the program ip, and run with FAIRLEAD_LONG=ci (.ci/run hosts).
//
// The one promise: of one piece of work two processes that run at one time fail the test, however short that was.
package nemesis

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// program is the fairlead program.
var program string

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "__agent" {
		if err := agent(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "__") {
		if err := netProgram(os.Args[1], os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	testsize.Parallel(16) // they wait
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if !testsize.CI() {
		return m.Run() // only the tests of the networks run
	}
	if program = os.Getenv("FAIRLEAD_TEST_PROGRAM"); program == "" {
		dir, err := os.MkdirTemp("", "fairlead-nemesis-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of the system's folder for such files
		program = filepath.Join(dir, "fairlead")
		if out, err := exec.Command("go", "build", "-o", program,
			"github.com/fairlead-dev/fairlead/cmd/fairlead").CombinedOutput(); err != nil {
			fmt.Printf("%v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}
