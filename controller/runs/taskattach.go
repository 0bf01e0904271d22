package runs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	attachedMax      = 10        // files with a task
	attachedBytesMax = 256 << 10 // of one of them
	attachedNameMax  = 100
)

// attach writes the files that were given with a task into its run's folder. It returns what the agent is told
// about them.
func attach(t task.Task, files []view.TaskAttachment) (told string, err error) {
	if len(files) == 0 {
		return "", nil
	}
	if len(files) > attachedMax {
		return "", fmt.Errorf("%d files are attached; at most %d may be", len(files), attachedMax)
	}
	dir := filepath.Join(t.Run, task.AttachmentsName)
	if err := os.MkdirAll(dir, DirMode); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\nFiles that belong to the task:\n")
	for _, f := range files {
		if err := attachable(f); err != nil {
			return "", err
		}
		path := filepath.Join(dir, f.Name)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("two attached files are called %q", f.Name)
		} else if err != nil {
			return "", err
		}
		_, err = file.WriteString(f.Text)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "- %s\n", path)
	}
	return b.String(), nil
}

// attachable says why a file cannot be attached.
func attachable(f view.TaskAttachment) error {
	odd := func(c rune) bool { return c < ' ' || c == 0x7f || c == '/' || c == '\\' }
	switch {
	case f.Name == "" || len(f.Name) > attachedNameMax || f.Name[0] == '.' || strings.ContainsFunc(f.Name, odd):
		return fmt.Errorf("the name of an attached file has 1 to %d bytes, no slash, no control character, and does not begin with a dot", attachedNameMax)
	case len(f.Text) > attachedBytesMax:
		return fmt.Errorf("%s is larger than %d KiB; put it into the repository, or name its path in the text", f.Name, attachedBytesMax>>10)
	case strings.ContainsRune(f.Text, 0):
		return fmt.Errorf("%s is not a text file; only text can be attached", f.Name)
	}
	return nil
}
