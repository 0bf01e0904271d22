package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// DiskUse is how much disk a folder takes. Files that go away meanwhile do not count, and a file with several names
// counts once.
func DiskUse(ctx context.Context, dir string) (bytes int64, err error) {
	const blockBytes = 512 // of Stat_t.Blocks, on all systems
	type file struct {
		device, inode uint64
	}
	linked := map[file]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrPermission) && d != nil && d.IsDir():
			return fs.SkipDir
		case err != nil:
			return err
		}
		is, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			bytes += info.Size()
			return nil
		}
		if is.Nlink > 1 && !d.IsDir() {
			id := file{uint64(is.Dev), is.Ino} //nolint:unconvert,gosec // another type on macOS
			if linked[id] {
				return nil
			}
			linked[id] = true
		}
		bytes += is.Blocks * blockBytes
		return nil
	})
	return bytes, err
}

// Size writes a number of bytes for people, such as 12.3 MB.
func Size(bytes int64) string {
	if bytes >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
