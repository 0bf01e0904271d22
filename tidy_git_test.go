package fairlead_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// gitFolders are the folders in which git runs outside of a view, by file: those of a person, or of Fairlead. A clone of a task or of a
// run is opened by worktree.Inside alone. `making` is a clone in which no other program has written yet.
var gitFolders = map[string][]string{
	"cli/daemon/host.go":                {"e.dir"},
	"cli/daemon/hosts.go":               {"dir"},
	"cli/hosts/join.go":                 {"dir"},
	"cli/setup/init.go":                 {"dir"},
	"hosts/local/trees.go":              {"t.Root"},
	"hosts/remote/trees.go":             {"t.Root"},
	"hosts/membership/contents.go":      {"c.places.Root"},
	"hosts/membership/copy.go":          {"c.places.Root"},
	"hosts/membership/forget.go":        {"c.places.Root"},
	"hosts/membership/late.go":          {"c.places.Root"},
	"hosts/membership/takeover.go":      {"c.places.Root"},
	"work/runs/worktree.go":             {"repo", "req.repo"},
	"git/task/checkout.go":              {"c.Dir"}, // a person's worktree of the repository
	"git/task/copy.go":                  {"workspace"},
	"git/task/move.go":                  {"dir", "m.Dir", "m.common", "m.scratch()"}, // the person's checkout of the base, and a folder of Fairlead's
	"git/task/moveback.go":              {"m.Dir"},
	"git/task/task.go":                  {"t.Repo", "workspace"},
	"git/transfer/update.go":            {"root"},
	"git/worktree/clone.go":             {"making", "origin"},
	"git/worktree/store/store.go":       {"filepath.Dir(s.Dir)", "repo", "s.Dir"},
	"cli/demo/demo.go":                  {"exec"},
	"cli/tasks/review.go":               {"exec"}, // a difference of two commits of the person's repository
	"work/sessions/sandbox.go":          {"exec"},
	"internal/test/policytest/scene.go": {"exec"}, // of tests
	"internal/test/size/main.go":        {"exec"}, // the person's repository
}

// No package runs git in an agent's folder outside of a view: each place at which git is started has its folder in the list.
func TestGitFolders(t *testing.T) {
	r := readTree(t)
	found := map[string]map[string]bool{}
	for _, file := range r.goFiles() {
		f := r.goes[file]
		if f.test || file == "git/worktree/inside.go" {
			continue
		}
		add := func(folder string) {
			if found[file] == nil {
				found[file] = map[string]bool{}
			}
			found[file][folder] = true
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				name := ""
				switch is := n.Type.(type) {
				case *ast.Ident:
					name = path.Base(path.Dir(file)) + "." + is.Name
				case *ast.SelectorExpr:
					name = types.ExprString(is)
				}
				if name == "worktree.Git" {
					for _, e := range n.Elts {
						if kv, is := e.(*ast.KeyValueExpr); is {
							add(types.ExprString(kv.Value))
						}
					}
				}
			case *ast.CallExpr:
				if name := types.ExprString(n.Fun); strings.HasPrefix(name, "exec.Command") {
					for _, arg := range n.Args {
						if lit, is := arg.(*ast.BasicLit); is && lit.Kind == token.STRING && lit.Value == `"git"` {
							add("exec")
						}
					}
				}
			}
			return true
		})
	}
	for file, folders := range found {
		if got := slices.Sorted(maps.Keys(folders)); !slices.Equal(got, gitFolders[file]) {
			t.Errorf("%s runs git in %q, and gitFolders has %q; what an agent may write is opened by worktree.Inside", file, got,
				gitFolders[file])
		}
	}
	for file := range gitFolders {
		if found[file] == nil {
			t.Errorf("%s runs no git outside of a view by now; remove it from gitFolders", file)
		}
	}
}
