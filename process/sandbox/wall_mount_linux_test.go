package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mountsSeen is the twin of changing mounts: they may be looked at.
func mountsSeen(target) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil && len(b) == 0 {
		return errors.New("there are no mounts")
	}
	return err
}

// ownMounts lets a thread change mounts of its own where it may; where it may not, the attempt goes on with those of the
// process.
func ownMounts() { _ = unix.Unshare(unix.CLONE_NEWNS) }

// bound makes the attacked folder a mount point, as it is in a view.
func bound(dir string) {
	ownMounts()
	_ = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	_ = unix.Mount(dir, dir, "", unix.MS_BIND, "")
}

// reads is nil if the file has the secret.
func reads(p string) error {
	b, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	if !strings.Contains(string(b), secretOfFiles) {
		return fmt.Errorf("%s has no secret", p)
	}
	return nil
}

func readsFD(fd int) error {
	b := room()
	n, err := unix.Read(fd, b)
	if err != nil {
		return err
	}
	if !strings.Contains(string(b[:n]), secretOfFiles) {
		return errors.New("it has no secret")
	}
	return nil
}

// joins enters a namespace of a process.
func joins(pid func(target) int, kind string) act {
	return func(t target) error {
		return throughOpen(fmt.Sprintf("/proc/%d/ns/%s", pid(t), kind), unix.O_RDONLY, func(fd int) error { return unix.Setns(fd, 0) })
	}
}

func keeperPID(t target) int  { return t.Keeper.PID }
func starterPID(t target) int { return t.Parent }

// nsSeen is the twin of entering a namespace: a program may ask which ones it is in.
func nsSeen(t target) error {
	_, err := os.Readlink(t.proc("ns/mnt"))
	return err
}

func threadOnly(target) error { return unix.Unshare(unix.CLONE_FILES) }

func child(target) error { return exec.Command("/bin/true").Run() }

func unshares(flags int) act { return func(target) error { return unix.Unshare(flags) } }

// forks3 makes a process by clone3 that ends at once.
func forks3(flags uint64) act {
	return func(target) error {
		args := [11]uint64{0: flags, 4: uint64(unix.SIGCHLD)}
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), 64, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	}
}

// worldJob is what a process in new namespaces does.
type worldJob struct {
	Do     string `json:"do"`
	Target target `json:"target"`
}

func inWorld(flags uintptr, do string) act {
	return func(t target) error { return cloned(flags, worldJob{do, t}) }
}

// makeWorld is the side in the new namespaces. It prints the outcome.
func makeWorld(text string) {
	var job worldJob
	err := json.Unmarshal([]byte(text), &job)
	t := job.Target
	switch {
	case err != nil:
	case job.Do == "rights":
		if effective(0) == 0 {
			err = errors.New("it has no rights")
		}
	case job.Do == "write":
		_ = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		_ = unix.Mount(t.Base, t.In, "", unix.MS_BIND, "")
		_ = unix.Mount("none", t.In, "", unix.MS_BIND|unix.MS_REMOUNT, "")
		err = openWith(filepath.Join(t.In, filepath.Base(t.File)), unix.O_WRONLY)
	case job.Do == "unhide":
		_ = unix.Unmount(t.Hidden, unix.MNT_DETACH)
		err = reads(filepath.Join(t.Hidden, "secret"))
	case job.Do == "mount":
		err = unix.Mount("none", t.In, "tmpfs", 0, "")
	case job.Do == "setuid":
		err = unix.Setuid(0)
	}
	fmt.Println(orWorked(err))
}

func orWorked(err error) string {
	if err != nil {
		return err.Error()
	}
	return worked
}

func makeOrphan(text string) {
	var job orphanJob
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = openWith(job.File, unix.O_WRONLY)
	}
	_ = errors.Join(os.WriteFile(job.Said+".new", []byte(orWorked(err)), 0o600), os.Rename(job.Said+".new", job.Said))
}

// mountAttr is the argument of mount_setattr.
type mountAttr struct{ set, clear, propagation, userns uint64 }

func writableMount() (unsafe.Pointer, uintptr) {
	a := &mountAttr{clear: unix.MOUNT_ATTR_RDONLY}
	return unsafe.Pointer(a), unsafe.Sizeof(*a)
}

