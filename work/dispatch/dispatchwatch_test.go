package dispatch

import "testing"

// What an agent writes in its repository is no reason to look at the dispatch folders.
func TestOtherFilesAreNoNews(t *testing.T) {
	t.Parallel()
	w := &SessionFolders{Repo: "/home/sam/shop"}
	for name, concerns := range map[string]bool{
		"/home/sam/shop/main.go":                                              false,
		"/home/sam/shop/.claude-notes":                                        false,
		"/home/sam/shop/.claude":                                              true,
		"/home/sam/shop/.claude/settings.json":                                false,
		"/home/sam/shop/.claude/agent-state-machine":                          true,
		"/home/sam/shop/.claude/agent-state-machine/20261121_100000":          true,
		"/home/sam/shop/.claude/agent-state-machine/.elsewhere/0123456789abc": true,
		"/home/sam/far/state.jsonl":                                           true,
	} {
		if w.concerns(name) != concerns {
			t.Errorf("%s: not %t", name, concerns)
		}
	}
}
