package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// readingBy opens the attacked file, and reads it in one way.
func readingBy(read func(t target, fd int) ([]byte, error)) act {
	return inFile(unix.O_RDONLY, func(t target, fd int) error {
		b, err := read(t, fd)
		if err == nil && !bytes.Contains(b, []byte(secretOfFiles)) {
			err = errors.New("it is not the secret")
		}
		return err
	})
}

// throughPipe reads what a call moves from a file into a pipe.
func throughPipe(move func(from, to int) error) act {
	return readingBy(func(_ target, fd int) ([]byte, error) {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return nil, err
		}
		defer unix.Close(ends[0])
		defer unix.Close(ends[1])
		if err := move(fd, ends[1]); err != nil {
			return nil, err
		}
		b := room()
		n, err := unix.Read(ends[0], b)
		return b[:max(n, 0)], err
	})
}

// tells is an act whose fault says that the attacked file or folder is there.
func tells(fault unix.Errno, try act) act {
	return func(t target) error {
		err := try(t)
		if errors.Is(err, fault) {
			return nil
		}
		return errors.Join(err, errors.New("it does not say that it is there"))
	}
}

// belowRoot is the way to the attacked file from a folder that leads to the root.
func belowRoot(root func(t target) string) act {
	return func(t target) error { return reads(root(t) + t.File) }
}

const secretLength = len(secretOfFiles)

