package removal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTree is the table of what a program may have left, and what stays: what links lead to.
func TestTree(t *testing.T) {
	for name, leave := range map[string]func(dir string) error{
		"nothing": func(string) error { return nil },
		"a file":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600) },
		"a link":  func(dir string) error { return os.Symlink("../kept", filepath.Join(dir, "link")) },
		"a link inside": func(dir string) error {
			return asked(os.MkdirAll(dir+"/a/b", 0o700), os.Symlink("../../../kept", dir+"/a/b/link"))
		},
		"a pipe": func(dir string) error { return syscall.Mkfifo(dir+"/pipe", 0o600) },
		"more folders in each other than may be open": func(dir string) error {
			return asked(os.MkdirAll(dir+strings.Repeat("/d", 1000), 0o700),
				os.WriteFile(dir+strings.Repeat("/d", 1000)+"/file", nil, 0o600))
		},
		"folders without rights": func(dir string) error {
			return asked(os.MkdirAll(dir+"/a/b/c", 0o700), os.WriteFile(dir+"/a/b/file", nil, 0), os.Chmod(dir+"/a/b/c", 0),
				os.Chmod(dir+"/a/b", 0), os.Chmod(dir+"/a", 0o500), os.Chmod(dir, 0))
		},
		"many names": func(dir string) error {
			for i := range 2*removedAtOnce + 1 {
				if err := os.MkdirAll(fmt.Sprintf("%s/a/%d", dir, i), 0o700); err != nil {
					return err
				}
			}
			return nil
		},
		"a name of no text": func(dir string) error { return os.MkdirAll(dir+"/\xff\n/\xfe", 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir, kept := filepath.Join(base, "dir"), filepath.Join(base, "kept")
			if err := asked(os.Mkdir(dir, 0o700), os.Mkdir(kept, 0o700), os.WriteFile(kept+"/file", nil, 0o400), leave(dir)); err != nil {
				t.Fatal(err)
			}
			const few = 64
			var was syscall.Rlimit
			if err := asked(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was),
				syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: few, Max: was.Max})); err != nil {
				t.Fatal(err)
			}
			err := Tree(dir)
			if err := asked(err, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)); err != nil {
				t.Error(err)
			}
			left, _ := os.ReadDir(base)
			if len(left) != 1 {
				t.Errorf("left are %v", left)
				_ = os.RemoveAll(dir)
			}
			if info, err := os.Stat(kept + "/file"); err != nil || info.Mode() != 0o400 {
				t.Errorf("what a link leads to is %v, %v", info, err)
			}
			if err := Tree(dir); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
	if err := Tree("/proc/self/status/x"); err == nil {
		t.Error("below a file, there was something to remove")
	}
}

// asked is the first error.
func asked(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
