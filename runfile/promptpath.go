package runfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// promptBytesMax is of one prompt: more than any model reads at once.
const promptBytesMax = 4 << 20

// PromptPlaces are the folders in which a prompt is looked for (SPEC Workflow, "Prompts
// resolve").
type PromptPlaces struct {
	Repo   string // absolute: the repository worked on
	Beside string // absolute: the folder of the workflow; empty: the repository
}

// PromptFault says why a prompt cannot be used.
type PromptFault struct {
	Written string
	Text    string // what is wrong and what would be right
}

func (f *PromptFault) Error() string { return f.Text }

// Find gives the file that a prompt's name means: an absolute path as it is; else the first that
// is there of <repo>/.agents/prompts/<name>, also without the folders before the name, so that a
// repository may bring its own (as the seed's tool lets it), beside the workflow, and in the
// repository. One that
// was not written absolutely stays in the repository or beside the workflow, with its links
// followed: a workflow out of somebody else's hands does not read what is none of its business.
// The path is absolute; its links are not resolved. The error is a *PromptFault.
func (p PromptPlaces) Find(written string) (string, error) {
	fault := func(format string, args ...any) error {
		return &PromptFault{written, fmt.Sprintf(format, args...)}
	}
	switch {
	case written == "":
		return "", fault("no prompt is named")
	case strings.ContainsRune(written, 0):
		return "", fault("the path holds a zero byte")
	case filepath.IsAbs(written):
		if err := usable(written); err != nil {
			return "", fault("%s %v", written, err)
		}
		return filepath.Clean(written), nil
	}
	beside := p.Beside
	if beside == "" {
		beside = p.Repo
	}
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

// shown is a path as people say it: from the repository on, where it is in it.
func (p PromptPlaces) shown(path string) string {
	if rel, err := filepath.Rel(p.Repo, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// within says whether a resolved path is in a folder.
func within(folder, real string) bool {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, real)
	return err == nil && filepath.IsLocal(rel)
}

// usable says why a file cannot be read as a prompt. One that is not there is fs.ErrNotExist.
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

// plainError is the reason without the operation and the path, which stand before it.
func plainError(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
