package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"golang.org/x/sys/unix"
)

// Numbers of recent calls that all architectures share and the library does not list.
const (
	sysGetxattrat   = 464
	sysListxattrat  = 465
	sysOpenTreeAttr = 467
	sysFileGetattr  = 468
)

const attribute = "user.fairlead"

// how is the argument of openat2.
func how(flags, mode, resolve uint64) (unsafe.Pointer, uintptr) {
	h := &unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NONBLOCK, Mode: mode, Resolve: resolve}
	return unsafe.Pointer(h), unsafe.Sizeof(*h)
}

func openat2(dir int, p string, flags, resolve uint64) error {
	mode := uint64(0)
	if flags&unix.O_CREAT != 0 {
		mode = 0o600
	}
	h, size := how(flags, mode, resolve)
	return opens(unix.SYS_OPENAT2, dir, p, h, size)
}

// byHandle opens a path by its handle.
func byHandle(p, beside string, flags int, use func(fd int) error) error {
	handle, _, err := unix.NameToHandleAt(at, p, 0)
	if err != nil {
		return err
	}
	return throughOpen(beside, unix.O_RDONLY, func(mount int) error {
		fd, err := unix.OpenByHandleAt(mount, handle, flags)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return use(fd)
	})
}

func nothingMore(int) error { return nil }

// xattrArgs is the argument of setxattrat and getxattrat.
type xattrArgs struct {
	value uint64
	size  uint32
	flags uint32
}

// moment is a time for calls that set times.
func moment() []byte { return make([]byte, 32) }

// fileAttr is the argument of file_getattr and file_setattr; all of it zero sets nothing.
func fileAttr() []byte { return make([]byte, 24) }

