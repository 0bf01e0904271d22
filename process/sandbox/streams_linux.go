package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// terminalAt is where the program's terminal is in a view, whose other terminals are its own: a program that asks for the name of
// its terminal finds it there.
const terminalAt = "/dev/console"

// terminal is the path outside of the terminal that the program gets as a standard stream; empty: it gets none.
func terminal() string {
	for fd := range 3 {
		at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if _, ask := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil || ask != nil {
			continue
		}
		var held, named unix.Stat_t
		if unix.Fstat(fd, &held) == nil && unix.Lstat(at, &named) == nil && held.Dev == named.Dev && held.Ino == named.Ino {
			return at
		}
	}
	return ""
}

// giveStreams gives a program that runs as another user its standard streams, which it may open anew (/dev/stdout): pipes without a
// name, and the terminal of this session. A terminal of another session, and files, stay as they are.
func giveStreams(who owner) {
	for fd := range 3 {
		var fs unix.Statfs_t
		pipe := unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PIPEFS_MAGIC
		leader, err := unix.IoctlGetInt(fd, unix.TIOCGSID)
		if pipe || err == nil && leader == os.Getpid() {
			_ = unix.Fchown(fd, who.uid, who.gid) // at worst the program cannot open it anew
		}
	}
}
