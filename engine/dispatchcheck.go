package engine

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// Where the kernel does not keep MAIN from writing, what changed on disk while it was at work is
// looked at afterwards. It undoes nothing; it says so.

const (
	treeFilesMax = 20_000          // looked at: beyond that it takes seconds, twice a round
	treeTimeMax  = 3 * time.Second // the same, for a slow disk
	treeNamed    = 10              // files that a denial names
)

// treeState is what lay in the workspace at one moment.
type treeState struct {
	session string
	files   map[string]fileState
	why     string // it was not looked at; the reason
}

// fileState tells one content from another, as far as the disk does without reading it.
type fileState struct {
	size int64
	mode fs.FileMode
	at   int64
}

// lookAtTree looks at a repository, without what is git's, fairlead's and the agent program's own.
func lookAtTree(root string) *treeState {
	t := &treeState{files: map[string]fileState{}}
	began := time.Now()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be compared, and somebody else made it so
		}
		if path == root {
			return nil
		}
		if name, top := d.Name(), filepath.Dir(path) == root; d.IsDir() {
			if name == ".git" || name == ".fairlead" || name == "node_modules" || top && (name == ".claude" || name == ".agents") {
				return fs.SkipDir
			}
			return nil
		} else if strings.HasPrefix(strings.TrimPrefix(name, "."), agentfile.FileName) {
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
		t.files, t.why = nil, err.Error()
	}
	return t
}

// changed are the files that are other ones than before, or new, or gone; by name.
func (t *treeState) changed(now *treeState) (paths []string) {
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
func (e *Engine) rememberTree(agent, session string) Layer {
	tree := lookAtTree(e.opts.Config.Dir)
	tree.session = session
	e.folders.mu.Lock()
	e.folders.before[agent] = tree
	e.folders.mu.Unlock()
	if tree.why != "" {
		return Layer{Name: "check", Text: "what it changed is not looked at afterwards: " + tree.why}
	}
	return Layer{Name: "check", Holds: true, Text: "what changed in the repository while it was at work is looked at afterwards; nothing is undone"}
}

// compare says what changed while MAIN was at work, and records it. others: somebody else of the team
// was at work meanwhile, so that nobody can say whose it is.
func (t *workEar) compare(others bool) {
	if t == nil || !t.j.main() {
		return
	}
	t.e.folders.mu.Lock()
	before := t.e.folders.before[t.m.conf.Name]
	delete(t.e.folders.before, t.m.conf.Name)
	t.e.folders.mu.Unlock()
	if before == nil || before.session != t.s.ID || before.why != "" {
		return // there was a sandbox, or the layer says why not; or fairlead was restarted meanwhile
	}
	now := lookAtTree(t.e.opts.Config.Dir)
	if now.why != "" {
		t.remark("what changed in the repository meanwhile was not looked at: %s", now.why)
		return
	}
	var changed []string
	for _, path := range before.changed(now) {
		if rel, err := filepath.Rel(t.e.opts.Config.Dir, path); err == nil && !t.allowed(path) {
			changed = append(changed, rel)
		}
	}
	if len(changed) == 0 {
		return
	}
	names := strings.Join(changed[:min(len(changed), treeNamed)], ", ")
	if more := len(changed) - treeNamed; more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	if others {
		t.remark("while %s was at work these files changed: %s. Others were at work, too, so whose it was is not known", dispatch.Main, names)
		return
	}
	by, done := t.act(0, "changed "+names)
	if done {
		return
	}
	t.do(by, dispatch.Deny{
		Conversation: t.j.work.Conversation, Tool: "(check afterwards)", Call: names, Row: "D8",
		Reason: fmt.Sprintf("these files changed while %s was at work, and nobody asked: %s. Nothing is undone: look at them", dispatch.Main, names),
	}, func(refused *machine.Refusal) {
		t.remark("files changed while %s was at work: %s", dispatch.Main, names)
	})
}

// allowed says whether MAIN may have changed a file: the conversation's own, and what the user named.
func (t *workEar) allowed(path string) bool {
	if sessionIn(path, filepath.Dir(strings.TrimSuffix(t.j.folder.Workspace(t.j.work.Conversation), string(filepath.Separator)))) {
		return true
	}
	open := t.j.session.Open
	if open == nil {
		return false
	}
	return slices.ContainsFunc(open.Named, func(named string) bool {
		if !filepath.IsAbs(named) {
			named = filepath.Join(t.e.opts.Config.Dir, named)
		}
		return sessionIn(path, filepath.Clean(named))
	})
}

// sessionIn says whether a path is a folder, or lies below it.
func sessionIn(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
}
