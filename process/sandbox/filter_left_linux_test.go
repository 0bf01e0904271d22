package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFilterOfWhatIsLeft is what the filter of a view denies beside that of a box, and beside each call what it lets through.
func TestFilterOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	const rubbish = 1 << 32
	view := box{Attributes: true, Sockets: true, modes: unix.S_ISUID}
	root, old, inside := view, view, view
	root.modes |= unix.S_ISGID
	old.group, old.signals = true, true
	inside.Alone = true
	of := func(number uint32, args ...uint64) call {
		c := call{number: number, arch: auditArch}
		copy(c.args[:], args)
		return c
	}
	for _, c := range []struct {
		what string
		box  box
		call call
		want uint32
	}{
		{"a mode", view, of(unix.SYS_FCHMODAT, 0, 0, 0o777), allow},
		{"a mode with the owner's rights", view, of(unix.SYS_FCHMODAT, 0, 0, 0o4777), refuse(unix.EPERM)},
		{"the same, with rubbish above", view, of(unix.SYS_FCHMODAT, 0, 0, rubbish|0o4000), refuse(unix.EPERM)},
		{"a mode with the group's rights", view, of(unix.SYS_FCHMODAT, 0, 0, 0o2777), allow},
		{"a mode with the group's rights, of root", root, of(unix.SYS_FCHMODAT, 0, 0, 0o2777), refuse(unix.EPERM)},
		{"a sticky folder of root", root, of(unix.SYS_FCHMODAT, 0, 0, 0o1777), allow},
		{"by name alone", view, of(unix.SYS_FCHMODAT2, 0, 0, 0o4777), refuse(unix.EPERM)},
		{"open", view, of(unix.SYS_FCHMOD, 3, 0o4777), refuse(unix.EPERM)},
		{"a node", view, of(unix.SYS_MKNODAT, 0, 0, 0o104777), refuse(unix.EPERM)},
		{"a pipe", view, of(unix.SYS_MKNODAT, 0, 0, 0o010600), allow},
		{"a new file", view, of(unix.SYS_OPENAT, 0, 0, unix.O_CREAT|unix.O_WRONLY, 0o644), allow},
		{"a new file with the owner's rights", view, of(unix.SYS_OPENAT, 0, 0, unix.O_CREAT|unix.O_WRONLY, 0o4755), refuse(unix.EPERM)},
		{"a file without a name", view, of(unix.SYS_OPENAT, 0, 0, unix.O_TMPFILE|unix.O_RDWR, 0o4755), refuse(unix.EPERM)},
		{"a folder, with a mode that does not count", view, of(unix.SYS_OPENAT, 0, 0, unix.O_DIRECTORY, 0o4755), allow},
		{"a lease", view, of(unix.SYS_FCNTL, 3, unix.F_SETLEASE, unix.F_RDLCK), refuse(unix.EPERM)},
		{"another setting of a descriptor", view, of(unix.SYS_FCNTL, 3, unix.F_SETFD, 1), allow},
		{
			"messages about processes", view, of(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_CONNECTOR),
			refuse(unix.EACCES),
		},
		{"messages about routes", view, of(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), allow},
		{"a unix socket", view, of(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, unix.NETLINK_CONNECTOR), allow},
		{"the network, alone", inside, of(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM), refuse(unix.EACCES)},
		{"the priority of the own group", view, of(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0, 5), allow},
		{"the priority of a group that began outside", old, of(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0, 5), refuse(unix.EPERM)},
		{"the priority of another group", old, of(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 7, 5), allow},
		{"one's own priority", old, of(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 5), allow},
		{"input and output of a group that began outside", old, of(unix.SYS_IOPRIO_SET, 2, 0, 5), refuse(unix.EPERM)},
		{"one's own input and output", old, of(unix.SYS_IOPRIO_SET, 1, 0, 5), allow},
		{"a signal to the own group", view, of(unix.SYS_KILL, 0, 9), allow},
		{"a signal to a group that began outside", old, of(unix.SYS_KILL, 0, 9), refuse(unix.EPERM)},
		{"a signal to a process", old, of(unix.SYS_KILL, 7, 9), allow},
		{"a box that is not of a view", box{Attributes: true}, of(unix.SYS_FCHMODAT, 0, 0, 0o4777), allow},
	} {
		if got := judge(t, c.box.program(abiApart), c.call); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
	for _, m := range modeCallsOld {
		args := [6]uint64{}
		args[m.mode] = unix.S_ISUID
		if m.flags != 0 {
			args[m.flags] = unix.O_CREAT
		}
		if got := judge(t, view.program(abiApart), call{number: m.call, arch: auditArch, args: args}); got != refuse(unix.EPERM) {
			t.Errorf("the old call %d: %#x", m.call, got)
		}
	}
}

// TestViewLeavesItsGroup checks that a view which is started in a process group of outside does nothing to the others in it. Where the
// test is root, the user holds that, too.
func TestViewLeavesItsGroup(t *testing.T) {
	v := newViewed(t)
	argv, err := WrapView(os.Args[0],
		[]string{"sh", "-c", "renice -n 7 -g 0; ionice -c 3 -P 0; trap '' USR1; kill -s USR1 0; renice -n 7 -p $$ >/dev/null && echo done"},
		v.view)
	if err != nil {
		t.Fatal(err)
	}
	cmd := again("group", groupJob{argv, v.view})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done") || !strings.HasSuffix(string(out), "as before\n") {
		t.Errorf("%v: %s", err, out)
	}
}

type groupJob struct {
	Argv []string `json:"argv"`
	View View     `json:"view"`
}

// shareGroup starts a process and a view in its own process group, and says what has become of the first.
func shareGroup(text string) {
	var job groupJob
	other := exec.Command("sleep", "600")
	err := errors.Join(json.Unmarshal([]byte(text), &job), other.Start())
	before, err2 := unix.Getpriority(unix.PRIO_PROCESS, other.Process.Pid)
	cmd := exec.Command(job.Argv[0], job.Argv[1:]...)
	cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = job.View.Attr(), os.Stdout, os.Stderr
	err = errors.Join(err, err2, cmd.Run())
	after, err2 := unix.Getpriority(unix.PRIO_PROCESS, other.Process.Pid)
	var ended unix.Siginfo
	err = errors.Join(err, err2, unix.Waitid(unix.P_PID, other.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil))
	_ = other.Process.Kill()
	_ = other.Wait()
	if err != nil || before != after || ended.Signo != 0 {
		fmt.Println("the other process:", err, before, after, ended.Signo)
		return
	}
	fmt.Println("as before")
}
