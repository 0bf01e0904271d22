package shim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"golang.org/x/sys/unix"
)

const (
	ownGroup      = "fairlead-daemon" // of the daemon, its shims and its proxy: a cgroup with children that have limits has no processes
	groupPrefix   = "fairlead-"
	groupMoves    = 10 // until no process is left in the scope, which may fork
	groupPatience = time.Second
)

// EnterScope makes the cgroup of version 2 in which this process runs ready for cgroups of sessions, and returns its folder. This process
// is then in a child of it. What dead sessions of the workspace left there is removed. The error says why there is no such scope, as where
// version 1 has the controllers or where the cgroup is not delegated; then sessions have no cgroups.
func EnterScope(workspace string) (dir string, err error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for _, m := range mountsOf("/proc/self") {
		if m.kind == "cgroup2" {
			return enterScope(m.at, string(own), workspace)
		}
	}
	return "", errors.New("no file system of cgroups of version 2 is mounted")
}

func enterScope(mounted, own, workspace string) (string, error) {
	path := ""
	for line := range strings.Lines(own) {
		if p, is := strings.CutPrefix(line, "0::"); is {
			path = strings.TrimSpace(p)
		}
	}
	scope := filepath.Join(mounted, path)
	if filepath.Base(scope) == ownGroup { // of a daemon of before
		scope = filepath.Dir(scope)
	}
	controllers, err := os.ReadFile(filepath.Join(scope, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	for _, need := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(string(controllers)), need) {
			return "", fmt.Errorf("the cgroup %s has no controller %q", scope, need)
		}
	}
	if err := delegated(scope); err != nil {
		return "", fmt.Errorf("the cgroup %s is not delegated: %w", scope, err)
	}
	if err := leaveScope(scope); err != nil {
		return "", err
	}
	if err := put(scope, "cgroup.subtree_control", "+memory +pids"); err != nil {
		return "", err
	}
	left, _ := filepath.Glob(filepath.Join(scope, groupPrefix+workspaceHash(workspace)+".*")) // the pattern is well-formed
	for _, dir := range left {
		_ = removeGroup(dir) // a session runs in it
	}
	return scope, nil
}

// delegated reports whether systemd has left a cgroup to its processes. Many more can be written, by root all of them, and by a user those
// of every terminal; but they are systemd's.
func delegated(scope string) error {
	mark := make([]byte, 8)
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(scope, name, mark); err == nil && string(mark[:n]) == "1" {
			return unix.Access(filepath.Join(scope, "cgroup.procs"), unix.W_OK)
		}
	}
	return errors.New("it has no mark of systemd; start fairlead with systemd-run --user --scope -p Delegate=yes")
}

// leaveScope moves all processes of the scope into a child of it.
func leaveScope(scope string) error {
	leaf := filepath.Join(scope, ownGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for range groupMoves {
		all, err := os.ReadFile(filepath.Join(scope, "cgroup.procs"))
		if err != nil || len(bytes.Fields(all)) == 0 {
			return err
		}
		for pid := range bytes.FieldsSeq(all) {
			if err := put(leaf, "cgroup.procs", string(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move process %s: %w", pid, err)
			}
		}
	}
	return nil // where one is left, the kernel refuses the next step
}

func put(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
}

// removeGroup is a variable because the folders of tests have files in them.
var removeGroup = unix.Rmdir

// group is the cgroup of a session.
type group struct {
	dir     string
	refused int64 // forks, at the last look
}

// makeGroup makes a cgroup with limits; nil: it has none, or there is no scope.
func makeGroup(scope, mark string, l spawn.Limits) (*group, error) {
	if scope == "" || l.Memory == 0 && l.Processes == 0 {
		return nil, nil
	}
	g := &group{dir: filepath.Join(scope, groupPrefix+mark)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if l.Memory > 0 {
		err = errors.Join(put(g.dir, "memory.max", strconv.FormatInt(l.Memory, 10)), put(g.dir, "memory.oom.group", "1"))
		_ = put(g.dir, "memory.swap.max", "0") // a kernel without swap has no such file
	}
	if l.Processes > 0 {
		err = errors.Join(err, put(g.dir, "pids.max", strconv.Itoa(l.Processes+tasksMore)))
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// attach makes a process start in the cgroup. The result is to be closed when it has.
func (g *group) attach(attr *syscall.SysProcAttr) (*os.File, error) {
	f, err := os.Open(g.dir)
	if err == nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
	}
	return f, err
}

// holdsTasks reports whether the kernel lets the session start no more processes than its limit.
func (g *group) holdsTasks(l spawn.Limits) bool { return g != nil && l.Processes > 0 }

// refuses reports whether the kernel has refused a fork since the last call.
func (g *group) refuses() bool {
	if g == nil {
		return false
	}
	before := g.refused
	g.refused = g.event("pids.events", "max")
	return g.refused > before
}

// ended is the limit for which the kernel has ended the session; empty: none. What it ends for a limit of the whole scope, or because the
// machine has no memory, is no limit of the session.
func (g *group) ended() session.Limit {
	if g != nil && g.event("memory.events", "oom") > 0 && g.event("memory.events", "oom_kill") > 0 {
		return session.LimitMemory
	}
	return ""
}

func (g *group) event(file, key string) int64 {
	text, _ := os.ReadFile(filepath.Join(g.dir, file)) // none: it has no such limit
	for line := range bytes.Lines(text) {
		if value, is := bytes.CutPrefix(line, []byte(key+" ")); is {
			return number(value)
		}
	}
	return 0
}

// remove waits until the kernel has let go of the processes that have ended.
func (g *group) remove() {
	if g == nil {
		return
	}
	for deadline := time.Now().Add(groupPatience); errors.Is(removeGroup(g.dir), unix.EBUSY) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}
