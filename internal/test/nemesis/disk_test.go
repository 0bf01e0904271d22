package nemesis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// diskBytes is the size of a disk that is not full: more than a host needs to get sessions.
const diskBytes = 4 << 30

// disk is the disk of one host, which can be full for a while. It is a file system in memory whose size is set to what is used, so a full
// one takes no memory, and no other program of this machine notices it.
type disk struct {
	*testing.T
	at string // where it is mounted; empty: nowhere
}

func (d *disk) mount(at string) {
	d.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		d.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) { // a test process that was killed leaves its disks behind
		name, place, _ := strings.Cut(line, " ")
		place, _, _ = strings.Cut(place, " ")
		pid, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
		if strings.HasPrefix(name, prefix) && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = syscall.Unmount(place, syscall.MNT_DETACH) // another process of tests may remove it, too
		}
	}
	name := fmt.Sprint(prefix, os.Getpid())
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprint("mode=0700,size=", diskBytes), name,
		at).CombinedOutput(); err != nil {
		d.Skipf("a disk of its own for a host: mount: %v: %s", err, out)
	}
	d.at = at
}

// remove unmounts it, after the processes of the host have ended.
func (d *disk) remove() {
	if d.at == "" {
		return
	}
	if err := syscall.Unmount(d.at, syscall.MNT_DETACH); err != nil {
		d.Errorf("unmount %s: %v", d.at, err)
	}
}

// fill leaves no room on the disk.
func (d *disk) fill() {
	d.Helper()
	wait.Until(d, "the disk is full", func() bool { // what is written meanwhile needs more than was asked for
		var is syscall.Statfs_t
		if err := syscall.Statfs(d.at, &is); err != nil {
			d.Fatal(err)
		}
		return d.resize((is.Blocks-is.Bfree)*uint64(is.Bsize)) == nil //nolint:gosec // the size of a block is positive
	})
}

// clear gives it room again.
func (d *disk) clear() {
	d.Helper()
	if err := d.resize(diskBytes); err != nil {
		d.Fatal(err)
	}
}

func (d *disk) resize(bytes uint64) error {
	return exec.Command("mount", "-o", fmt.Sprint("remount,size=", bytes), d.at).Run()
}

// fullDisk makes the disk of engine host c full until its server has given up its store, and then has room again. The host gets its copy
// back without a restart, and its vote counts.
func fullDisk(w *world, _, _ note) {
	before, pid := len(w.wrote("c")), w.daemons["c"].Process.Pid
	at := now()
	w.disk.fill()
	w.said("c", before, "has given up its store")
	given := now()
	w.disk.clear()
	wait.Until(w, "the server has its store again", func() bool {
		out, err := w.try("c", "cluster", "status")
		return err == nil && !strings.Contains(out, "keeps no copy")
	})
	w.Logf("measured: the server gave its store up %v after the disk was full, and had it again %v after there was room", given-at,
		now()-given)
	w.inSync()
	w.kill("b")
	acks := w.acks()
	wait.Until(w, "orders are taken by the other two", func() bool { return w.acks() > acks+1 })
	w.up("b")
	w.whole()
	w.goesOnAs("c", pid)
}

// inSync waits until the journal has three complete copies.
func (w *world) inSync() {
	w.Helper()
	wait.Until(w, "the copies are in sync", func() bool {
		out, err := w.ask("cluster", "status")
		return err == nil && strings.Contains(out, "in sync")
	})
}

// cutSnapshot cuts the newest snapshot of a group of servers of an engine host.
func cutSnapshot(w *world, m *mirror) {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(m.dir, ".fairlead", "cluster", "nats", "store", "jetstream", "*", "_js_", "*", "snapshots",
		"snap.*"))
	w.ok(err)
	if len(found) == 0 {
		w.Fatalf("the server of %s has no snapshot", m.host)
	}
	for _, path := range found { // all: that of the servers' own group may not be there yet
		info, err := os.Stat(path)
		w.ok(err)
		w.ok(os.Truncate(path, info.Size()/2))
	}
}
