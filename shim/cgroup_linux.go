package shim

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// makeCgroup creates a cgroup (version 2) for one agent below this process's own, if permitted. It
// returns "" if cgroups are missing or not delegated; everything works without them.
func makeCgroup(name string) string {
	mount, own := cgroupMount(), ownCgroup()
	if mount == "" || own == "" {
		return ""
	}
	path := filepath.Join(mount, own, "fairlead-"+name)
	if err := os.Mkdir(path, 0o755); err != nil {
		return ""
	}
	// Without cgroup.kill (Linux 5.14) it would only be one more thing to clean up.
	if unix.Access(filepath.Join(path, "cgroup.kill"), unix.W_OK) != nil {
		os.Remove(path)
		return ""
	}
	return path
}

func cgroupMount() string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		if fields := strings.Fields(before); ok && len(fields) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			return fields[4]
		}
	}
	return ""
}

func ownCgroup() string {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// intoCgroup makes the child start in the cgroup; done must be called after the fork.
func intoCgroup(attr *syscall.SysProcAttr, path string) (done func(), ok bool) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}, false
	}
	attr.UseCgroupFD, attr.CgroupFD = true, fd
	return func() { unix.Close(fd) }, true
}

// killCgroup ends all processes in the cgroup at once, even if they keep forking.
func killCgroup(path string) {
	if isOurCgroup(path) {
		_ = os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0) // gone: then nothing is in it
	}
}

// removeCgroup removes the cgroup and its subgroups. The kernel takes a moment to release the last
// process.
func removeCgroup(path string) {
	if !isOurCgroup(path) {
		return
	}
	for pause := time.Millisecond; pause < 100*time.Millisecond; pause *= 2 {
		var below []string
		_ = filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, p)
			}
			return nil
		})
		for i := len(below) - 1; i >= 0; i-- {
			_ = unix.Rmdir(below[i])
		}
		if _, err := os.Stat(path); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

// isOurCgroup checks the path, so that a damaged record cannot name another program's cgroup.
func isOurCgroup(path string) bool {
	mount := cgroupMount()
	return path != "" && mount != "" && strings.HasPrefix(path, mount+"/") &&
		strings.HasPrefix(filepath.Base(path), "fairlead-") && filepath.Clean(path) == path
}

func leaveCgroup(attr *syscall.SysProcAttr) { attr.UseCgroupFD = false }
