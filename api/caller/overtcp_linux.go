package caller

import (
	"bufio"
	"encoding/hex"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/process/shim"
)

// seen identifies the processes that have the other end of the connection open, and their sessions.
// If the other end is not on this machine or belongs to another user, the caller is not one of our
// agents. If its process cannot be found, the caller is unknown: the connection was passed on, or
// the process has ended or hides.
func (v *viaTCP) seen() Caller {
	inode, uid, found := v.otherEnd()
	if !found || uid != os.Getuid() && os.Getuid() != 0 {
		return Caller{}
	}
	is := Caller{Unseen: true}
	if inode == 0 { // the connection is being closed
		return is
	}
	link := "socket:[" + strconv.FormatUint(inode, 10) + "]"
	for _, pid := range processes() {
		if !holdsOpen(pid, link) {
			continue
		}
		switch from := shim.Caller(v.dir, pid); {
		case from.Session != "" || from.Foreign != "":
			return Caller(from)
		case !from.Unseen:
			is = Caller(from)
		}
	}
	return is
}

// otherEnd finds the other end of the connection in the system's tables.
func (v *viaTCP) otherEnd() (inode uint64, uid int, found bool) {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // a system without IPv6
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() && !found {
			inode, uid, found = v.line(lines.Text())
		}
		_ = file.Close()
		if found {
			return inode, uid, true
		}
	}
	return 0, 0, false
}

// line parses one connection: number, local address, remote address, state, queues, timers,
// retransmissions, user, timeout, inode.
func (v *viaTCP) line(text string) (inode uint64, uid int, ours bool) {
	field := strings.Fields(text)
	if len(field) < 10 || kernelAddr(field[1]) != v.client || kernelAddr(field[2]) != v.server {
		return 0, 0, false
	}
	inode, err := strconv.ParseUint(field[9], 10, 64)
	uid, fault := strconv.Atoi(field[7])
	return inode, uid, err == nil && fault == nil
}

// kernelAddr parses an address as the kernel prints it: 0100007F:1D2A, with the bytes of each 32-bit
// word reversed. Other text gives the zero address.
func kernelAddr(text string) netip.AddrPort {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, fault := strconv.ParseUint(port, 16, 16)
	if err != nil || fault != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	addr, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}

func processes() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return append(pids, os.Getpid()) // the server connects to itself only in tests
}

// holdsOpen reports whether a process has this file open.
func holdsOpen(pid int, link string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	open, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(open, func(fd fs.DirEntry) bool {
		to, err := os.Readlink(dir + "/" + fd.Name())
		return err == nil && to == link
	})
}