// mountAttempts change what is where, and make namespaces.
var mountAttempts = []wallAttempt{
	{name: "mount the read-only folder writable", call: "mount", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Base)
		return errors.Join(unix.Mount("none", t.Base, "", unix.MS_REMOUNT|unix.MS_BIND, ""), openWith(t.File, unix.O_WRONLY))
	}},
	{
		name: "bind the read-only folder at another place", call: "mount", row: RowWrite, root: true, twin: mountsSeen,
		try: func(t target) error {
			ownMounts()
			return errors.Join(unix.Mount(t.Base, t.In, "", unix.MS_BIND, ""),
				openWith(filepath.Join(t.In, filepath.Base(t.File)), unix.O_WRONLY))
		},
	},
	{name: "mount over a folder", call: "mount", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		ownMounts()
		return unix.Mount("none", t.Dir, "tmpfs", 0, "")
	}},
	{name: "move the mount away", call: "mount", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Base)
		return unix.Mount(t.Base, t.In, "", unix.MS_MOVE, "")
	}},
	{name: "mount all processes", call: "mount", row: RowProcess, root: true, twin: mountsSeen, try: func(t target) error {
		ownMounts()
		return errors.Join(unix.Mount("proc", t.In, "proc", 0, ""), leads(filepath.Join(t.In, fmt.Sprint(t.Keeper.PID))))
	}},
	{name: "bind the root folder in", call: "mount", row: RowRead, root: true, twin: mountsSeen, try: func(t target) error {
		ownMounts()
		return errors.Join(unix.Mount("/", t.In, "", unix.MS_BIND|unix.MS_REC, ""), reads(t.In+t.File))
	}},
	{name: "let mounts reach other namespaces", call: "mount", row: RowRoot, root: true, twin: mountsSeen, try: func(target) error {
		ownMounts()
		return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_SHARED, "")
	}},
	{name: "read by an overlay", call: "mount", row: RowRead, root: true, twin: mountsSeen, try: func(t target) error {
		ownMounts()
		up, work, to := t.In+"/up", t.In+"/work", t.In+"/to"
		_ = unix.Mount("none", t.In, "tmpfs", 0, "")
		_ = errors.Join(os.Mkdir(up, 0o700), os.Mkdir(work, 0o700), os.Mkdir(to, 0o700))
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", t.Base, up, work)
		return errors.Join(unix.Mount("overlay", to, "overlay", 0, options), reads(filepath.Join(to, filepath.Base(t.File))))
	}},
	{name: "unmount the read-only folder", call: "umount2", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Base)
		return unix.Unmount(t.Base, unix.MNT_DETACH)
	}},
	{name: "unmount what hides a folder", call: "umount2", row: RowRead, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Hidden)
		return errors.Join(unix.Unmount(t.Hidden, unix.MNT_DETACH), reads(filepath.Join(t.Hidden, "secret")))
	}},
	{name: "unmount /proc", call: "umount2", row: RowProcess, root: true, twin: mountsSeen, try: func(target) error {
		ownMounts()
		return unix.Unmount("/proc", unix.MNT_DETACH)
	}},
	{name: "unmount /dev", call: "umount2", row: RowRoot, root: true, twin: mountsSeen, try: func(target) error {
		ownMounts()
		return unix.Unmount("/dev", unix.MNT_DETACH)
	}},
	{name: "expire a mount", call: "umount2", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Base)
		return expired(unix.Unmount(t.Base, unix.MNT_EXPIRE))
	}},
	{
		name: "take the read-only mark from a mount", call: "mount_setattr", row: RowWrite, root: true, twin: mountsSeen,
		try: func(t target) error {
			bound(t.Base)
			a, size := writableMount()
			return errors.Join(sys(unix.SYS_MOUNT_SETATTR, at, t.Base, 0, a, size), openWith(t.File, unix.O_WRONLY))
		},
	},
	{
		name: "take the read-only mark from all mounts", call: "mount_setattr", row: RowWrite, root: true, twin: mountsSeen,
		try: func(target) error {
			ownMounts()
			a, size := writableMount()
			return sys(unix.SYS_MOUNT_SETATTR, at, "/", unix.AT_RECURSIVE, a, size)
		},
	},
	{name: "write in a copy of a mount", call: "open_tree", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		fd, err := raw(unix.SYS_OPEN_TREE, at, t.Base, unix.OPEN_TREE_CLONE|unix.O_CLOEXEC)
		if err != nil {
			return err
		}
		a, size := writableMount()
		return errors.Join(sys(unix.SYS_MOUNT_SETATTR, fd, "", unix.AT_EMPTY_PATH, a, size),
			openat2(fd, filepath.Base(t.File), unix.O_WRONLY, 0))
	}},
	{name: "read in a copy of the root", call: "open_tree", row: RowRead, root: true, twin: mountsSeen, try: func(t target) error {
		fd, err := raw(unix.SYS_OPEN_TREE, at, "/", unix.OPEN_TREE_CLONE|unix.O_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return err
		}
		return reads(fdPath(fd) + t.File)
	}},
	{
		name: "open a secret by name alone", call: "open_tree", row: RowNames, twin: func(t target) error { return reads(t.File) },
		try: func(t target) error { return opens(unix.SYS_OPEN_TREE, at, t.File, unix.O_CLOEXEC) },
	},
	{
		name: "copy a mount without its marks", call: "open_tree_attr", row: RowWrite, root: true, twin: mountsSeen,
		try: func(t target) error {
			a, size := writableMount()
			return opens(sysOpenTreeAttr, at, t.Base, unix.OPEN_TREE_CLONE|unix.O_CLOEXEC, a, size)
		},
	},
	{name: "put a copy of a mount elsewhere", call: "move_mount", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		ownMounts()
		fd, err := raw(unix.SYS_OPEN_TREE, at, t.Base, unix.OPEN_TREE_CLONE|unix.O_CLOEXEC)
		if err != nil {
			return err
		}
		return sys(unix.SYS_MOVE_MOUNT, fd, "", at, t.In, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}},
	{name: "put the mount itself elsewhere", call: "move_mount", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Base)
		return sys(unix.SYS_MOVE_MOUNT, at, t.Base, at, t.In, 0)
	}},
	{
		name: "a new file system in memory", call: "fsopen", row: RowRoot, root: true, twin: mountsSeen,
		try: func(target) error { return opens(unix.SYS_FSOPEN, "tmpfs", 1) },
	},
	{
		name: "a new view of all processes", call: "fsopen", row: RowProcess, root: true, twin: mountsSeen,
		try: func(target) error { return opens(unix.SYS_FSOPEN, "proc", 1) },
	},
	{
		name: "a new view of the kernel", call: "fsopen", row: RowRoot, root: true, twin: mountsSeen,
		try: func(target) error { return opens(unix.SYS_FSOPEN, "sysfs", 1) },
	},
	{name: "a new file system, mounted", call: "fsmount", row: RowRoot, root: true, twin: mountsSeen, try: func(target) error {
		fd, err := raw(unix.SYS_FSOPEN, "tmpfs", 1)
		if err != nil {
			return err
		}
		const create = 6
		return errors.Join(sys(unix.SYS_FSCONFIG, fd, create, 0, 0, 0), opens(unix.SYS_FSMOUNT, fd, 1, 0))
	}},
	{name: "pick a file system to change it", call: "fspick", row: RowWrite, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.Base)
		return opens(unix.SYS_FSPICK, at, t.Base, 1)
	}},
	{name: "another root by pivot_root", call: "pivot_root", row: RowRoot, root: true, twin: mountsSeen, try: func(t target) error {
		bound(t.In)
		return errors.Join(unix.Chdir(t.In), unix.PivotRoot(".", "."))
	}},
	{name: "another root", call: "chroot", row: RowRoot, root: true, twin: goThere, try: func(t target) error { return unix.Chroot(t.In) }},
	{
		name: "the root of another process as root", call: "chroot", row: RowProcess, root: true, twin: goThere,
		try: func(t target) error { return unix.Chroot(t.proc("root")) },
	},
	{name: "out of the root by a second one", call: "chroot", row: RowRead, root: true, twin: goThere, try: func(t target) error {
		up := strings.Repeat("../", 64)
		return errors.Join(unix.Chdir("/"), unix.Chroot(t.In), unix.Chdir(up), unix.Chroot("."), reads(t.File))
	}},

	{name: "the mounts of another process", call: "setns", row: RowProcess, root: true, twin: nsSeen, try: joins(keeperPID, "mnt")},
	{
		name: "the processes of another process", call: "setns", row: RowProcess, root: true, twin: nsSeen,
		try: joins(keeperPID, "pid_for_children"),
	},
	{name: "the network of another process", call: "setns", row: RowProcess, root: true, twin: nsSeen, try: joins(keeperPID, "net")},
	{
		name: "the namespace of shared memory of another process", call: "setns", row: RowProcess, root: true, twin: nsSeen,
		try: joins(keeperPID, "ipc"),
	},
	{name: "the host name of another process", call: "setns", row: RowProcess, root: true, twin: nsSeen, try: joins(keeperPID, "uts")},
	{name: "the mounts of the starter", call: "setns", row: RowProcess, root: true, twin: nsSeen, try: joins(starterPID, "mnt")},
	{name: "the shared memory of the starter", call: "setns", row: RowProcess, root: true, twin: nsSeen, try: joins(starterPID, "ipc")},
	{name: "all namespaces of a process", call: "setns", row: RowProcess, root: true, twin: nsSeen, try: func(t target) error {
		fd, err := unix.PidfdOpen(t.Keeper.PID, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWNS|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS)
	}},
	{name: "mounts of its own", call: "unshare", row: RowRoot, root: true, twin: threadOnly, try: unshares(unix.CLONE_NEWNS)},
	{name: "a host name of its own", call: "unshare", row: RowRoot, root: true, twin: threadOnly, try: unshares(unix.CLONE_NEWUTS)},
	{name: "shared memory of its own", call: "unshare", row: RowRoot, root: true, twin: threadOnly, try: unshares(unix.CLONE_NEWIPC)},
	{name: "processes of its own", call: "unshare", row: RowRoot, root: true, twin: threadOnly, try: unshares(unix.CLONE_NEWPID)},
	{name: "a network of its own", call: "unshare", row: RowRoot, root: true, twin: threadOnly, try: unshares(unix.CLONE_NEWNET)},
	{name: "control groups of its own", call: "unshare", row: RowRoot, root: true, twin: threadOnly, try: unshares(unix.CLONE_NEWCGROUP)},
	{name: "root by a program that unshares", call: "unshare", row: RowRoot, twin: child, try: script(`unshare -Ur true`)},
	{
		name: "mounts by a program that unshares", call: "unshare", row: RowRoot, twin: child,
		try: script(`unshare -Urm mount -t tmpfs none "$4"`),
	},
	{name: "rights in a user namespace", call: "clone", row: RowRoot, twin: child, try: inWorld(unix.CLONE_NEWUSER, "rights")},
	{
		name: "mount in a user namespace", call: "clone", row: RowRoot, twin: child,
		try: inWorld(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "mount"),
	},
	{
		name: "write by a mount in a user namespace", call: "clone", row: RowWrite, root: true, twin: child,
		try: inWorld(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "write"),
	},
	{
		name: "uncover what is hidden in a user namespace", call: "clone", row: RowRead, root: true, twin: child,
		try: inWorld(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, "unhide"),
	},
	{name: "mounts of a child", call: "clone", row: RowRoot, root: true, twin: child, try: inWorld(unix.CLONE_NEWNS, "mount")},
	{
		name: "rights in a user and a process namespace", call: "clone", row: RowRoot, twin: child,
		try: inWorld(unix.CLONE_NEWUSER|unix.CLONE_NEWPID|unix.CLONE_NEWNET, "rights"),
	},
	{name: "a user namespace by clone3", call: "clone3", row: RowRoot, twin: child, try: forks3(unix.CLONE_NEWUSER)},
	{name: "mounts by clone3", call: "clone3", row: RowRoot, root: true, twin: child, try: forks3(unix.CLONE_NEWNS)},
	{name: "processes by clone3", call: "clone3", row: RowRoot, root: true, twin: child, try: forks3(unix.CLONE_NEWPID)},
	{
		name: "a user namespace with mounts by clone3", call: "clone3", row: RowRoot, twin: child,
		try: forks3(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC),
	},
}

// expired accepts that a mount was marked and not yet removed.
func expired(err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EBUSY) {
		return nil
	}
	return err
}

func goThere(t target) error { return unix.Chdir(t.In) }
