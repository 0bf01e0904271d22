package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// bounded puts this process and what it starts into groups of version 1 with a limit of memory and of processes, so that a
// limit that does not hold harms nothing else on the machine. They are removed after the test.
func bounded(t *testing.T, memory, processes int64) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("groups are made as root")
	}
	for kind, limit := range map[string]string{
		"memory": fmt.Sprintf("memory.limit_in_bytes=%d", memory), "pids": fmt.Sprintf("pids.max=%d", processes),
	} {
		top := filepath.Join("/sys/fs/cgroup", kind)
		own := filepath.Join(top, "fairlead-test-"+strconv.Itoa(os.Getpid()))
		if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); err != nil {
			t.Skipf("there are no groups of version 1: %v", err)
		}
		ok(t, os.Mkdir(own, 0o700))
		file, value, _ := strings.Cut(limit, "=")
		ok(t, os.WriteFile(filepath.Join(own, file), []byte(value), 0o600))
		ok(t, os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600))
		t.Cleanup(func() {
			ok(t, os.WriteFile(filepath.Join(top, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600))
			wait.Until(t, "nothing is left in "+own, func() bool { return os.Remove(own) == nil })
		})
	}
}

// TestEaters: beside twenty sessions that do little, one takes memory as fast as it can, or processes. It ends for its limit, and no
// other session ends.
func TestEaters(t *testing.T) {
	if !testsize.Long() {
		t.Skip("the longest form only: it takes gigabytes")
	}
	needView(t)
	const gib = 1 << 30
	bounded(t, 3*gib, 4000)
	var beside []*Handle
	for i := range 20 {
		spec := limited(t, spawn.Limits{Memory: 256 * mib, Processes: 200}, "count")
		spec.Session = fmt.Sprintf("n-%d", i)
		beside = append(beside, start(t, t.TempDir(), spec))
	}
	for what, n := range map[string]int{"heap": 4 * gib, "memfd": 4 * gib, "mapped": 4 * gib, "tmpfs": 4 * gib, "processes": 3000} {
		t.Run(what, func(t *testing.T) {
			var worst atomic.Int64
			over := make(chan struct{})
			go func() { // how long this process did not run
				for last := time.Now(); !closed(over); {
					wait.Pause(time.Millisecond)
					now := time.Now()
					worst.Store(max(worst.Load(), int64(now.Sub(last))))
					last = now
				}
			}()
			want := session.LimitMemory
			if what == "processes" {
				want = session.LimitProcesses
			}
			began := time.Now()
			st := done(t, start(t, t.TempDir(), limited(t, spawn.Limits{Memory: 512 * mib, Processes: 500}, "eat", what, strconv.Itoa(n))))
			close(over)
			if st.Exit == nil || st.Exit.Limit != want {
				t.Fatalf("%+v", st)
			}
			t.Logf("it ended after %v with %d MiB and %d processes; the longest pause of this process was %v", time.Since(began),
				st.Exit.Use.MemoryBytes/mib, st.Exit.Use.Processes, time.Duration(worst.Load()))
			for _, h := range beside {
				if st, err := h.Status(t.Context()); err != nil || st.Phase != Running || st.Ending {
					t.Errorf("a neighbour: %+v %v", st, err)
				}
			}
		})
	}
}
