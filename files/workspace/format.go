package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// format is the number of the folder's layout, and of all files in it that have no number of their own.
const format = "1"

// checkFormat refuses a folder of another format, and writes the number into a new one. The caller has the lock.
func (w *Workspace) checkFormat() error {
	path := w.Path("format")
	text, err := os.ReadFile(path)
	found := strings.TrimSuffix(string(text), "\n")
	switch {
	case err == nil && found == format:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if found = w.filled(); found == "" {
			return file.Replace(path, []byte(format+"\n"), 0o600)
		}
		found = "no number (it has " + found + ")"
	case err != nil:
		return fmt.Errorf("read the format of fairlead's state: %w", err)
	}
	return fmt.Errorf("%s was written by a development version of Fairlead or a later one: its format is %.40s, and this version reads only %s; "+
		"move the folder away and run the command again, which begins a new history, or run the version that wrote it", w.Path(), found,
		format)
}

// filled names a part that a folder has in which Fairlead has worked; empty: none is there. A journal alone is not enough:
// it has a number of its own, and a person may have restored it.
func (w *Workspace) filled() string {
	for _, name := range []string{"sessions", "cluster"} {
		if _, err := os.Lstat(w.Path(name)); err == nil {
			return name
		}
	}
	return ""
}
