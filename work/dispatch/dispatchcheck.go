package dispatch

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/files/agentstate"
)

// Where the kernel does not keep MAIN from writing, what changed on disk while it was at work is
// looked at afterwards. It undoes nothing; it says so.

const (
	treeFilesMax = 20_000          // looked at: beyond that it takes seconds, twice a round
	treeTimeMax  = 3 * time.Second // the same, for a slow disk
	TreeNamed    = 10              // files that a denial names
)

// treeState is what lay in the workspace at one moment.
type treeState struct {
	Session string
	files   map[string]fileState
	Why     string // it was not looked at; the reason
}

// fileState tells one content from another, as far as the disk does without reading it.
type fileState struct {
	size int64
	mode fs.FileMode
	at   int64
}

// lookAtTree looks at a repository, without what is git's, fairlead's and the agent program's own.
func LookAtTree(root string) *treeState {
	t := &treeState{files: map[string]fileState{}}
	began := time.Now()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the file cannot be read, so it cannot be compared; another process made it unreadable
		}
		if path == root {
			return nil
		}
		if name, top := d.Name(), filepath.Dir(path) == root; d.IsDir() {
			if name == ".git" || name == ".fairlead" || name == "node_modules" || top && (name == ".claude" || name == ".agents") {
				return fs.SkipDir
			}
			return nil
		} else if strings.HasPrefix(strings.TrimPrefix(name, "."), agentstate.FileName) {
			return nil // fairlead writes it itself
		}
		if len(t.files) >= treeFilesMax || time.Since(began) > treeTimeMax {
			return fmt.Errorf("the workspace has more files than are looked at (%d, for %s at most)", treeFilesMax, treeTimeMax)
		}
		if info, err := d.Info(); err == nil {
			t.files[path] = fileState{info.Size(), info.Mode(), info.ModTime().UnixNano()}
		}
		return nil
	})
	if err != nil {
		t.files, t.Why = nil, err.Error()
	}
	return t
}

// changed are the files that are other ones than before, or new, or gone; by name.
func (t *treeState) Changed(now *treeState) (paths []string) {
	for path, is := range now.files {
		if was, known := t.files[path]; !known || was != is {
			paths = append(paths, path)
		}
	}
	for path := range t.files {
		if _, still := now.files[path]; !still {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// rememberTree looks at the workspace before MAIN begins.
func (c *Controller) rememberTree(agent, session string) view.Layer {
	tree := LookAtTree(c.opts.Config.Dir)
	tree.Session = session
	c.FolderState.Mu.Lock()
	c.FolderState.Before[agent] = tree
	c.FolderState.Mu.Unlock()
	if tree.Why != "" {
		return view.Layer{Name: "check", Text: "what it changed is not looked at afterwards: " + tree.Why}
	}
	return view.Layer{
		Name: "check", Holds: true,
		Text: "what changed in the repository while it was at work is looked at afterwards; nothing is undone",
	}
}

// sessionIn says whether a path is a folder, or lies below it.
func SessionIn(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
}
