package policytest

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TreeOf describes everything below a folder, so that any change shows. The kernel sets the change time
// (ctime), and no program can set it back, so content need not be read.
func TreeOf(t testing.TB, root string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(p, &stat); err != nil {
			return fmt.Errorf("stat %s: %w", p, err)
		}
		tree[p] = fmt.Sprintf("inode %d, mode %o, %d bytes, written %d.%09d, changed %d.%09d", stat.Ino, stat.Mode, stat.Size,
			stat.Mtim.Sec, stat.Mtim.Nsec, stat.Ctim.Sec, stat.Ctim.Nsec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Differences lists what differs between two descriptions; empty: nothing.
func Differences(before, after map[string]string) string {
	var b strings.Builder
	for p, said := range after {
		if before[p] != said {
			fmt.Fprintf(&b, "\t%s: %s, was %s\n", p, said, before[p])
		}
	}
	for p := range before {
		if _, ok := after[p]; !ok {
			fmt.Fprintf(&b, "\t%s: gone\n", p)
		}
	}
	return b.String()
}
