package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Replace puts content in a file's place. After a crash the file has its old content or the new one.
func Replace(path string, content []byte, mode fs.FileMode) error {
	return replace(path, content, mode, (*os.File).Sync)
}

// ReplaceUnsynced is Replace for a file that is written again after a crash: then it may have neither content.
func ReplaceUnsynced(path string, content []byte, mode fs.FileMode) error {
	return replace(path, content, mode, func(*os.File) error { return nil })
}

func replace(path string, content []byte, mode fs.FileMode, sync func(*os.File) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode), sync(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// ReplaceIn is ReplaceUnsynced below a folder into which other programs write, for a file with one writer. No link leads it out of the
// folder, and a link that has the file's name is replaced. Missing folders are created.
func ReplaceIn(root *os.Root, name string, content io.Reader, mode, folder fs.FileMode) (bytes int64, err error) {
	if err := root.MkdirAll(filepath.Dir(name), folder); err != nil {
		return 0, err
	}
	beside := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"-new")
	if err := root.RemoveAll(beside); err != nil { // of a writer that was ended
		return 0, err
	}
	file, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(beside)
		}
	}()
	bytes, err = io.Copy(file, content)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return 0, err
	}
	return bytes, root.Rename(beside, name)
}

// Replacing tells from a file's name which file it is about to replace.
func Replacing(name string) (target string, is bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 2 || name[0] != '.' || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return "", false
	}
	return name[1:i], true
}

// LoadJSON reads a file of Fairlead's own. If there is none, v stays as it is.
func LoadJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// StoreJSON writes a file of Fairlead's own with Replace. Only this user can read it.
func StoreJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Replace(path, append(text, '\n'), 0o600)
}

// Capped keeps the beginning of what a program prints, and takes the rest without keeping it, so that the program can
// end. It embeds no buffer: io.Copy would fill that past the limit through its method ReadFrom.
type Capped struct {
	Max int  // bytes that are kept
	Cut bool // there was more

	kept bytes.Buffer
}

// Write keeps what fits.
func (c *Capped) Write(b []byte) (int, error) {
	fits := b[:min(len(b), max(0, c.Max-c.kept.Len()))]
	c.Cut = c.Cut || len(fits) < len(b)
	c.kept.Write(fits)
	return len(b), nil
}

// Bytes returns what was kept.
func (c *Capped) Bytes() []byte { return c.kept.Bytes() }

// String returns what was kept.
func (c *Capped) String() string { return c.kept.String() }

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
