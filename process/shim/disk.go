package shim

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"golang.org/x/sys/unix"
)

const (
	diskEvery    = 5 * time.Second
	diskSeldom   = time.Minute // a neighbour on the same file system may delete as much as the session writes
	diskShare    = 20          // of the time, one part goes into walks at most: a large folder is looked at less often
	diskFilesMax = 5_000_000   // a walk of half a minute; what is beyond is not counted
)

// disk measures by how much the folders have grown that a session can write. It adds up blocks, so that what others delete or
// write elsewhere on the same file system does not count, and walks only when that file system has become fuller.
type disk struct {
	folders []string
	before  int64 // blocks of the files that were there
	walked  time.Time
	took    time.Duration
	used    int64 // of their file systems, when they were walked
	grown   int64
}

func newDisk(folders []string) disk { return disk{folders: folders} }

// writable are the folders in which a launch can write to a disk, without those inside of others.
func writable(l *Spec) []string {
	all := []string{l.Launch.Dir}
	if v := l.Launch.View; v != nil {
		all = []string{v.Home, v.Temp}
		for _, p := range v.Places {
			switch {
			case p.Access == sandbox.Overlay:
				all = append(all, p.Upper)
			case p.Access == sandbox.Write && p.From != "":
				all = append(all, p.From)
			case p.Access == sandbox.Write:
				all = append(all, p.Path)
			}
		}
	}
	slices.Sort(all)
	var outer []string
	for _, p := range slices.Compact(all) {
		inside := func(of string) bool { return strings.HasPrefix(p, of+"/") }
		if p != "" && !slices.ContainsFunc(outer, inside) {
			outer = append(outer, p)
		}
	}
	return outer
}

// begin measures what was there before the session. A file that has changed since is the session's.
func (d *disk) begin(started time.Time, stop func() bool) {
	began := time.Now()
	d.used = d.filled()
	d.before = d.blocks(started, stop)
	d.walked, d.took = time.Now(), time.Since(began)
}

// due reports whether the folders may have grown to the limit since the last walk.
func (d *disk) due(limit int64, now time.Time) bool {
	since := now.Sub(d.walked)
	if since < diskShare*d.took {
		return false
	}
	return since >= diskSeldom || d.filled()-d.used > max(0, limit-d.grown)/8
}

// walk returns by how much the folders have grown.
func (d *disk) walk(stop func() bool) int64 {
	began := time.Now()
	d.used = d.filled()
	d.grown = max(0, d.blocks(time.Time{}, stop)-d.before)
	d.walked, d.took = time.Now(), time.Since(began)
	return d.grown
}

// filled is how much is in use of the file systems of the folders.
func (d *disk) filled() (bytes int64) {
	seen := map[unix.Fsid]bool{}
	for _, p := range d.folders {
		var st unix.Statfs_t
		if unix.Statfs(p, &st) != nil || seen[st.Fsid] {
			continue
		}
		seen[st.Fsid] = true
		bytes += int64(st.Blocks-st.Bfree) * int64(st.Bsize)
	}
	return bytes
}

// blocks adds up what the files take that have not changed since a time; zero: all. A file with several names counts in parts. What
// cannot be looked at does not count.
func (d *disk) blocks(before time.Time, stop func() bool) (bytes int64) {
	left := diskFilesMax
	for _, folder := range d.folders {
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if left--; left < 0 || left%1024 == 0 && stop() {
				return fs.SkipAll
			}
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			info, err := entry.Info()
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			bytes += blocksOf(info, before)
			return nil
		})
	}
	return bytes
}

func blocksOf(info os.FileInfo, before time.Time) int64 {
	const block = 512 // of st_blocks, on every system
	st, is := info.Sys().(*syscall.Stat_t)
	if !is || !before.IsZero() && !changedAt(st).Before(before) {
		return 0
	}
	return st.Blocks * block / int64(max(1, min(st.Nlink, math.MaxInt16)))
}