// lookAttempts are more ways to read a file that is not in the view, or to learn that it is there.
var lookAttempts = []wallAttempt{
	{name: "read beside an open root", call: "openat beside /", row: RowRead, try: func(t target) error {
		return throughOpen("/", unix.O_PATH|unix.O_DIRECTORY, func(root int) error {
			fd, err := unix.Openat(root, t.File[1:], unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return readsFD(fd)
		})
	}},
	{name: "read with the root as a root", call: "openat2 in a root", row: RowRead, try: func(t target) error {
		return throughOpen("/", unix.O_PATH|unix.O_DIRECTORY, func(root int) error {
			h, size := how(unix.O_RDONLY, 0, unix.RESOLVE_IN_ROOT)
			fd, err := raw(unix.SYS_OPENAT2, root, "/../.."+t.File, h, size)
			if err != nil {
				return err
			}
			return readsFD(fd)
		})
	}},
	{name: "read what is open by name alone", call: "open O_PATH", row: RowRead, try: inFile(unix.O_PATH, func(_ target, fd int) error {
		return reads(fdPath(fd))
	})},
	{name: "read beside a folder that is open by name alone", call: "open O_PATH", row: RowRead, try: func(t target) error {
		return throughOpen(t.Base, unix.O_PATH|unix.O_DIRECTORY, func(dir int) error {
			return reads(fdPath(dir) + "/" + filepath.Base(t.File))
		})
	}},
	{name: "read by an odd spelling", call: "open odd", row: RowRead, try: func(t target) error {
		return reads("//." + filepath.Dir(t.File) + "//././../" + filepath.Base(filepath.Dir(t.File)) + "//" + filepath.Base(t.File))
	}},
	{name: "read from the folder it works in", call: "open below /proc", row: RowRead, try: func(t target) error {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, t.File)
		return errors.Join(err, reads("/proc/self/cwd/"+rel))
	}},
	{
		name: "read below the root of a thread", call: "open below /proc", row: RowRead,
		try: belowRoot(func(target) string { return "/proc/thread-self/root" }),
	},
	{
		name: "read below the root of the starter", call: "open below /proc", row: RowRead,
		try: belowRoot(func(t target) string { return starterPath(t, "root") }),
	},
	{
		name: "read below the root of another process", call: "open below /proc", row: RowRead,
		try: belowRoot(func(t target) string { return t.proc("root") }),
	},
	{
		name: "read below the root of a thread of another process", call: "open below /proc", row: RowRead,
		try: belowRoot(func(t target) string { return t.proc(fmt.Sprintf("task/%d/root", t.Keeper.PID)) }),
	},
	{
		name: "read in the folder of another process", call: "open below /proc", row: RowRead,
		try: func(t target) error { return reads(t.proc("cwd/") + filepath.Base(t.File)) },
	},
	{
		name: "list the folder of another process", call: "open below /proc", row: RowRead,
		try: func(t target) error { return lists(t.proc("cwd"), filepath.Base(t.File)) },
	},
	{
		name: "list below the root of a thread", call: "open below /proc", row: RowRead,
		try: func(t target) error { return lists("/proc/thread-self/root"+t.Base, filepath.Base(t.File)) },
	},

	{name: "read into two rooms", call: "readv", row: RowRead, try: readingBy(func(_ target, fd int) ([]byte, error) {
		first, second := make([]byte, 5), room()
		n, err := unix.Readv(fd, [][]byte{first, second})
		return slices.Concat(first, second)[:max(n, 0)], err
	})},
	{name: "read with flags", call: "preadv2", row: RowRead, try: readingBy(func(_ target, fd int) ([]byte, error) {
		b := room()
		n, err := unix.Preadv2(fd, [][]byte{b}, 0, unix.RWF_HIPRI)
		return b[:max(n, 0)], err
	})},
	{name: "read at a place", call: "pread64 of a file", row: RowRead, try: readingBy(func(_ target, fd int) ([]byte, error) {
		b := room()
		n, err := unix.Pread(fd, b, 0)
		return b[:max(n, 0)], err
	})},
	{name: "send a file", call: "sendfile", row: RowRead, try: throughPipe(func(from, to int) error {
		_, err := unix.Sendfile(to, from, nil, secretLength)
		return err
	})},
	{name: "splice a file", call: "splice", row: RowRead, try: throughPipe(func(from, to int) error {
		_, err := unix.Splice(from, nil, to, nil, secretLength, 0)
		return err
	})},
	{name: "copy a range", call: "copy_file_range", row: RowRead, try: func(t target) error {
		mine := t.mine()
		err := inFile(unix.O_RDONLY, func(_ target, from int) error {
			return throughOpen(mine, unix.O_WRONLY|unix.O_TRUNC, func(to int) error {
				_, err := unix.CopyFileRange(from, nil, to, nil, secretLength, 0)
				return err
			})
		})(t)
		return errors.Join(err, reads(mine))
	}},
	{name: "map a file to read", call: "mmap of a file", row: RowRead, try: readingBy(func(_ target, fd int) ([]byte, error) {
		b, err := unix.Mmap(fd, 0, secretLength, unix.PROT_READ, unix.MAP_PRIVATE)
		if err != nil {
			return nil, err
		}
		return bytes.Clone(b), unix.Munmap(b)
	})},
	{name: "lock a secret", call: "flock", row: RowRead, try: inFile(unix.O_RDONLY, func(_ target, fd int) error {
		return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	})},

	{name: "link in and read", call: "linkat to read", row: RowRead, try: func(t target) error {
		p := filepath.Join(t.In, "second")
		return errors.Join(unix.Linkat(at, t.File, at, p, 0), reads(p))
	}},
	{name: "move in and read", call: "renameat to read", row: RowRead, try: func(t target) error {
		p := filepath.Join(t.In, "moved")
		if err := os.Rename(t.File, p); err != nil {
			return err
		}
		return errors.Join(reads(p), os.Rename(p, t.File))
	}},
	{name: "read through two links", call: "open a link", row: RowRead, try: func(t target) error {
		second := filepath.Join(t.In, "second")
		return errors.Join(os.Symlink(t.link(t.File), second), reads(second))
	}},
	{name: "read through a relative link", call: "open a link", row: RowRead, try: func(t target) error {
		rel, err := filepath.Rel(t.In, t.File)
		return errors.Join(err, reads(t.link(rel)))
	}},
	{
		name: "read through a link to the root", call: "open a link", row: RowRead,
		try: func(t target) error { return reads(t.link("/proc/self/root") + t.File) },
	},
	{name: "read from within a secret folder", call: "chdir to read", row: RowRead, try: func(t target) error {
		return errors.Join(unix.Chdir(t.Base), reads(filepath.Base(t.File)))
	}},
	{name: "go to a folder that is open by name alone", call: "fchdir to read", row: RowRead, try: func(t target) error {
		return throughOpen(t.Base, unix.O_PATH|unix.O_DIRECTORY, func(dir int) error {
			return errors.Join(unix.Fchdir(dir), reads(filepath.Base(t.File)))
		})
	}},

	{name: "read by a redirection", call: "a shell", row: RowRead, try: script(`read -r line < "$1"; test "$line" = ` + secretOfFiles)},
	{name: "list by a pattern", call: "a shell", row: RowRead, try: script(`for f in "$2"/inn*; do test -e "$f"; done`)},
	{
		name: "run a secret as a script", call: "a shell", row: RowRead, // the complaint has the words
		try: script(`sh "$1" > complaint 2>&1 || true; grep -q ` + secretOfFiles + ` complaint`),
	},
	{name: "run a secret program by a shell", call: "a shell", row: RowRead, try: script(`sh "$2/program"`)},
	{name: "copy by a program", call: "cp", row: RowRead, try: script(`cp "$1" copy; grep -q ` + secretOfFiles + ` copy`)},
	{name: "pack a folder", call: "tar", row: RowRead, try: script(`tar cf - -C "$2" . 2>/dev/null | grep -aq ` + secretOfFiles)},
	{name: "compare by git", call: "git of a file", row: RowRead, try: script(`git diff --no-index /dev/null "$1" > said || true; grep -q ` + secretOfFiles + ` said`)},
	{name: "settings of git that include a secret", call: "git of a file", row: RowRead, try: script(
		`test x = "$(git -c include.path="$2/config" config fairlead.secret)"`)},
	{name: "objects of git in a secret folder", call: "git of a file", row: RowRead, try: script(
		`test "$(git hash-object "$1")" = "$(echo ` + secretOfFiles + ` | git hash-object --stdin)"`)},
	{name: "run a descriptor of a secret program", call: "execveat of a descriptor", row: RowRead, try: func(t target) error {
		f, err := os.OpenFile(t.Dir+"/program", unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		cmd := exec.Command("/proc/self/fd/3")
		cmd.ExtraFiles = []*os.File{f}
		return cmd.Run()
	}},

	{name: "make a folder where a file is", call: "mkdirat to look", row: RowNames, try: tells(unix.EEXIST, func(t target) error {
		return unix.Mkdirat(at, t.File, 0o700)
	})},
	{name: "make a pipe where a file is", call: "mknodat to look", row: RowNames, try: tells(unix.EEXIST, func(t target) error {
		return unix.Mknodat(at, t.File, unix.S_IFIFO|0o600, 0)
	})},
	{name: "make a link where a file is", call: "symlinkat to look", row: RowNames, try: tells(unix.EEXIST, func(t target) error {
		return unix.Symlinkat("nowhere", at, t.File)
	})},
	{name: "make a second name where a file is", call: "linkat to look", row: RowNames, try: tells(unix.EEXIST, func(t target) error {
		return unix.Linkat(at, t.mine(), at, t.File, 0)
	})},
	{name: "make a file where one is", call: "openat to look", row: RowNames, try: tells(unix.EEXIST, func(t target) error {
		fd, err := unix.Openat(at, t.File, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
		return closed(fd, err)
	})},
	{name: "open a file as a folder", call: "openat to look", row: RowNames, try: tells(unix.ENOTDIR, func(t target) error {
		fd, err := unix.Openat(at, t.File, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		return closed(fd, err)
	})},
	{name: "open a link as a file", call: "openat to look", row: RowNames, try: tells(unix.ELOOP, func(t target) error {
		fd, err := unix.Openat(at, t.Dir+"/link", unix.O_RDONLY|unix.O_NOFOLLOW, 0)
		return closed(fd, err)
	})},
	{name: "move a file where one is", call: "renameat2 to look", row: RowNames, try: tells(unix.EEXIST, func(t target) error {
		return unix.Renameat2(at, t.mine(), at, t.File, unix.RENAME_NOREPLACE)
	})},
	{name: "remove a folder that is not empty", call: "unlinkat to look", row: RowNames, try: tells(unix.ENOTEMPTY, func(t target) error {
		return unix.Unlinkat(at, t.Dir, unix.AT_REMOVEDIR)
	})},
	{name: "remove a file as a folder", call: "unlinkat to look", row: RowNames, try: tells(unix.ENOTDIR, func(t target) error {
		return unix.Unlinkat(at, t.File, unix.AT_REMOVEDIR)
	})},
	{name: "remove a folder as a file", call: "unlinkat to look", row: RowNames, try: tells(unix.EISDIR, func(t target) error {
		return unix.Unlinkat(at, t.Dir, 0)
	})},
	{name: "go to a file", call: "chdir to look", row: RowNames, try: tells(unix.ENOTDIR, func(t target) error { return unix.Chdir(t.File) })},
	{
		name: "a file as the root", call: "chroot to look", row: RowNames,
		twin: tells(unix.ENOTDIR, func(t target) error { return unix.Chdir(t.File) }),
		try:  tells(unix.ENOTDIR, func(t target) error { return unix.Chroot(t.File) }),
	},
	{name: "look below a file", call: "newfstatat to look", row: RowNames, try: tells(unix.ENOTDIR, func(t target) error {
		return unix.Fstatat(at, t.File+"/x", &unix.Stat_t{}, 0)
	})},
	{name: "read a file as a link", call: "readlinkat to look", row: RowNames, try: tells(unix.EINVAL, func(t target) error {
		_, err := unix.Readlinkat(at, t.File, room())
		return err
	})},
	{name: "cut a folder off", call: "truncate to look", row: RowNames, try: tells(unix.EISDIR, func(t target) error { return unix.Truncate(t.Dir, 0) })},
	{name: "run what is no program", call: "execve to look", row: RowNames, try: tells(unix.EACCES, func(t target) error {
		return sys(unix.SYS_EXECVE, t.File, 0, 0)
	})},
	{
		name: "load a secret as a library", call: "the dynamic loader", row: RowNames,
		try: script(`LD_PRELOAD="$1" /bin/true > said 2>&1 || true; grep -q -e 'file too short' -e 'invalid ELF header' said`),
	},
}

// starterPath is a path below the folder of the process that started the program.
func starterPath(t target, name string) string {
	t.Keeper.PID = t.Parent
	return t.proc(name)
}
