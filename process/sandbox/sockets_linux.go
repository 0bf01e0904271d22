package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	listedBytesMax = 8 << 20 // of /proc/net/unix: some 100,000 sockets
	coveredMax     = 1024    // sockets that are covered: each is a mount
	processesMax   = 4096    // that are asked where they work, for a socket with a relative path
	beginsMax      = 16      // links of processes at which such paths begin: each costs a look at every process
	wordsBefore    = 7       // the words of a line before the path
)

// live are the sockets outside that programs listen at, as the view would show them.
type live struct {
	paths []string
	whole bool // none was left out, and each is covered
}

// liveSockets finds the sockets that are bound in the caller's network namespace and lie in a place of the view, by the kernel's list of
// them: no folder is walked. It needs the /proc of outside.
func (v View) liveSockets() (found live) {
	text, err := readMost(v.callersSockets(), listedBytesMax)
	if found.whole = err == nil && len(text) < listedBytesMax; err != nil {
		return found
	}
	folders := map[string]string{}  // what they resolve to
	begins := map[string][]string{} // where relative paths may begin, by the link of a process that leads there
	for name := range boundNames(text) {
		whole := wholePaths(name, begins)
		if found.whole = found.whole && len(begins) <= beginsMax; !found.whole {
			return found
		}
		for _, p := range whole {
			dir, is := folders[filepath.Dir(p)]
			if !is {
				dir, _ = filepath.EvalSymlinks(filepath.Dir(p)) // empty: it is gone
				folders[filepath.Dir(p)] = dir
			}
			at := filepath.Join(dir, filepath.Base(p))
			shown := v.shownAt(at)
			if dir == "" || len(shown) == 0 {
				continue
			}
			if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSocket != 0 {
				found.paths = append(found.paths, shown...)
			}
		}
	}
	slices.Sort(found.paths)
	found.paths = slices.Compact(found.paths)
	return found
}

// shownAt returns the paths at which the view may have a file of the machine. The sockets that the view opens are left out.
func (v View) shownAt(real string) (paths []string) {
	add := func(at, from string) {
		if !below(real, from) {
			return
		}
		if p := at + real[len(from):]; !slices.Contains(v.Sockets, p) {
			paths = append(paths, p)
		}
	}
	for _, dir := range systemFolders {
		add(dir, dir)
	}
	for _, p := range v.Places {
		add(p.Path, cmp.Or(p.From, p.Path))
	}
	return paths
}

// boundNames are the paths in a list of the kernel's, each once. A path may have spaces and line ends.
func boundNames(text []byte) map[string]bool {
	names, last := map[string]bool{}, ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for first := true; lines.Scan(); first = false {
		words := bytes.Fields(lines.Bytes())
		switch {
		case first: // the heading
		case len(words) < wordsBefore || !bytes.HasSuffix(words[0], []byte(":")):
			delete(names, last)
			last += "\n" + lines.Text()
			names[last] = true
		case len(words) == wordsBefore:
			last = ""
		default:
			_, last, _ = strings.Cut(lines.Text(), " "+string(words[wordsBefore-1])+" ")
			names[last] = true
		}
	}
	for name := range names {
		if name == "" || name[0] == '@' { // abstract: Landlock holds these
			delete(names, name)
		}
	}
	return names
}

// wholePaths are the paths that a name can mean. A relative one begins where some process works, and one below /proc/self at what some
// process has open: programs use these because a socket's path is short.
func wholePaths(name string, begins map[string][]string) (paths []string) {
	own, isOwn := strings.CutPrefix(filepath.Dir(name), "/proc/self/")
	switch {
	case !filepath.IsAbs(name):
		own = "cwd"
	case isOwn:
		name = filepath.Base(name)
	default:
		return []string{name}
	}
	dirs, known := begins[own]
	if !known {
		processes, _ := os.ReadDir("/proc")
		for _, p := range processes[:min(len(processes), processesMax)] {
			dir, err := os.Readlink(filepath.Join("/proc", p.Name(), own))
			if err == nil && filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
		slices.Sort(dirs)
		dirs = slices.Compact(dirs)
		begins[own] = dirs
	}
	for _, dir := range dirs {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// cover hides live sockets in the places of the view: connecting works through a read-only mount, so each gets a mount of
// /dev/null over it. The self-test tries each.
func (m *mounter) cover() {
	null, err := unix.Openat(m.root, "dev/null", unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil || len(m.live.paths) > coveredMax {
		m.live.whole = false
		return
	}
	defer unix.Close(null)
	for _, p := range m.live.paths {
		at, err := unix.Openat2(m.root, p[1:],
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: noLinks | unix.RESOLVE_BENEATH})
		if err != nil {
			continue // it is hidden
		}
		var st unix.Stat_t
		if unix.Fstat(at, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK && m.over(null, at, 0, 0) != nil {
			m.live.whole = false
		}
		unix.Close(at)
	}
}

// abstractCanaries listens at abstract sockets of this process, before it has any restriction: like those of outside, the program must
// not reach them. The kernel chooses their names.
func abstractCanaries() (names []string, end func()) {
	var fds []int
	end = func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	for _, kind := range socketKinds {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			continue // then there are none here
		}
		fds = append(fds, fd)
		if unix.Bind(fd, &unix.SockaddrUnix{}) != nil || kind != unix.SOCK_DGRAM && unix.Listen(fd, 1) != nil {
			continue
		}
		if name, err := unix.Getsockname(fd); err == nil {
			if at, is := name.(*unix.SockaddrUnix); is {
				names = append(names, at.Name)
			}
		}
	}
	return names, end
}

func readMost(p string, most int64) ([]byte, error) {
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
