package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func open(p string, flags int) error {
	return opens(unix.SYS_OPEN, p, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
}

// oldAttempts use system calls that newer architectures do not have.
var oldAttempts = []wallAttempt{
	{
		name: "write below /proc/self/root", call: "open", row: RowWrite,
		try: func(t target) error { return open("/proc/self/root"+t.File, unix.O_WRONLY) },
	},
	{
		name: "write below /proc/thread-self/root", call: "open", row: RowWrite,
		try: func(t target) error { return open("/proc/thread-self/root"+t.File, unix.O_WRONLY) },
	},
	{
		name: "write what is open to read", call: "open", row: RowWrite,
		try: inFile(unix.O_RDONLY, func(_ target, fd int) error { return open(fdPath(fd), unix.O_WRONLY) }),
	},
	{
		name: "write what is open by name alone", call: "open", row: RowWrite,
		try: inFile(unix.O_PATH, func(_ target, fd int) error { return open(fdPath(fd), unix.O_RDWR) }),
	},
	{
		name: "write below the root of another process", call: "open", row: RowProcess,
		try: func(t target) error { return open(t.proc("root")+t.File, unix.O_WRONLY) },
	},
	{name: "write below the folder of another process", call: "open", row: RowProcess, try: func(t target) error {
		return open(t.proc("cwd/")+filepath.Base(t.File), unix.O_WRONLY)
	}},
	{name: "write the open file of another process", call: "open", row: RowProcess, try: func(t target) error {
		return open(t.proc(fmt.Sprintf("fd/%d", t.Keeper.FD)), unix.O_WRONLY)
	}},
	{name: "write below the root of the starter", call: "open", row: RowProcess, twin: func(t target) error {
		return open(t.proc("root")+t.File, unix.O_WRONLY)
	}, try: func(t target) error { return open(fmt.Sprintf("/proc/%d/root%s", t.Parent, t.File), unix.O_WRONLY) }},
	{name: "create over a file", call: "creat", row: RowWrite, try: func(t target) error { return opens(unix.SYS_CREAT, t.File, 0o600) }},
	{name: "create a new file", call: "creat", row: RowWrite, try: func(t target) error { return opens(unix.SYS_CREAT, t.Name, 0o600) }},
	{name: "make a folder by mkdir", call: "mkdir", row: RowWrite, try: func(t target) error { return sys(unix.SYS_MKDIR, t.Name, 0o700) }},
	{
		name: "make a pipe by mknod", call: "mknod", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_MKNOD, t.Name, unix.S_IFIFO|0o600, 0) },
	},
	{
		name: "make a link by symlink", call: "symlink", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_SYMLINK, "/", t.Name) },
	},
	{
		name: "make a second name by link", call: "link", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_LINK, t.File, t.Name) },
	},
	{name: "rename by rename", call: "rename", row: RowWrite, try: func(t target) error { return sys(unix.SYS_RENAME, t.File, t.Name) }},
	{name: "rename a folder out", call: "rename", row: RowWrite, try: func(t target) error {
		mine := filepath.Join(t.In, "folder")
		_ = os.Mkdir(mine, 0o700)
		return sys(unix.SYS_RENAME, mine, t.Name)
	}},
	{name: "remove by unlink", call: "unlink", row: RowWrite, try: func(t target) error { return sys(unix.SYS_UNLINK, t.File) }},
	{name: "remove by rmdir", call: "rmdir", row: RowWrite, try: func(t target) error { return sys(unix.SYS_RMDIR, t.Dir+"/below") }},
	{
		name: "change a mode by chmod", call: "chmod", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_CHMOD, t.File, 0o777) },
	},
	{
		name: "change an owner by chown", call: "chown", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_CHOWN, t.File, os.Getuid(), os.Getgid()) },
	},
	{
		name: "change an owner by lchown", call: "lchown", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_LCHOWN, t.File, os.Getuid(), os.Getgid()) },
	},
	{
		name: "set times by utime", call: "utime", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_UTIME, t.File, moment()) },
	},
	{
		name: "set times by utimes", call: "utimes", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_UTIMES, t.File, moment()) },
	},
	{
		name: "set times by futimesat", call: "futimesat", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_FUTIMESAT, at, t.File, moment()) },
	},

	{
		name: "look at a secret by stat", call: "stat", row: RowNames,
		try: func(t target) error { return sys(unix.SYS_STAT, t.File, room()) },
	},
	{
		name: "look at a secret by lstat", call: "lstat", row: RowNames,
		try: func(t target) error { return sys(unix.SYS_LSTAT, t.File, room()) },
	},
	{
		name: "ask for access to a secret", call: "access", row: RowNames,
		try: func(t target) error { return sys(unix.SYS_ACCESS, t.File, unix.R_OK) },
	},
	{
		name: "where another process works", call: "readlink", row: RowProcess,
		try: func(t target) error { return sys(unix.SYS_READLINK, t.proc("cwd"), room(), len(room())) },
	},
	{
		name: "what another process runs", call: "readlink", row: RowProcess,
		try: func(t target) error { return sys(unix.SYS_READLINK, t.proc("exe"), room(), len(room())) },
	},
	{
		name: "all rights over the ports of the machine", call: "iopl", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return sys(unix.SYS_IOPL, 3) },
	},
	{
		name: "a port of the machine", call: "ioperm", row: RowRoot, root: true, twin: allowedHere,
		try: func(target) error { return sys(unix.SYS_IOPERM, 0x80, 1, 1) },
	},
}

// allowedHere is the twin of what no program may do: it asks what it may do.
func allowedHere(target) error { return sys(unix.SYS_SYSINFO, room()) }
