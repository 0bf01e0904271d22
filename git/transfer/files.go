package transfer

import (
	"archive/tar"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// RunsDir is the folder below which files of runs travel.
const RunsDir = ".agents/runs"

// Limits of one archive: the reports and artifacts of a run, not what it has built.
const (
	FilesBytesMax   = 256 << 20
	FilesEntriesMax = 10_000
	filesDirsMax    = 100
)

var (
	errManyFiles  = fmt.Errorf("a run's folder has more than %d files; remove what is not needed", FilesEntriesMax)
	errLargeFiles = fmt.Errorf("a run's folder has more than %d MiB of files; remove what is not needed", FilesBytesMax>>20)
)

// Archive is a list of files that are written as a tar.
type Archive struct {
	Wrote map[string]string // by name: the content of each file that was written, as ReadFiles uses it; nil: it is not noted
	Both  map[string]string // the content that both machines had. A file that has it still is left out: the one there may be newer

	root    *os.Root
	entries []tar.Header
}

// ListFiles finds the files and folders below some folders. Each is below RunsDir; a missing one has no files. Links and
// devices are left out, and files that are about to replace others.
func ListFiles(root string, dirs []string) (a *Archive, err error) {
	if err := validDirs(dirs); err != nil {
		return nil, err
	}
	at, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = at.Close()
		}
	}()
	a = &Archive{root: at}
	var bytes int64
	for _, dir := range dirs {
		in, err := enter(a.root, dir, false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		err = fs.WalkDir(in.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && name != "." {
				return nil // it is gone meanwhile
			}
			if err != nil || name == "." || !d.IsDir() && !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return err
			}
			if target, is := file.Replacing(d.Name()); is {
				if _, err := fs.Lstat(in.FS(), path.Join(path.Dir(name), target)); err == nil {
					return nil
				}
			}
			h := tar.Header{
				Typeflag: tar.TypeDir, Name: path.Join(dir, name) + "/", Mode: 0o755, ModTime: info.ModTime(),
				Format: tar.FormatPAX,
			}
			if !d.IsDir() {
				h.Typeflag, h.Name, h.Size, h.Mode = tar.TypeReg, path.Join(dir, name), info.Size(), mode(info.Mode())
			}
			if bytes += h.Size; bytes > FilesBytesMax {
				return errLargeFiles
			}
			if a.entries = append(a.entries, h); len(a.entries) > FilesEntriesMax {
				return errManyFiles
			}
			return nil
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func mode(of fs.FileMode) int64 {
	if of&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// stamp is what a file has, as far as its content is not read.
func stamp(h *tar.Header) string { return fmt.Sprint(h.ModTime.UnixNano(), h.Size, h.Mode) }

// Since leaves out the files that had the same time and size before. The answer is what all files have now, by their names.
func (a *Archive) Since(before map[string]string) (now map[string]string) {
	now = map[string]string{}
	a.entries = slices.DeleteFunc(a.entries, func(h tar.Header) bool {
		now[h.Name] = stamp(&h)
		return h.Typeflag == tar.TypeReg && before[h.Name] == now[h.Name]
	})
	return now
}

// Close releases the folder.
func (a *Archive) Close() { _ = a.root.Close() }

// Write writes the files. One that has become shorter meanwhile is an error; one that is gone is left out.
func (a *Archive) Write(to io.Writer) error {
	out := tar.NewWriter(to)
	for _, h := range a.entries {
		if err := a.entry(out, h); err != nil {
			return err
		}
	}
	return out.Close()
}

func (a *Archive) entry(out *tar.Writer, h tar.Header) error {
	if h.Typeflag == tar.TypeDir {
		return out.WriteHeader(&h)
	}
	in, err := enter(a.root, path.Dir(h.Name), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer in.Close()
	f, err := openFile(in, path.Base(h.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if both := a.Both[h.Name]; both != "" {
		if _, err := io.CopyN(sum, f, h.Size); err != nil {
			return err
		}
		if contentOf(sum.Sum(nil), &h) == both {
			return nil
		}
		sum.Reset()
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if err := out.WriteHeader(&h); err != nil {
		return err
	}
	if _, err = io.CopyN(io.MultiWriter(out, sum), f, h.Size); err == nil && a.Wrote != nil {
		a.Wrote[h.Name] = contentOf(sum.Sum(nil), &h)
	}
	return err
}

// contentOf is what a file has, without its time: clocks differ between machines.
func contentOf(sum []byte, h *tar.Header) string {
	return fmt.Sprintf("%s %o", hex.EncodeToString(sum), mode(fs.FileMode(h.Mode))) //nolint:gosec // only a bit of it
}

// openFile opens a regular file that is no link.
func openFile(in *os.Root, name string) (*os.File, error) {
	info, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no file", name)
	}
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	if is, err := f.Stat(); err != nil || !os.SameFile(info, is) {
		return nil, errors.Join(fmt.Errorf("%q was replaced while it was opened", name), err, f.Close())
	}
	return f, nil
}

// ReadFiles writes the files of an archive below some folders, which are all below RunsDir. A file with the same content stays as
// it is; any other one is replaced as a whole. but names files that are left out. both is the content that both machines had, by name. A
// file that has it still is left out, too: the one here may be newer. both is updated, also if the answer is an error. nil: it is not
// known.
func ReadFiles(root string, dirs []string, from io.Reader, both map[string]string, but ...string) error {
	if err := validDirs(dirs); err != nil {
		return err
	}
	at, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer at.Close()
	archive := tar.NewReader(&bounded{from, FilesBytesMax + FilesEntriesMax*(4<<10)}) // a header can have any size
	left := int64(FilesBytesMax)
	there := map[string]bool{}
	for n := 0; ; n++ {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			maps.DeleteFunc(both, func(name, _ string) bool { return !there[name] })
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive of a run's files: %w", err)
		}
		if n >= FilesEntriesMax {
			return errManyFiles
		}
		if left -= h.Size; left < 0 || h.Size < 0 {
			return errLargeFiles
		}
		if there[h.Name] = true; slices.Contains(but, h.Name) {
			continue
		}
		is, err := writeEntry(at, dirs, h, archive, both[h.Name])
		if err != nil {
			return err
		}
		if both != nil && h.Typeflag == tar.TypeReg {
			both[h.Name] = is
		}
	}
}

// Put copies a file to its place below a root, and follows no link on the way. done is false if something is in the place of a folder.
func Put(root, name, from string) (done bool, err error) {
	at, err := os.OpenRoot(root)
	if err != nil {
		return false, err
	}
	defer at.Close()
	content, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return false, err
	}
	in, err := enter(at, path.Dir(name), true)
	if _, is := errors.AsType[noFolder](err); is {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer in.Close()
	_, err = write(in, path.Base(name), &tar.Header{Size: info.Size(), Mode: mode(info.Mode()), ModTime: info.ModTime()}, content, "")
	return true, err
}

// Drop removes a file of a run, and follows no link on the way. One that is missing is no error.
func Drop(root, name string) error {
	if !local(name) || !below(name, []string{RunsDir}) {
		return fmt.Errorf("%.80q is no file below %s", name, RunsDir)
	}
	at, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer at.Close()
	in, err := enter(at, path.Dir(name), false)
	if err == nil {
		defer in.Close()
		err = in.Remove(path.Base(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// bounded is a reader with an end that is an error.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.from.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, errLargeFiles
	}
	return n, err
}

// writeEntry writes one entry, as write does.
func writeEntry(at *os.Root, dirs []string, h *tar.Header, content io.Reader, but string) (is string, err error) {
	name, isDir := h.Name, h.Typeflag == tar.TypeDir
	if isDir {
		name = strings.TrimSuffix(name, "/")
	}
	if !isDir && h.Typeflag != tar.TypeReg || !local(name) || !below(name, dirs) {
		return "", fmt.Errorf("the archive of a run's files has %.80q, which is no file or folder below %q", h.Name, dirs)
	}
	if isDir {
		in, err := enter(at, name, true)
		if err != nil {
			return "", err
		}
		return "", in.Close()
	}
	in, err := enter(at, path.Dir(name), true)
	if err != nil {
		return "", err
	}
	defer in.Close()
	return write(in, path.Base(name), h, content, but)
}

// write replaces a file by the content, unless it is that already, or the content is but. The answer is the content (contentOf).
func write(in *os.Root, name string, h *tar.Header, content io.Reader, but string) (is string, err error) {
	made := ".fairlead-" + rand.Text()
	f, err := in.OpenFile(made, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	defer func() { _ = in.Remove(made) }() // it has another name by then, if all went well
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), content); err != nil {
		return "", fmt.Errorf("read the archive of a run's files: %w", err)
	}
	if is = contentOf(sum.Sum(nil), h); is == but {
		return is, nil
	}
	equal, err := sameContent(in, name, f, h)
	if err != nil || equal {
		return is, err
	}
	if !h.ModTime.IsZero() && h.ModTime.Before(time.Now()) {
		err = in.Chtimes(made, h.ModTime, h.ModTime)
	}
	if err = errors.Join(err, f.Chmod(fs.FileMode(mode(fs.FileMode(h.Mode)))), f.Sync()); err != nil { //nolint:gosec // two values
		return "", err
	}
	return is, in.Rename(made, name)
}

// sameContent reports whether there is such a file already.
func sameContent(in *os.Root, name string, f *os.File, h *tar.Header) (bool, error) {
	old, err := openFile(in, name)
	if err != nil {
		return false, nil //nolint:nilerr // a missing one, or something else: the rename says it
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil || info.Size() != h.Size || mode(info.Mode()) != mode(fs.FileMode(h.Mode)) { //nolint:gosec // only a bit of it
		return false, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	return file.SameContent(f, old)
}

// enter opens a folder below root without following any link.
func enter(root *os.Root, dir string, makes bool) (*os.Root, error) {
	in, err := root.OpenRoot(".")
	for part := range strings.SplitSeq(dir, "/") {
		if err != nil {
			return nil, err
		}
		above := in
		if makes {
			if err := above.Mkdir(part, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, errors.Join(err, above.Close())
			}
		}
		in, err = enterOne(above, part)
		_ = above.Close()
	}
	return in, err
}

// noFolder is what is in the place of a folder.
type noFolder string

func (n noFolder) Error() string {
	return fmt.Sprintf("%q is no folder, and links are not followed; move it away", string(n))
}

func enterOne(above *os.Root, name string) (*os.Root, error) {
	is, err := above.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !is.IsDir() {
		return nil, noFolder(filepath.Join(above.Name(), name))
	}
	in, err := above.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if at, err := in.Stat("."); err != nil || !os.SameFile(is, at) {
		return nil, errors.Join(fmt.Errorf("%q was replaced while it was opened", name), err, in.Close())
	}
	return in, nil
}

func local(name string) bool {
	return name != "" && !strings.ContainsRune(name, 0) && path.Clean(name) == name && filepath.IsLocal(filepath.FromSlash(name))
}

func below(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

func validDirs(dirs []string) error {
	if len(dirs) == 0 || len(dirs) > filesDirsMax {
		return fmt.Errorf("files travel of 1 to %d folders at once, and these are %d", filesDirsMax, len(dirs))
	}
	for _, dir := range dirs {
		if !local(dir) || !below(dir, []string{RunsDir}) || dir == RunsDir {
			return fmt.Errorf("%.80q is no folder below %s", dir, RunsDir)
		}
	}
	return nil
}
