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
	"golang.org/x/sys/unix"
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

// smallDisk is a folder with a file system of a fixed size of its own.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", bytes)); err != nil {
		t.Skipf("nothing can be mounted: %v", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// TestEaters: beside twenty sessions that do little, one takes memory, processes, disk or output as fast as it can. It ends for its limit,
// and no other session ends. All of it has an outer bound: groups of version 1, and a disk of a fixed size.
func TestEaters(t *testing.T) {
	if !testsize.Long() {
		t.Skip("the longest form only: it takes gigabytes")
	}
	needView(t)
	const gib = 1 << 30
	bounded(t, 3*gib, 4000)
	disk := smallDisk(t, gib)
	folder := func(name string) string {
		dir := filepath.Join(disk, name)
		ok(t, os.Mkdir(dir, 0o700))
		return dir
	}
	var beside []*Handle
	for i := range 20 {
		spec := limited(t, spawn.Limits{Memory: 256 * mib, Processes: 200}, "count")
		spec.Session = fmt.Sprintf("n-%d", i)
		beside = append(beside, start(t, folder(spec.Session), spec))
	}
	memory := spawn.Limits{Memory: 512 * mib, Processes: 500}
	for _, test := range []struct {
		what   string
		n      int
		limits spawn.Limits
		want   session.Limit
	}{
		{"heap", 4 * gib, memory, session.LimitMemory},
		{"memfd", 4 * gib, memory, session.LimitMemory},
		{"mapped", 4 * gib, memory, session.LimitMemory},
		{"tmpfs", 4 * gib, memory, session.LimitMemory},
		{"processes", 3000, memory, session.LimitProcesses},
		{"flood", 0, spawn.Limits{Disk: 256 * mib}, session.LimitDisk},
		{"spill", 0, spawn.Limits{Output: 256 * mib, EndAtOutput: true}, session.LimitOutput},
	} {
		t.Run(test.what, func(t *testing.T) {
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
			spec := limited(t, test.limits, "eat", test.what, strconv.Itoa(test.n))
			spec.Launch.Dir = folder(test.what)
			spec.Launch.View.Places[1].Path = spec.Launch.Dir
			began := time.Now()
			st := done(t, start(t, folder("session-"+test.what), spec))
			close(over)
			if st.Exit == nil || st.Exit.Limit != test.want {
				t.Fatalf("%+v", st)
			}
			t.Logf("it ended after %v with %d MiB, %d processes, %d MiB on disk and %d MiB of output; the longest pause of this process was %v",
				time.Since(began), st.Exit.Use.MemoryBytes/mib, st.Exit.Use.Processes, st.Exit.Use.DiskBytes/mib, st.Exit.SpoolBytes/mib,
				time.Duration(worst.Load()))
			ok(t, os.RemoveAll(spec.Launch.Dir))
			for _, h := range beside {
				if st, err := h.Status(t.Context()); err != nil || st.Phase != Running || st.Ending {
					t.Errorf("a neighbour: %+v %v", st, err)
				}
			}
		})
	}
}
