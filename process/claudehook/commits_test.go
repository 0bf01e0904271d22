package claudehook

import (
	"strings"
	"testing"
)

// The key dispatch.commits counts in clones that Fairlead has made: in a person's repository agents do not commit, whatever it says.
func TestCommitsCountInClones(t *testing.T) {
	for name, c := range map[string]struct {
		alternates, conf string
		commits          bool
	}{
		"a repository":                     {"", "", false},
		"a repository, commits: true":      {"", "dispatch: {commits: true}\n", false},
		"one that borrows of another":      {"/other/.git/objects\n", "", false},
		"a clone of Fairlead":              {"/top/.fairlead/git/objects\n", "", true},
		"a clone with more lines":          {"/cache/objects\n/top/.fairlead/git/objects\n", "dispatch: {commits: true}\n", true},
		"a clone of Fairlead, commits: no": {"/top/.fairlead/git/objects\n", "dispatch: {commits: false}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env = map[string]string{"CLAUDE_PROJECT_DIR": w.path("repo")}
			w.write("repo/.git/HEAD", "ref: refs/heads/main\n")
			if c.alternates != "" {
				w.write("repo/.git/objects/info/alternates", c.alternates)
			}
			if c.conf != "" {
				w.write("repo/fairlead.yaml", c.conf)
			}
			w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"/agent-state-machine"`))
			w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"Write a hello world Python script"`))
			for command, denied := range map[string]bool{
				"git add x": !c.commits, "git commit -m x": !c.commits, "git stash": !c.commits,
				"git status": false, "git log": false, "git clean -fd": false,
			} {
				a := w.hook(PreToolUse, strings.Replace(bash(command, byAgent), "/repo", w.path("repo"), 1))
				said := string(a.Out)
				if strings.Contains(said, "agents commit in the clones of tasks and runs") != denied {
					t.Errorf("%s: %+v %s", command, a, said)
				}
			}
		})
	}
}
