package task

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// full does a step while nothing fits on the disk.
func (p *play) full(t *tasked, name string) outcome {
	filler := filepath.Join(p.dir, "filler")
	file, err := os.Create(filler)
	if err != nil {
		p.Fatal(err)
	}
	defer os.Remove(filler)
	defer file.Close()
	defer func() { _ = file.Truncate(0) }() // a process that is about to begin may still hold the file
	for size := 1 << 20; size > 0; size /= 4 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	return doStep(p.Context(), t.Task, name)
}

// repair is what a person does after a crash: git's own messages say which lock is left, and a checkout that was
// clean is made clean again.
func (p *play) repair(files map[string]string, dirty bool) {
	_ = filepath.WalkDir(filepath.Join(p.repo, ".git"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".lock") && !strings.Contains(path, "/fairlead/landing") {
			p.note("  left: %s", path)
			return os.Remove(path)
		}
		return nil
	})
	if now, half := p.loose(); !dirty {
		if half {
			p.note("  the checkout was left half moved")
			p.git("reset", "--hard", "--quiet")
		}
		for name := range now {
			if _, before := files[name]; !before {
				_ = os.Remove(filepath.Join(p.repo, name))
			}
		}
	}
}
