package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// A step in a view writes its report and its artifacts into folders of its session, which are at the paths of those of the run.
// When it has ended, its files are taken into the run, before its report is read. This may happen again: after a crash it does.

const (
	takenName      = "taken.json" // in a run's folder: which step has which artifact
	takenFilesMax  = 10000        // of one session; a tree of sources belongs in the workspace
	takenBytesMax  = 1 << 30      // of all its artifacts; they are copied while the step ends
	takenFileMax   = 16 << 20     // of a report, as it is read
	takenDepthMax  = 32           // of folders in folders
	takenDirsMax   = 2000         // folders that are looked into, while other runs wait
	takenBaseMax   = 250          // bytes of a name: the file that is renamed to it has five more, and a name 255 at most
	takenNameMax   = 1 << 10      // bytes of a name with its folders: they are kept for each artifact
	takenSaidMax   = 20           // files that are named in the log
	artifactMode   = 0o644        // as public as the repository
	executableMode = 0o755
)

// taking takes the files of one session.
type taking struct {
	step  string
	from  *os.Root
	to    *os.Root
	owner map[string]string // by the name of an artifact: the step that made it
	dirs  int
	files int
	bytes int64
	left  []string // what was not taken, and why
}

// takeFiles takes what a step has written in its session's own folder into the folder of its run. It returns what was left, in words.
func (c *Controller) takeFiles(f StepFacts, own string) (left []string, err error) {
	if _, err := os.Lstat(filepath.Join(own, places.ArtifactsName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it wrote in the folders of the run
	}
	c.taking.Lock()
	defer c.taking.Unlock()
	t := taking{step: f.Cmd.StepID, owner: map[string]string{}}
	name := filepath.Base(f.Report)
	if err := t.between(filepath.Join(own, places.ReportsName), filepath.Dir(f.Report), func() error {
		info, err := t.from.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // it wrote none
		}
		return t.copy(name, info, takenFileMax)
	}); err != nil {
		return nil, fmt.Errorf("take the report of step %s: %w", t.step, err)
	}
	record := filepath.Join(f.dir, takenName)
	if err := file.LoadJSON(record, &t.owner); err != nil {
		return nil, fmt.Errorf("read which step has which artifact: %w", err)
	}
	t.bytes = 0
	if err := t.between(filepath.Join(own, places.ArtifactsName), filepath.Join(f.dir, "artifacts"),
		func() error { return t.folder(".", 0) }); err != nil {
		return nil, fmt.Errorf("take the artifacts of step %s: %w", t.step, err)
	}
	if t.files > 0 {
		text, err := json.Marshal(t.owner)
		if err == nil {
			err = file.ReplaceUnsynced(record, text, artifactMode)
		}
		if err != nil {
			return t.left, fmt.Errorf("write which step has which artifact: %w", err)
		}
	}
	return t.left, nil
}

