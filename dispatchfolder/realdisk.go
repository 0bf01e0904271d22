package dispatchfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/policy"
)

// Disk is policy.Disk for the real file system.
type Disk struct{}

var _ policy.Disk = Disk{}

const linksMax = 40 // the kernel's limit; more is a loop

// Look follows a path to its end.
func (Disk) Look(path string) (policy.File, error) {
	real, err := resolve(path)
	if err != nil {
		return policy.File{}, err
	}
	file := policy.File{Path: real, Kind: policy.Missing}
	var st unix.Stat_t
	err = again(func() error { return unix.Lstat(real, &st) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err != nil:
		return policy.File{}, &fs.PathError{Op: "look at", Path: real, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		file.Kind = policy.Folder
	case unix.S_IFREG:
		file.Kind = policy.Regular
		file.Exec = st.Mode&0o111 != 0
		file.Links = int(st.Nlink) //nolint:unconvert // of another size on each system
		file.Script = script(real)
	case unix.S_IFLNK:
		return policy.File{}, fmt.Errorf("check %s: it was replaced by a link meanwhile", real)
	default:
		file.Kind = policy.Other
	}
	return file, nil
}

// script reports whether a regular file begins with #!. One that cannot be read counts as a script, because
// it may still be executed.
func script(path string) bool {
	in, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0) //nolint:gosec // only its first bytes are read
	if err != nil {
		return true
	}
	defer in.Close()
	var two [2]byte
	n, _ := in.ReadAt(two[:], 0)
	return string(two[:n]) == "#!"
}

// resolve follows every link of an absolute path like the kernel. A part that does not exist is kept as
// written; a ".." after it cannot be resolved.
func resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("resolve %s: the path is not absolute", path)
	}
	done := "/"
	rest := path
	links, missing := 0, false
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		switch name {
		case "", ".":
			continue
		case "..":
			if missing {
				return "", fmt.Errorf("resolve %s: %s does not exist, so its parent (..) is unknown", path, done)
			}
			done = filepath.Dir(done)
			continue
		}
		at := filepath.Join(done, name)
		if missing {
			done = at
			continue
		}
		var st unix.Stat_t
		err := again(func() error { return unix.Lstat(at, &st) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, done = true, at
			continue
		case err != nil:
			return "", &fs.PathError{Op: "follow", Path: at, Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			done = at
			continue
		}
		if links++; links > linksMax {
			return "", fmt.Errorf("resolve %s: more than %d links, or a loop", path, linksMax)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = target + "/" + rest
	}
	return done, nil
}
