package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
