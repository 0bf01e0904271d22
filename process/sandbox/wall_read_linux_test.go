package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// secretOfFiles is in each attacked file.
const secretOfFiles = "the-secret-of-the-files"

// room is where the kernel may write an answer.
func room() []byte { return make([]byte, 4096) }

// lists finds the attacked file's name in a folder.
func lists(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == name {
			return nil
		}
	}
	return unix.ENOENT
}

// readAttempts read a file that is not in the view, or learn that it exists.
var readAttempts = []wallAttempt{
	{name: "read a secret", call: "openat", row: RowRead, try: func(t target) error { return reads(t.File) }},
	{name: "read by ..", call: "openat", row: RowRead, try: func(t target) error {
		rel, err := filepath.Rel(t.In, t.File)
		return errors.Join(err, reads(t.In+"/"+rel))
	}},
	{name: "read below /proc/self/root", call: "openat2", row: RowRead, try: func(t target) error {
		h, size := how(unix.O_RDONLY, 0, 0)
		fd, err := raw(unix.SYS_OPENAT2, at, "/proc/self/root"+t.File, h, size)
		if err != nil {
			return err
		}
		return readsFD(fd)
	}},
	{name: "read through a link", call: "openat2", row: RowRead, try: func(t target) error {
		h, size := how(unix.O_RDONLY, 0, 0)
		fd, err := raw(unix.SYS_OPENAT2, at, t.link(t.Base)+"/"+filepath.Base(t.File), h, size)
		if err != nil {
			return err
		}
		return readsFD(fd)
	}},
	{
		name: "read a folder by a handle", call: "open_by_handle_at", row: RowRead, root: true,
		twin: func(t target) error { return reads(t.File) }, try: func(t target) error {
			return byHandle(t.Base, t.In, unix.O_RDONLY, func(fd int) error { return reads(fdPath(fd) + "/" + filepath.Base(t.File)) })
		},
	},
	{
		name: "read the first folder of the file system by a made-up handle", call: "open_by_handle_at", row: RowRead, root: true,
		twin: func(t target) error { return lists(t.Base, filepath.Base(t.File)) },
		try: func(t target) error {
			const inode32, rootInode = 1, 2
			return throughOpen(t.In, unix.O_RDONLY, func(mount int) error {
				fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(inode32, []byte{rootInode, 0, 0, 0, 0, 0, 0, 0}), unix.O_RDONLY)
				return closed(fd, err)
			})
		},
	},
	{name: "the handle of a secret", call: "name_to_handle_at", row: RowNames, try: func(t target) error {
		_, _, err := unix.NameToHandleAt(at, t.File, 0)
		return err
	}},
	{
		name: "look at a secret", call: "newfstatat", row: RowNames,
		try: func(t target) error { return unix.Fstatat(at, t.File, &unix.Stat_t{}, 0) },
	},
	{name: "look below the root of another process", call: "newfstatat", row: RowProcess, try: func(t target) error {
		return unix.Fstatat(at, t.proc("root")+t.File, &unix.Stat_t{}, 0)
	}},
	{name: "look below the folder of another process", call: "newfstatat", row: RowProcess, try: func(t target) error {
		return unix.Fstatat(at, t.proc("cwd/")+filepath.Base(t.File), &unix.Stat_t{}, 0)
	}},
	{name: "look at the open file of another process", call: "newfstatat", row: RowProcess, try: func(t target) error {
		return unix.Fstatat(at, t.proc(fmt.Sprintf("fd/%d", t.Keeper.FD)), &unix.Stat_t{}, 0)
	}},
	{
		name: "look at a secret by statx", call: "statx", row: RowNames,
		try: func(t target) error { return unix.Statx(at, t.File, 0, unix.STATX_ALL, &unix.Statx_t{}) },
	},
	{
		name: "ask for access", call: "faccessat", row: RowNames,
		try: func(t target) error { return sys(unix.SYS_FACCESSAT, at, t.File, unix.R_OK) },
	},
	{
		name: "ask for access by name", call: "faccessat2", row: RowNames,
		try: func(t target) error { return sys(unix.SYS_FACCESSAT2, at, t.File, unix.R_OK, unix.AT_EACCESS) },
	},
	{name: "go to a secret folder", call: "chdir", row: RowNames, try: func(t target) error { return unix.Chdir(t.Dir) }},
	{
		name: "go to the folder of another process", call: "chdir", row: RowProcess,
		try: func(t target) error { return unix.Chdir(t.proc("cwd")) },
	},
	{name: "go to the root of another process", call: "chdir", row: RowProcess, try: func(t target) error {
		return errors.Join(unix.Chdir(t.proc("root")), reads("."+t.File))
	}},
	{name: "climb from the folder", call: "chdir", row: RowRead, try: func(t target) error {
		return errors.Join(unix.Chdir(t.In), unix.Chdir(strings.Repeat("../", 64)), reads("."+t.File))
	}},
	{
		name: "list a secret folder", call: "getdents64", row: RowRead,
		try: func(t target) error { return lists(t.Base, filepath.Base(t.File)) },
	},
	{
		name: "list the folder above", call: "getdents64", row: RowRead,
		try:  func(t target) error { return lists(filepath.Dir(t.Base), filepath.Base(t.Base)) },
		twin: func(t target) error { return lists(t.Base, filepath.Base(t.File)) },
	},
	{
		name: "list the processes of outside", call: "getdents64", row: RowProcess,
		try: func(t target) error { return lists("/proc", fmt.Sprint(t.Keeper.PID)) },
	},
	{
		name: "list the descriptors of another process", call: "getdents64", row: RowProcess,
		try: func(t target) error { return lists(t.proc("fd"), fmt.Sprint(t.Keeper.FD)) },
	},
	{
		name: "list the threads of another process", call: "getdents64", row: RowProcess,
		try: func(t target) error { return lists(t.proc("task"), fmt.Sprint(t.Keeper.PID)) },
	},
	{
		name: "where a link leads", call: "readlinkat", row: RowNames,
		try: func(t target) error { return sys(unix.SYS_READLINKAT, at, t.Dir+"/link", room(), len(room())) },
	},
	{name: "the root of another process", call: "readlinkat", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_READLINKAT, at, t.proc("root"), room(), len(room()))
	}},
	{name: "the name of an open file of another process", call: "readlinkat", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_READLINKAT, at, t.proc(fmt.Sprintf("fd/%d", t.Keeper.FD)), room(), len(room()))
	}},
	{name: "the namespaces of another process", call: "readlinkat", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_READLINKAT, at, t.proc("ns/mnt"), room(), len(room()))
	}},
	{name: "an attribute of a secret", call: "getxattr", row: RowNames, try: func(t target) error {
		_, err := unix.Getxattr(t.File, keptAttribute, room())
		return err
	}},
	{name: "an attribute of what may be a link", call: "lgetxattr", row: RowNames, try: func(t target) error {
		_, err := unix.Lgetxattr(t.File, keptAttribute, room())
		return err
	}},
	{name: "the attributes of a secret", call: "listxattr", row: RowNames, try: func(t target) error {
		_, err := unix.Listxattr(t.File, room())
		return err
	}},
	{name: "the attributes of a secret folder", call: "llistxattr", row: RowNames, try: func(t target) error {
		_, err := unix.Llistxattr(t.Dir, room())
		return err
	}},
	{name: "the attributes by listxattrat", call: "listxattrat", row: RowNames, try: func(t target) error {
		return sys(sysListxattrat, at, t.File, 0, room(), len(room()))
	}},
	{name: "the flags of a secret", call: "file_getattr", row: RowNames, try: func(t target) error {
		return sys(sysFileGetattr, at, t.File, fileAttr(), len(fileAttr()), 0)
	}},
	{
		name: "the file system of a secret", call: "statfs", row: RowNames,
		try: func(t target) error { return unix.Statfs(t.File, &unix.Statfs_t{}) },
	},
	{name: "watch a secret", call: "inotify_add_watch", row: RowNames, try: func(t target) error { return watch(t.File) }},
	{name: "watch a secret folder", call: "inotify_add_watch", row: RowNames, try: func(t target) error { return watch(t.Dir) }},
	{
		name: "watch the folder of another process", call: "inotify_add_watch", row: RowProcess,
		try: func(t target) error { return watch(t.proc("cwd")) },
	},
	{
		name: "watch by fanotify", call: "fanotify_mark", row: RowNames, twin: func(t target) error { return watch(t.File) },
		try: func(t target) error {
			fd, err := unix.FanotifyInit(unix.FAN_REPORT_FID|unix.FAN_CLOEXEC, unix.O_RDONLY)
			if err != nil {
				return err
			}
			return unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_MODIFY, at, t.File)
		},
	},
	{
		name: "watch the whole file system", call: "fanotify_mark", row: RowNames, root: true,
		twin: func(t target) error { return watch(t.Dir) }, try: func(t target) error {
			fd, err := unix.FanotifyInit(unix.FAN_REPORT_FID|unix.FAN_CLOEXEC, unix.O_RDONLY)
			if err != nil {
				return err
			}
			return unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, unix.FAN_MODIFY, at, t.In)
		},
	},
	{
		name: "decide about accesses", call: "fanotify_init", row: RowRoot, root: true, twin: func(t target) error { return watch(t.Dir) },
		try: func(target) error {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
			return closed(fd, err)
		},
	},
	{
		name: "run a program that is not shown", call: "execveat", row: RowRead,
		try: func(t target) error { return exec.Command(t.Dir + "/program").Run() },
	},
	{name: "run the program of another process", call: "execveat", row: RowProcess, try: func(t target) error {
		cmd := again("ids", nil)
		cmd.Path = t.proc("exe")
		return cmd.Run()
	}},
	{
		name: "read by a shell", call: "execve", row: RowRead,
		try: script(`grep -q ` + secretOfFiles + ` "$1"; cd "$2"; cat "$1" >/dev/null`),
	},
	{name: "find a secret", call: "execve", row: RowRead, try: script(`find "$(dirname "$1")" -name "$(basename "$1")" | grep -q .`)},
	{
		name: "read what is hidden in a writable folder", call: "openat2", row: RowRead,
		twin: func(t target) error { return reads(t.File) },
		try: func(t target) error {
			h, size := how(unix.O_RDONLY, 0, 0)
			fd, err := raw(unix.SYS_OPENAT2, at, filepath.Join(t.Hidden, "secret"), h, size)
			if err != nil {
				return err
			}
			return readsFD(fd)
		},
	},
	{name: "rename the folder above a hidden one", call: "rename and open", row: RowRead, twin: func(t target) error {
		return errors.Join(os.Rename(t.Dir, t.Name), os.Rename(t.Name, t.Dir))
	}, try: func(t target) error {
		above := filepath.Dir(t.Hidden)
		if err := os.Rename(above, above+".away"); err != nil {
			return errors.Join(err, reads(filepath.Join(t.Hidden, "secret")))
		}
		err := reads(filepath.Join(above+".away", filepath.Base(t.Hidden), "secret"))
		return errors.Join(err, os.Rename(above+".away", above))
	}},
}

// watch asks for events of a path.
func watch(p string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, p, unix.IN_ALL_EVENTS)
	return err
}
