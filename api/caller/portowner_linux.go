package caller

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
)

const listening = "0A" // the state of a listening socket in the kernel's tables

// PortOwner describes the process of this user that listens on an address, and the folder that it works in; empty if
// it is not found.
func PortOwner(addr string) string {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return ""
	}
	inode := listenerOn(at.Port)
	if inode == "" {
		return ""
	}
	for _, pid := range processes() {
		if !holdsOpen(pid, "socket:["+inode+"]") {
			continue
		}
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		name, _ := os.ReadFile(filepath.Join(proc, "comm"))
		dir, _ := os.Readlink(filepath.Join(proc, "cwd"))
		words, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if given := flagValue(strings.Split(string(words), "\x00"), "--dir"); filepath.IsAbs(given) {
			dir = given
		}
		return fmt.Sprintf("process %d (%s) in %s", pid, api.Shorten(strings.TrimSpace(string(name))), api.Shorten(dir))
	}
	return ""
}

// listenerOn returns the number of the socket that listens on a port; empty: none is known.
func listenerOn(port int) string {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // a system without IPv6
		}
		inode := ""
		for lines := bufio.NewScanner(file); lines.Scan() && inode == ""; {
			if field := strings.Fields(lines.Text()); len(field) > 9 && field[3] == listening && int(kernelAddr(field[1]).Port()) == port {
				inode = field[9]
			}
		}
		_ = file.Close()
		if inode != "" {
			return inode
		}
	}
	return ""
}

// flagValue returns the value of a flag on a command line.
func flagValue(words []string, flag string) string {
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			return value
		}
		if word == flag && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}