// writeAttempts change a file that may at most be read.
var writeAttempts = []wallAttempt{
	{name: "open to write", call: "openat", row: RowWrite, try: func(t target) error { return openWith(t.File, unix.O_WRONLY) }},
	{
		name: "open to append", call: "openat", row: RowWrite,
		try: func(t target) error { return openWith(t.File, unix.O_WRONLY|unix.O_APPEND) },
	},
	{
		name: "open to truncate", call: "openat", row: RowWrite,
		try: func(t target) error { return openWith(t.File, unix.O_RDONLY|unix.O_TRUNC) },
	},
	{name: "make a file", call: "openat", row: RowWrite, try: func(t target) error { return openWith(t.Name, unix.O_CREAT|unix.O_WRONLY) }},
	{
		name: "make a file without a name", call: "openat", row: RowWrite,
		try: func(t target) error { return openWith(t.Dir, unix.O_TMPFILE|unix.O_RDWR) },
	},
	{name: "write by ..", call: "openat", row: RowWrite, try: func(t target) error {
		rel, err := filepath.Rel(t.In, t.File)
		return errors.Join(err, openWith(t.In+"/"+rel, unix.O_WRONLY))
	}},
	{name: "write by openat2", call: "openat2", row: RowWrite, try: func(t target) error { return openat2(at, t.File, unix.O_RDWR, 0) }},
	{name: "make a file in an open folder", call: "openat2", row: RowWrite, try: inDir(func(_ target, fd int) error {
		return openat2(fd, "new", unix.O_CREAT|unix.O_WRONLY, unix.RESOLVE_BENEATH)
	})},
	{name: "write with an open folder as root", call: "openat2", row: RowWrite, try: func(t target) error {
		return throughOpen(filepath.Dir(t.File), unix.O_PATH, func(fd int) error {
			return openat2(fd, "/../"+filepath.Base(t.File), unix.O_WRONLY, unix.RESOLVE_IN_ROOT)
		})
	}},
	{name: "write by a handle", call: "open_by_handle_at", row: RowWrite, root: true, twin: func(t target) error {
		return openWith(t.File, unix.O_WRONLY)
	}, try: func(t target) error { return byHandle(t.File, t.Dir, unix.O_WRONLY, nothingMore) }},
	{name: "make a folder", call: "mkdirat", row: RowWrite, try: func(t target) error { return sys(unix.SYS_MKDIRAT, at, t.Name, 0o700) }},
	{
		name: "make a folder in an open one", call: "mkdirat", row: RowWrite,
		try: inDir(func(_ target, fd int) error { return sys(unix.SYS_MKDIRAT, fd, "new", 0o700) }),
	},
	{
		name: "make a folder through a link", call: "mkdirat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_MKDIRAT, at, t.link(t.Dir)+"/new", 0o700) },
	},
	{
		name: "make a pipe", call: "mknodat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_MKNODAT, at, t.Name, unix.S_IFIFO|0o600, 0) },
	},
	{
		name: "make the file of a socket", call: "mknodat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_MKNODAT, at, t.Name, unix.S_IFSOCK|0o600, 0) },
	},
	{
		name: "make a plain file by mknod", call: "mknodat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_MKNODAT, at, t.Name, unix.S_IFREG|0o600, 0) },
	},
	{name: "make a link", call: "symlinkat", row: RowWrite, try: func(t target) error { return sys(unix.SYS_SYMLINKAT, "/", at, t.Name) }},
	{
		name: "make a link in an open folder", call: "symlinkat", row: RowWrite,
		try: inDir(func(_ target, fd int) error { return sys(unix.SYS_SYMLINKAT, "/", fd, "new") }),
	},
	{
		name: "link out", call: "linkat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_LINKAT, at, t.mine(), at, t.Name, 0) },
	},
	{name: "link in and write", call: "linkat", row: RowWrite, try: func(t target) error {
		second := filepath.Join(t.In, "second")
		return errors.Join(sys(unix.SYS_LINKAT, at, t.File, at, second, 0), openWith(second, unix.O_WRONLY))
	}},
	{name: "link what is open by name alone", call: "linkat", row: RowWrite, root: true, twin: func(t target) error {
		return sys(unix.SYS_LINKAT, at, t.File, at, filepath.Join(t.In, "second"), 0)
	}, try: inFile(unix.O_PATH, func(t target, fd int) error {
		second := filepath.Join(t.In, "second")
		return errors.Join(sys(unix.SYS_LINKAT, fd, "", at, second, unix.AT_EMPTY_PATH), openWith(second, unix.O_WRONLY))
	})},
	{name: "link what is open below /proc", call: "linkat", row: RowWrite, try: inFile(unix.O_PATH, func(t target, fd int) error {
		second := filepath.Join(t.In, "second")
		return errors.Join(sys(unix.SYS_LINKAT, at, fdPath(fd), at, second, unix.AT_SYMLINK_FOLLOW), openWith(second, unix.O_WRONLY))
	})},
	{
		name: "exchange", call: "renameat2", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_RENAMEAT2, at, t.mine(), at, t.File, unix.RENAME_EXCHANGE) },
	},
	{name: "exchange a folder with a link", call: "renameat2", row: RowWrite, try: func(t target) error {
		return sys(unix.SYS_RENAMEAT2, at, t.link("/"), at, t.Dir, unix.RENAME_EXCHANGE)
	}},
	{name: "exchange the protected folder", call: "renameat2", row: RowWrite, twin: func(t target) error {
		return sys(unix.SYS_RENAMEAT2, at, t.mine(), at, t.Dir, unix.RENAME_EXCHANGE)
	}, try: func(t target) error {
		return sys(unix.SYS_RENAMEAT2, at, t.link("/"), at, t.Base+"/swap", unix.RENAME_EXCHANGE)
	}},
	{name: "rename a new file out", call: "renameat2", row: RowWrite, try: func(t target) error {
		return sys(unix.SYS_RENAMEAT2, at, t.mine(), at, t.Name, unix.RENAME_NOREPLACE)
	}},
	{name: "rename and leave a whiteout", call: "renameat2", row: RowWrite, root: true, twin: func(t target) error {
		return sys(unix.SYS_RENAMEAT2, at, t.File, at, t.Name, 0)
	}, try: func(t target) error { return sys(unix.SYS_RENAMEAT2, at, t.File, at, t.Name, unix.RENAME_WHITEOUT) }},
	{
		name: "rename beside", call: "renameat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_RENAMEAT, at, t.File, at, t.Name) },
	},
	{
		name: "rename over", call: "renameat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_RENAMEAT, at, t.mine(), at, t.File) },
	},
	{
		name: "rename in", call: "renameat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_RENAMEAT, at, t.File, at, t.In+"/taken") },
	},
	{
		name: "rename a folder in", call: "renameat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_RENAMEAT, at, t.Dir, at, t.In+"/taken") },
	},
	{name: "remove a file", call: "unlinkat", row: RowWrite, try: func(t target) error { return sys(unix.SYS_UNLINKAT, at, t.File, 0) }},
	{
		name: "remove a folder", call: "unlinkat", row: RowWrite,
		try: func(t target) error { return sys(unix.SYS_UNLINKAT, at, t.Dir+"/below", unix.AT_REMOVEDIR) },
	},
	{
		name: "remove in an open folder", call: "unlinkat", row: RowWrite,
		try: inDir(func(_ target, fd int) error { return sys(unix.SYS_UNLINKAT, fd, "inner", 0) }),
	},
	{name: "remove a whole tree", call: "unlinkat", row: RowWrite, try: func(t target) error {
		_, err := os.Lstat(t.Dir)
		return errors.Join(err, os.RemoveAll(t.Dir))
	}},
	{name: "truncate", call: "truncate", row: RowWrite, try: func(t target) error { return sys(unix.SYS_TRUNCATE, t.File, 1) }},
	{
		name: "truncate what is open", call: "truncate", row: RowWrite,
		try: inFile(unix.O_RDONLY, func(_ target, fd int) error { return sys(unix.SYS_TRUNCATE, fdPath(fd), 1) }),
	},
	{
		name: "change the mode of what is open", call: "fchmod", row: RowAttributes,
		try: inFile(unix.O_RDONLY, func(_ target, fd int) error { return sys(unix.SYS_FCHMOD, fd, 0o777) }),
	},
	{
		name: "change a mode", call: "fchmodat", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_FCHMODAT, at, t.File, 0o777) },
	},
	{
		name: "change the mode of a folder", call: "fchmodat", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_FCHMODAT, at, t.Dir, 0o777) },
	},
	{
		name: "change the mode of what is open by name", call: "fchmodat2", row: RowAttributes,
		try: inFile(unix.O_PATH, func(_ target, fd int) error {
			return sys(unix.SYS_FCHMODAT2, fd, "", 0o777, unix.AT_EMPTY_PATH)
		}),
	},
	{
		name: "change an owner", call: "fchownat", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_FCHOWNAT, at, t.File, os.Getuid(), os.Getgid(), 0) },
	},
	{
		name: "change the owner of what is open by name", call: "fchownat", row: RowAttributes,
		try: inFile(unix.O_PATH, func(_ target, fd int) error {
			return sys(unix.SYS_FCHOWNAT, fd, "", os.Getuid(), os.Getgid(), unix.AT_EMPTY_PATH)
		}),
	},
	{name: "change the owner of what is open", call: "fchown", row: RowAttributes, try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
		return sys(unix.SYS_FCHOWN, fd, os.Getuid(), os.Getgid())
	})},
	{
		name: "set times", call: "utimensat", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_UTIMENSAT, at, t.File, moment(), 0) },
	},
	{name: "set the times of what is open", call: "utimensat", row: RowAttributes, try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
		return sys(unix.SYS_UTIMENSAT, fd, 0, moment(), 0)
	})},
	{
		name: "touch a folder", call: "utimensat", row: RowAttributes,
		try: func(t target) error { return sys(unix.SYS_UTIMENSAT, at, t.Dir, 0, 0) },
	},
	{
		name: "set an attribute", call: "setxattr", row: RowAttributes,
		try: func(t target) error { return unix.Setxattr(t.File, attribute, []byte("x"), 0) },
	},
	{
		name: "set an attribute of a folder", call: "lsetxattr", row: RowAttributes,
		try: func(t target) error { return unix.Lsetxattr(t.Dir, attribute, []byte("x"), 0) },
	},
	{
		name: "set an attribute of what is open", call: "fsetxattr", row: RowAttributes,
		try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
			return unix.Fsetxattr(fd, attribute, []byte("x"), 0)
		}),
	},
	{name: "set an attribute by setxattrat", call: "setxattrat", row: RowAttributes, try: func(t target) error {
		value := []byte("x")
		args := xattrArgs{value: uint64(uintptr(unsafe.Pointer(&value[0]))), size: 1}
		return sys(sysSetxattrat, at, t.File, 0, attribute, unsafe.Pointer(&args), unsafe.Sizeof(args))
	}},
	{
		name: "remove an attribute", call: "removexattr", row: RowAttributes,
		try: func(t target) error { return unix.Removexattr(t.File, keptAttribute) },
	},
	{
		name: "remove an attribute of what may be a link", call: "lremovexattr", row: RowAttributes,
		try: func(t target) error { return unix.Lremovexattr(t.File, keptAttribute) },
	},
	{
		name: "remove an attribute of what is open", call: "fremovexattr", row: RowAttributes,
		try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
			return unix.Fremovexattr(fd, keptAttribute)
		}),
	},
	{name: "remove an attribute by removexattrat", call: "removexattrat", row: RowAttributes, try: func(t target) error {
		return sys(sysRemovexattrat, at, t.File, 0, keptAttribute)
	}},
	{name: "set a flag", call: "ioctl", row: RowAttributes, try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		return errors.Join(err, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|noDump))
	})},
	{name: "set an extended flag", call: "ioctl", row: RowAttributes, try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
		flags := make([]byte, 28)
		const get, set = 0x801c581f, 0x401c5820
		if err := sys(unix.SYS_IOCTL, fd, get, flags); err != nil {
			return err
		}
		return sys(unix.SYS_IOCTL, fd, set, flags)
	})},
	{name: "set file attributes", call: "file_setattr", row: RowAttributes, try: func(t target) error {
		return sys(sysFileSetattr, at, t.File, fileAttr(), len(fileAttr()), 0)
	}},
	{name: "make a named socket", call: "bind", row: RowWrite, try: func(t target) error {
		l, err := net.Listen("unix", t.Name)
		if err != nil {
			return err
		}
		return l.Close()
	}},
	{name: "map a file that is open to read, and write", call: "mmap", row: RowWrite, root: true, try: func(t target) error {
		return throughOpen(t.File, unix.O_RDWR, func(fd int) error {
			_, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			return err
		})
	}},
	{name: "allocate blocks", call: "fallocate", row: RowWrite, try: func(t target) error {
		return throughOpen(t.File, unix.O_WRONLY, func(fd int) error { return unix.Fallocate(fd, 0, 0, 1) })
	}},
	{name: "copy into", call: "copy_file_range", row: RowWrite, try: func(t target) error {
		return throughOpen(t.mine(), unix.O_RDONLY, func(from int) error {
			return throughOpen(t.File, unix.O_WRONLY, func(to int) error {
				_, err := unix.CopyFileRange(from, nil, to, nil, 4, 0)
				return err
			})
		})
	}},
	{name: "write from a shell", call: "execve", row: RowWrite, try: script(`echo changed > "$1"`)},
	{
		name: "write by other programs", call: "execve", row: RowWrite,
		try: script(`echo changed | tee "$1"; cp /etc/passwd "$1"; sed -i s/a/b/ "$1"`),
	},
	{name: "move by other programs", call: "execve", row: RowWrite, try: script(`mv "$1" "$4/moved"; ln -s / "$1"; rm -r "$2"`)},
	{
		name: "copy with attributes", call: "execve", row: RowWrite,
		try: script(`echo x > "$4/x"; cp -p "$4/x" "$1"; touch "$1"; chmod +x "$1"`),
	},
	{name: "write from many threads", call: "clone", row: RowWrite, try: func(t target) error {
		return fromThreads(func() error { return openWith(t.File, unix.O_WRONLY) })
	}},
	{name: "write from a process that outlives the program", call: "clone", row: RowWrite, try: orphan},
	{name: "write while the daemon replaces the file", call: "rename and open", row: RowWrite, try: func(t target) error {
		var last error
		for range 2000 {
			if last = openWith(filepath.Join(t.Base, replaced), unix.O_WRONLY); last == nil {
				return nil
			}
		}
		return last
	}},
	{name: "make the name that the daemon renames to", call: "rename and open", row: RowWrite, twin: func(t target) error {
		return openWith(t.Name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	}, try: func(t target) error {
		var last error
		for i := range 2000 {
			p := filepath.Join(t.Base, replaced+".new")
			if i%2 == 0 {
				p = filepath.Join(t.Base, replaced)
			}
			if last = openWith(p, unix.O_CREAT|unix.O_WRONLY); last == nil {
				return nil
			}
		}
		return last
	}},
	{name: "rename the folder above a protected one", call: "rename and open", row: RowInside, try: func(t target) error {
		above := filepath.Dir(filepath.Dir(t.Deep))
		return errors.Join(os.Rename(above, above+".away"), os.MkdirAll(t.Deep, 0o700),
			os.WriteFile(filepath.Join(t.Deep, "kept"), []byte("changed\n"), 0o600))
	}},
	{name: "exchange the folder above a protected one", call: "rename and open", row: RowInside, try: func(t target) error {
		above, mine := filepath.Dir(t.Deep), filepath.Join(t.In, "mine")
		deep := filepath.Join(mine, filepath.Base(t.Deep))
		return errors.Join(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "kept"), []byte("changed\n"), 0o600),
			unix.Renameat2(at, mine, at, above, unix.RENAME_EXCHANGE))
	}},
	{name: "put a link in place of a file between check and use", call: "rename and open", row: RowWrite, try: func(t target) error {
		name, link, plain := filepath.Join(t.In, "name"), t.link(t.File), t.mine()
		stop := make(chan struct{})
		defer close(stop)
		_ = os.WriteFile(name, nil, 0o600)
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(at, link, at, name, unix.RENAME_EXCHANGE)
					_ = unix.Renameat2(at, plain, at, name, unix.RENAME_EXCHANGE)
				}
			}
		}()
		for range 5000 {
			fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				continue
			}
			to, _ := os.Readlink(fdPath(fd))
			_ = unix.Close(fd)
			if to == t.File {
				return nil
			}
		}
		return unix.EACCES
	}},
}

const (
	keptAttribute = "user.kept" // each attacked file has it
	replaced      = "replaced"  // the daemon replaces this file all the time
)

// orphan makes an attempt in a grandchild, in a session of its own, after its parent has ended.
func orphan(t target) error {
	said := filepath.Join(t.In, "said")
	cmd := again("orphan", orphanJob{File: t.File, Said: said})
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `setsid "$0" >/dev/null 2>&1 </dev/null & exit 0`, os.Args[0]}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	end := time.Now().Add(hangAfter / 2)
	for {
		b, err := os.ReadFile(said)
		switch {
		case err != nil && time.Now().After(end):
			return err
		case err != nil:
			<-wait.After(5 * time.Millisecond)
		case string(b) == worked:
			return nil
		default:
			return errors.New(string(b))
		}
	}
}

type orphanJob struct {
	File string `json:"file"`
	Said string `json:"said"`
}
