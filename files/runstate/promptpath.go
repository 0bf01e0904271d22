package runstate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// promptBytesMax bounds one prompt: more than any model reads at once.
const promptBytesMax = 4 << 20

// PromptPlaces are the folders that are searched for prompts (SPEC Workflow, "Prompts resolve").
type PromptPlaces struct {
	Repo   string // absolute: the repository that the run works on
	Beside string // absolute: the workflow's folder; empty: the repository
}

// PromptFault says why a prompt cannot be used.
type PromptFault struct {
	Text string // what is wrong and how to correct it
}

func (f *PromptFault) Error() string { return f.Text }

// inRun is a file of a run's folder without the folder of the repository: .agents/runs/RUN/NAME. Empty: it is another one.
func inRun(path string) string {
	parts := strings.Split(path, string(filepath.Separator))
	if n := len(parts) - 4; n >= 0 && parts[n] == ".agents" && parts[n+1] == "runs" {
		return filepath.Join(parts[n:]...)
	}
	return ""
}

// Find returns the file for a prompt's name. An absolute path is used as it is, but one in the run's folder is in that of the machine
// that leads now, if the workflow is. Otherwise it is the first
// that exists of <repo>/.agents/prompts/<name>, the same without the folders of the name (so that a
// repository can override it, as in the seed's tool), the workflow's folder, and the repository. Such a file
// must be inside the repository or the workflow's folder after links are resolved, so that an untrusted
// workflow cannot read other files. The path is absolute with its links unresolved. The error is a
// *PromptFault.
func (p PromptPlaces) Find(written string) (string, error) {
	fault := func(format string, args ...any) error {
		return &PromptFault{fmt.Sprintf(format, args...)}
	}
	switch {
	case written == "":
		return "", fault("no prompt is named")
	case strings.ContainsRune(written, 0):
		return "", fault("the path holds a zero byte")
	case filepath.IsAbs(written):
		if of := inRun(written); of != "" && of == inRun(filepath.Join(p.Beside, filepath.Base(written))) {
			written = filepath.Join(p.Beside, filepath.Base(written))
		}
		if err := usable(written); err != nil {
			return "", fault("%s %v", written, err)
		}
		return filepath.Clean(written), nil
	}
	beside := cmp.Or(p.Beside, p.Repo)
	var looked []string
	for _, path := range []string{
		filepath.Join(p.Repo, ".agents", "prompts", written), filepath.Join(p.Repo, ".agents", "prompts", filepath.Base(written)),
		filepath.Join(beside, written), filepath.Join(p.Repo, written),
	} {
		err := usable(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if filepath.IsLocal(written) {
				looked = append(looked, p.shown(path))
			}
			continue
		case err != nil:
			return "", fault("%s %v", p.shown(path), err)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", fault("%s cannot be followed to its end: %v", p.shown(path), plainError(err))
		}
		if !within(p.Repo, real) && !within(beside, real) {
			return "", fault("%s is outside of the repository; put the file into it, or write the path absolutely", written)
		}
		return path, nil
	}
	if len(looked) == 0 {
		return "", fault("there is no file %s, and it would be outside of the repository; put it into .agents/prompts, or write the path absolutely", written)
	}
	return "", fault("there is no file %s; put it at %s", written, strings.Join(slices.Compact(looked), ", or at "))
}

// shown returns a path for messages: relative to the repository if it is inside.
func (p PromptPlaces) shown(path string) string {
	if rel, err := filepath.Rel(p.Repo, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// within reports whether a resolved path is inside a folder.
func within(folder, real string) bool {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, real)
	return err == nil && filepath.IsLocal(rel)
}

// usable returns why a file cannot be read as a prompt. A missing file gives fs.ErrNotExist.
func usable(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fs.ErrNotExist
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case err != nil:
		return fmt.Errorf("cannot be looked at: %w", plainError(err))
	case !st.Mode().IsRegular():
		return errors.New("is no plain file")
	case st.Size() > promptBytesMax:
		return fmt.Errorf("has %d bytes, %d at most; shorten it", st.Size(), promptBytesMax)
	}
	return nil
}

// plainError returns the reason without the operation and the path, which the message names already.
func plainError(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
