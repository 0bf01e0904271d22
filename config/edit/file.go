package edit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const bytesMax = 1 << 20 // the limit of config.Load

// Changed says that the file is not the one that a change was made for.
type Changed struct{}

func (*Changed) Error() string {
	return "fairlead.yaml was changed meanwhile, so nothing was written; look at the change again as it would be now"
}

// Read returns the text of the file in a folder, and its sum for Write.
func Read(dir string) ([]byte, file.Sum, error) {
	path := filepath.Join(dir, config.FileName)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("there is no %s in %s; `fairlead init` writes one: %w", config.FileName, dir, err)
	case err != nil:
		return nil, "", fmt.Errorf("read %s: %w", config.FileName, err)
	case info.Size() > bytesMax:
		return nil, "", byHand("the file is larger than 1 MiB")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", config.FileName, err)
	}
	return b, file.SumOf(b), nil
}

// MayWrite says why Write would not replace the file; nil: it would.
func MayWrite(dir string) error {
	path := filepath.Join(dir, config.FileName)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at %s: %w", config.FileName, err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		return byHand("fairlead.yaml is a symbolic link to %q, which is not replaced", target)
	case !info.Mode().IsRegular():
		return byHand("fairlead.yaml is not a regular file")
	case info.Mode().Perm()&0o200 == 0:
		return &Refused{Why: fmt.Sprintf("fairlead.yaml is read-only (mode %#o); `chmod u+w fairlead.yaml` allows changes", info.Mode().Perm())}
	}
	return nil
}

// Write replaces the file in a folder, if its text still has the sum. The new file has the mode of the old one.
func Write(dir string, b []byte, sum file.Sum) error {
	if err := MayWrite(dir); err != nil {
		return err
	}
	if len(b) > bytesMax {
		return byHand("the file would be larger than 1 MiB")
	}
	path := filepath.Join(dir, config.FileName)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at %s: %w", config.FileName, err)
	}
	part, err := os.CreateTemp(dir, ".fairlead.yaml-")
	if err != nil {
		return fmt.Errorf("make a file beside %s; the folder must be writable: %w", config.FileName, err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // the old text, or a part of the new one
	_, err = part.Write(b)
	err = errors.Join(err, part.Chmod(info.Mode().Perm()))
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("write %s: %w", config.FileName, err)
	}
	if _, now, err := Read(dir); err != nil || now != sum {
		return errors.Join(err, &Changed{})
	}
	return swap(dir, filepath.Base(part.Name()), sum)
}

// swap puts a file in place of fairlead.yaml and looks at what it replaced, because another program may have written
// since the sum was compared. Its text comes back then.
func swap(dir, part string, sum file.Sum) error {
	folder, _, err := file.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer file.CloseFolder(folder)
	switch err := file.Exchange(folder, part, config.FileName); {
	case file.Unsupported(err): // the comparison before has to do
		err = os.Rename(filepath.Join(dir, part), filepath.Join(dir, config.FileName))
		return errors.Join(err, file.SyncFolder(folder))
	case err != nil:
		return fmt.Errorf("replace %s: %w", config.FileName, err)
	}
	replaced, err := os.ReadFile(filepath.Join(dir, part))
	if err == nil && file.SumOf(replaced) != sum {
		err = &Changed{}
	}
	if err != nil {
		return errors.Join(err, file.Exchange(folder, part, config.FileName))
	}
	return file.SyncFolder(folder)
}
