package runs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	attachedMax      = 10        // files with a task
	attachedBytesMax = 256 << 10 // of one of them
	attachedNameMax  = 100
	imagesBytesMax   = 8 << 20 // of all images of a task; a request has room for them
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
	images := 0
	for _, f := range files {
		if images += len(f.Image); images > imagesBytesMax {
			return "", fmt.Errorf("the images are larger than %d MiB together; attach smaller ones", imagesBytesMax>>20)
		}
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
		content := f.Image
		if len(content) == 0 {
			content = []byte(f.Text)
		}
		_, err = file.Write(content)
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
		return fmt.Errorf("the name of an attached file has 1 to %d bytes, no slash, no control character, and does not begin with a dot",
			attachedNameMax)
	case len(f.Text) > attachedBytesMax:
		return fmt.Errorf("%s is larger than %d KiB; put it into the repository, or name its path in the text", f.Name,
			attachedBytesMax>>10)
	case strings.ContainsRune(f.Text, 0):
		return fmt.Errorf("%s is not a text file; only text and images can be attached", f.Name)
	case len(f.Image) > 0 && f.Text != "":
		return fmt.Errorf("%s has a text and an image; give one of them", f.Name)
	case len(f.Image) > 0:
		if _, err := driver.ImageType(f.Image); err != nil {
			return fmt.Errorf("%s cannot be attached: it is %w", f.Name, err)
		}
	}
	return nil
}

// images are the paths of the images that belong to the prompt of a step: those of its task, if the prompt is the
// task's text.
func (f *StepFacts) images() (paths []string) {
	if f.how.Task == nil || f.Cmd.Prompt != filepath.Join(f.dir, task.PromptName) {
		return nil
	}
	for _, name := range Attached(f.dir) {
		if _, _, err := AttachedImage(f.dir, name); err == nil {
			paths = append(paths, filepath.Join(f.dir, task.AttachmentsName, name))
		}
	}
	return paths
}

// attachedHere is the prompt of a task with the paths of its files on this machine. It was written where the task began.
func attachedHere(dir, prompt string) string {
	here := filepath.Join(dir, task.AttachmentsName)
	there := string(filepath.Separator) + filepath.Join(".agents", "runs", filepath.Base(dir), task.AttachmentsName, "")
	lines := strings.Split(prompt, "\n")
	for i, line := range lines {
		if path, is := strings.CutPrefix(line, "- "); is && filepath.IsAbs(path) && strings.HasSuffix(filepath.Dir(path), there) {
			lines[i] = "- " + filepath.Join(here, filepath.Base(path))
		}
	}
	return strings.Join(lines, "\n")
}

// Attached are the names of the files that were given with the task of a run's folder, in order.
func Attached(dir string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(dir, task.AttachmentsName))
	if err != nil {
		return nil // none were given
	}
	for _, e := range entries[:min(len(entries), attachedMax)] {
		names = append(names, e.Name())
	}
	return names
}

// AttachedImage returns an image that was given with a task, and its media type. A file that is no image is
// driver.ErrNotImage.
func AttachedImage(dir, name string) (data []byte, kind string, err error) {
	path := filepath.Join(dir, task.AttachmentsName, name)
	if info, err := os.Lstat(path); err != nil {
		return nil, "", err
	} else if !info.Mode().IsRegular() { // an agent without a sandbox may have put it there
		return nil, "", driver.ErrNotImage
	}
	if data, err = sessions.ReadUpTo(path, driver.ImageBytesMax); err != nil {
		return nil, "", err
	}
	kind, err = driver.ImageType(data)
	return data, kind, err
}
