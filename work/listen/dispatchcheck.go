package listen

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/table"
)

// compare finds the files that changed while MAIN ran and records them. others reports that another
// agent of the team ran at the same time, so a change cannot be attributed to MAIN.
func (t *dispatchListener) compare(others bool) {
	if t == nil || !t.j.Main() {
		return
	}
	t.e.dispatch.FolderState.Mu.Lock()
	before := t.e.dispatch.FolderState.Before[t.m.Conf.Name]
	delete(t.e.dispatch.FolderState.Before, t.m.Conf.Name)
	t.e.dispatch.FolderState.Mu.Unlock()
	if before == nil || before.Session != t.s.ID || before.Why != "" {
		return // a sandbox was active, the layer reports the reason, or fairlead was restarted in between
	}
	now := dispatchctl.LookAtTree(t.e.opts.Config.Dir)
	if now.Why != "" {
		t.remark("what changed in the repository meanwhile was not looked at: %s", now.Why)
		return
	}
	var changed []string
	for _, path := range before.Changed(now) {
		if rel, err := filepath.Rel(t.e.opts.Config.Dir, path); err == nil && !t.allowed(path) {
			changed = append(changed, rel)
		}
	}
	if len(changed) == 0 {
		return
	}
	names := strings.Join(changed[:min(len(changed), dispatchctl.TreeNamed)], ", ")
	if more := len(changed) - dispatchctl.TreeNamed; more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	if others {
		t.remark("while %s was at work these files changed: %s. Others were at work, too, so whose it was is not known", dispatch.Main,
			names)
		return
	}
	by, done := t.act(0, "changed "+names)
	if done {
		return
	}
	t.do(by, dispatch.Deny{
		Conversation: t.j.Work.Conversation, Tool: "(check afterwards)", Call: names, Row: "D8",
		Reason: fmt.Sprintf("these files changed while %s was working, without a permission question: %s. The changes stay; review them",
			dispatch.Main, names),
	}, func(refused *table.Refusal) {
		t.remark("files changed while %s was at work: %s", dispatch.Main, names)
	})
}

// allowed reports whether MAIN may change a file: a file of its conversation, or one that the user
// named.
func (t *dispatchListener) allowed(path string) bool {
	if dispatchctl.SessionIn(path,
		filepath.Dir(strings.TrimSuffix(t.j.Folder.Workspace(t.j.Work.Conversation), string(filepath.Separator)))) {
		return true
	}
	open := t.j.Session.Open
	if open == nil {
		return false
	}
	return slices.ContainsFunc(open.Named, func(named string) bool {
		if !filepath.IsAbs(named) {
			named = filepath.Join(t.e.opts.Config.Dir, named)
		}
		return dispatchctl.SessionIn(path, filepath.Clean(named))
	})
}
