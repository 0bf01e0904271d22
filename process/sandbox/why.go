package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Step is where a trial of the namespaces ended.
type Step string

const (
	StepClone    Step = "clone"    // a process in new namespaces is started, and its user is mapped
	StepProc     Step = "proc"     // its /proc is mounted
	StepMount    Step = "mount"    // anything else is mounted
	StepNetwork  Step = "network"  // its loopback is brought up, and the sockets in it are made
	StepLandlock Step = "landlock" // Landlock alone restricts a process
	StepOther    Step = "other"    // anything that is no such call
)

// stepError is an error of a step, with the number that the kernel gave; 0: none.
type stepError struct {
	step  Step
	errno syscall.Errno
	error
}

func (e stepError) Unwrap() error { return e.error }

// atStep says at which step an error arose, where that is not known yet.
func atStep(step Step, err error) error {
	if _, known := errors.AsType[stepError](err); err == nil || known {
		return err
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	return stepError{step, errno, err}
}

// stepOf is where an error arose.
func stepOf(err error) (Step, syscall.Errno) {
	at, _ := errors.AsType[stepError](atStep(StepOther, err))
	return at.step, at.errno
}

// Container is what this process runs in.
type Container string

const (
	NoContainer    Container = ""
	Docker         Container = "docker"
	Podman         Container = "podman"
	OtherContainer Container = "other"
)

// Facts are what is known about the machine when namespaces do not work.
type Facts struct {
	Zero      []string // those of the limits of namespaces that are 0, such as user.max_user_namespaces
	Clone     Setting  // kernel.unprivileged_userns_clone, which Debian and others have
	AppArmor  Setting  // kernel.apparmor_restrict_unprivileged_userns, which Ubuntu has
	Container Container
	Exe       string // the file of this program

	Step  Step
	Errno syscall.Errno
	Said  string // the trial's own words
	Root  bool   // it was one of root, without a namespace of users
}

// Setting is a number below /proc/sys, if there is one.
type Setting struct {
	Number int
	Is     bool
}

// Cause is why namespaces do not work.
type Cause string

const (
	CauseSetting    Cause = "setting"            // a sysctl closes them
	CauseLimit      Cause = "limit"              // there are too many of them
	CauseRights     Cause = "rights"             // root lacks a capability
	CauseKernel     Cause = "kernel"             // the kernel was built without them
	CauseAppArmor   Cause = "apparmor"           // AppArmor of the machine
	CauseSeccomp    Cause = "container_seccomp"  // the container's filter of system calls
	CauseConfined   Cause = "container_apparmor" // AppArmor of the container: namespaces, but no mounts
	CauseMaskedProc Cause = "masked_proc"        // parts of /proc are covered, so a fresh one would show more
	CauseLandlock   Cause = "landlock"           // there is no Landlock
	CauseSystem     Cause = "system"             // it is not Linux
	CauseUnknown    Cause = "unknown"
)

// Reason is a cause in words, with what helps: the smallest right first.
type Reason struct {
	Cause Cause    `json:"cause"`
	What  string   `json:"what"`
	Do    []string `json:"do"`
}

// Why says what closes namespaces. It decides by settings and error numbers alone.
func Why(f Facts) Reason {
	in := f.Container != NoContainer
	denied := f.Errno == syscall.EPERM || f.Errno == syscall.EACCES
	switch {
	case f.Step == StepLandlock:
		return Reason{
			CauseLandlock, "Landlock alone: " + f.Said,
			[]string{"use a kernel with Landlock 3 (Linux 6.2), and landlock in its lsm= parameter"},
		}
	case f.Step == StepClone && full(f.Errno) && len(f.Zero) > 0:
		return Reason{CauseSetting, "namespaces are closed: " + f.Zero[0] + " is 0", []string{setting(f, f.Zero[0]+"="+limitAdvised)}}
	case f.Step == StepClone && full(f.Errno):
		return Reason{CauseLimit, "no more namespaces can be made: a limit below user. of sysctl is reached", []string{
			"end programs that have namespaces of their own", setting(f, "user.max_user_namespaces="+limitAdvised),
		}}
	case f.Root && f.Step == StepClone && denied:
		return Reason{
			CauseRights, "root has no CAP_SYS_ADMIN here",
			[]string{"run fairlead as an ordinary user, which needs none: then no program in a view is root"},
		}
	case f.Step == StepClone && (f.Errno == syscall.ENOSYS || f.Errno == syscall.EINVAL):
		return Reason{
			CauseKernel, "this kernel has no namespaces of users, processes or mounts",
			[]string{"start a kernel with CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_IPC_NS"},
		}
	case f.Step == StepClone && f.Clone.Is && f.Clone.Number == 0 && denied:
		return Reason{
			CauseSetting, "user namespaces are closed: kernel.unprivileged_userns_clone is 0",
			[]string{setting(f, "kernel.unprivileged_userns_clone=1")},
		}
	case !denied:
		return unknown(f)
	case in && f.Errno == syscall.EACCES && (f.Step == StepProc || f.Step == StepMount):
		return Reason{CauseConfined, "AppArmor of the container denies mounts", runWith(f, "apparmor=unconfined")}
	case f.Step == StepProc && (in || f.AppArmor.Number == 0) && f.Errno == syscall.EPERM:
		return Reason{CauseMaskedProc, "no fresh /proc can be mounted, because parts of the one here are covered", unmask(f)}
	case in && f.Errno == syscall.EPERM:
		return Reason{CauseSeccomp, "the container's filter of system calls (seccomp) denies namespaces or mounts", append([]string{
			"give the container a seccomp profile that is its default plus clone, unshare, mount, umount2, pivot_root, fsopen, fsmount, move_mount, open_tree and mount_setattr",
		}, runWith(f, "seccomp=unconfined")...)}
	case f.AppArmor.Number != 0 && in:
		return Reason{
			CauseAppArmor,
			"AppArmor of the machine lets only named programs use user namespaces (kernel.apparmor_restrict_unprivileged_userns)",
			[]string{
				"run on the machine, not in the container: " + setting(f, "kernel.apparmor_restrict_unprivileged_userns=0"),
			},
		}
	case f.AppArmor.Number != 0:
		return Reason{
			CauseAppArmor, "AppArmor lets only named programs use user namespaces (kernel.apparmor_restrict_unprivileged_userns)",
			[]string{profileCommand(f.Exe)},
		}
	}
	return unknown(f)
}

// full reports whether a limit of namespaces, or of their depth, is reached.
func full(e syscall.Errno) bool { return e == syscall.ENOSPC || e == syscall.EUSERS }

// limitAdvised is about what kernels have by themselves on a small machine.
const limitAdvised = "15000"

func unknown(f Facts) Reason {
	return Reason{
		CauseUnknown, f.Said,
		[]string{"ask the administrator of this machine which rule of AppArmor, SELinux or seccomp denies it"},
	}
}

func setting(f Facts, s string) string {
	if f.Container != NoContainer {
		return "on the machine of the container: sudo sysctl -w " + s
	}
	return "sudo sysctl -w " + s + " (a file in /etc/sysctl.d keeps it)"
}

// runWith are options to start a container with, less first.
func runWith(f Facts, option string) []string {
	switch f.Container {
	case Docker, Podman:
		return []string{fmt.Sprintf("%s run --security-opt %s", f.Container, option)}
	}
	return []string{"start the container with the option that Docker calls --security-opt " + option}
}

func unmask(f Facts) []string {
	keep := "leave it so: the rest holds, and only other processes of the container can be seen"
	switch f.Container {
	case Docker:
		return append([]string{keep}, runWith(f, "systempaths=unconfined")...)
	case Podman:
		return append([]string{keep}, runWith(f, "unmask=/proc/*")...)
	case NoContainer:
		return []string{
			keep,
			"start fairlead outside of what covers /proc: a service with ProtectKernelTunables, ProtectKernelLogs or ProcSubset",
		}
	}
	return append([]string{keep}, runWith(f, "systempaths=unconfined")...)
}

// plainExe reports whether a path means the same to a shell and to AppArmor.
func plainExe(p string) bool {
	return plain(p) && !strings.ContainsFunc(p, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+/-", r)
	})
}