func (t *taking) between(from, to string, do func() error) (err error) {
	if err := os.MkdirAll(to, DirMode); err != nil {
		return err
	}
	if t.from, err = os.OpenRoot(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer t.from.Close()
	if t.to, err = os.OpenRoot(to); err != nil {
		return err
	}
	defer t.to.Close()
	return do()
}

func (t *taking) leave(name, why string) {
	if len(t.left) < takenSaidMax {
		t.left = append(t.left, fmt.Sprintf("%.200q: %s", name, why))
	}
}

// folder takes the files of a folder of artifacts.
func (t *taking) folder(dir string, depth int) error {
	if depth > takenDepthMax {
		t.leave(dir, fmt.Sprintf("more than %d folders in each other", takenDepthMax))
		return nil
	}
	if t.dirs++; t.dirs > takenDirsMax {
		t.leave(dir, fmt.Sprintf("more than %d folders", takenDirsMax))
		return nil
	}
	f, err := t.from.Open(dir)
	if err != nil {
		t.leave(dir, "it cannot be read")
		return nil //nolint:nilerr // it is the agent's
	}
	entries, err := f.ReadDir(takenFilesMax + 1)
	f.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var folders []string // after the files, which no number of them may keep from being taken
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		info, err := t.from.Lstat(name)
		switch owner := t.owner[name]; {
		case err != nil:
			continue
		case !utf8.ValidString(e.Name()) || strings.ContainsFunc(e.Name(), unicode.IsControl) ||
			strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), "-new"):
			t.leave(name, "its name cannot be that of an artifact")
		case len(e.Name()) > takenBaseMax || len(name) > takenNameMax:
			t.leave(name, "its name is too long")
		case info.IsDir():
			folders = append(folders, name)
		case !info.Mode().IsRegular():
			t.leave(name, "it is no regular file")
		case owner != "" && owner != t.step:
			if !t.same(name, info) {
				t.leave(name, "step "+owner+" has an artifact of this name; use another name")
			}
		case owner == "" && t.exists(name):
			if !t.same(name, info) {
				t.leave(name, "the run has an artifact of this name; use another name")
			}
		case t.files >= takenFilesMax || t.bytes+info.Size() > takenBytesMax:
			t.leave(name, fmt.Sprintf("at most %d files with %d MiB are taken", takenFilesMax, takenBytesMax>>20))
		default:
			if err := t.copy(name, info, takenBytesMax-t.bytes); err != nil {
				return err
			}
			t.owner[name] = t.step
		}
	}
	for _, name := range folders {
		if err := t.folder(name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *taking) exists(name string) bool {
	_, err := t.to.Lstat(name)
	return err == nil
}

// same reports whether the run has the file as it is: it was given to the step.
func (t *taking) same(name string, info fs.FileInfo) bool {
	there, err := t.to.Lstat(name)
	return err == nil && there.Mode().IsRegular() && there.Size() == info.Size()
}

// copy writes a file into the run, in the place of an earlier one.
func (t *taking) copy(name string, info fs.FileInfo, most int64) error {
	from, err := t.from.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.leave(name, "it cannot be read")
		return nil //nolint:nilerr // it is the agent's
	}
	defer from.Close()
	if now, err := from.Stat(); err != nil || !now.Mode().IsRegular() || now.Size() > most {
		t.leave(name, "it is too large, or no regular file")
		return nil //nolint:nilerr // it is the agent's
	}
	mode := fs.FileMode(artifactMode)
	if info.Mode()&0o100 != 0 {
		mode = executableMode
	}
	dir := filepath.Dir(name)
	if err := t.to.MkdirAll(dir, DirMode); err != nil {
		t.leave(name, "the run has a file where its folder would be")
		return nil //nolint:nilerr // it is the agent's name
	}
	if info, err := t.to.Lstat(name); err == nil && info.IsDir() {
		t.leave(name, "the run has a folder of this name")
		return nil
	}
	n, err := file.ReplaceIn(t.to, name, io.LimitReader(from, most), mode, DirMode)
	if err != nil {
		return err
	}
	t.files, t.bytes = t.files+1, t.bytes+n
	return nil
}

// taken takes what a step has made into its run. A fault is shown like one of the report.
func (c *Controller) taken(f StepFacts, session string) string {
	left, err := c.takeFiles(f, c.sessions.PrivateTemp(session))
	if len(left) > 0 {
		c.log.Warn("files of a step were not taken into its run", "run", f.Cmd.RunID, "step", f.Cmd.StepID, "files",
			strings.Join(left, "; "))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// shownNames are the variables of a step that name files of its run.
var shownNames = []string{"PROMPT_PATH", "MANUAL_RESULT_PATH", "DEP_", "LOOP_", "ISSUE_MARKDOWN_PATH"}

const shownMax = 1000 // files of a run that a step is shown: each is linked or copied

// runView is what a step sees of its run's folder: its prompt and what was attached, what it is to review, and what its variables name.
func (f StepFacts) runView(env []string) *sessionhost.RunView {
	v := &sessionhost.RunView{Dir: f.dir, Reports: filepath.Dir(f.Report), Artifacts: f.Cmd.ArtifactsDir}
	show := func(p string) {
		info, err := os.Lstat(p)
		if err != nil || !strings.HasPrefix(p, f.dir+"/") || len(v.Files)+len(v.Folders) >= shownMax {
			return
		}
		switch {
		case info.Mode().IsRegular():
			v.Files = append(v.Files, p)
		case info.IsDir() && p != v.Reports && p != v.Artifacts:
			v.Folders = append(v.Folders, p)
		}
	}
	show(filepath.Join(f.dir, task.AttachmentsName))
	if f.review {
		show(filepath.Join(f.dir, task.ReviewName))
		show(filepath.Join(f.dir, task.ReviewDiffName))
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(shownNames, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		show(value)
	}
	return v
}