// profileCommand makes a profile that lets this program alone use user namespaces.
func profileCommand(exe string) string {
	if !plainExe(exe) {
		return fmt.Sprintf("install fairlead at a path of plain letters, such as /usr/local/bin/fairlead, and ask again: %q cannot be named in a profile", exe)
	}
	return `sudo tee /etc/apparmor.d/fairlead >/dev/null <<'EOF' && sudo apparmor_parser -r /etc/apparmor.d/fairlead
abi <abi/4.0>,
include <tunables/global>

profile fairlead ` + exe + ` flags=(unconfined) {
  userns,
  include if exists <local/fairlead>
}
EOF`
}

const (
	settingBytesMax = 64       // a number
	cgroupBytesMax  = 16 << 10 // a few lines
)

// lookAround reads the facts that need no trial. root is / but in tests.
func lookAround(root string) Facts {
	exe, _ := os.Executable()
	at := func(name string) string { return filepath.Join(root, name) }
	f := Facts{
		Clone:     number(at("/proc/sys/kernel/unprivileged_userns_clone")),
		AppArmor:  number(at("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")),
		Container: containerOf(root), Exe: exe,
	}
	for _, kind := range []string{"user", "mnt", "pid", "ipc", "net"} {
		if n := number(at("/proc/sys/user/max_" + kind + "_namespaces")); n.Is && n.Number == 0 {
			f.Zero = append(f.Zero, "user.max_"+kind+"_namespaces")
		}
	}
	return f
}

// containerOf says which container this is, by the marks that Docker, Podman and systemd leave and by the cgroup of process 1.
func containerOf(root string) Container {
	is := func(name string) bool { return exists(filepath.Join(root, name)) }
	cgroup, _ := head(filepath.Join(root, "/proc/1/cgroup"), cgroupBytesMax)
	switch {
	case is("/run/.containerenv") || strings.Contains(cgroup, "libpod"):
		return Podman
	case is("/.dockerenv") || strings.Contains(cgroup, "/docker"):
		return Docker
	case is("/run/systemd/container") || strings.Contains(cgroup, "kubepods") || strings.Contains(cgroup, "/lxc") ||
		strings.Contains(cgroup, "containerd"):
		return OtherContainer
	}
	return NoContainer
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

func number(file string) Setting {
	text, err := head(file, settingBytesMax)
	if err != nil {
		return Setting{}
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	return Setting{n, err == nil}
}

func head(p string, most int) (string, error) {
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, most)
	n, err := f.Read(b)
	return string(b[:n]), err
}
