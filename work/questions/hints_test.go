package questions

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/google/go-cmp/cmp"
)

// Hints are read off the call: nothing that the program says of it makes one, or hides one.
func TestHints(t *testing.T) {
	root := t.TempDir()
	repo := filepath.Join(root, "repo")
	if err := errors.Join(os.MkdirAll(filepath.Join(repo, "src"), 0o700), os.Symlink(root, filepath.Join(repo, "out"))); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	bash := func(command string) string {
		text, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct {
		tool, call string
		paths      []string
		want       []string
	}{
		{"Bash", bash("ls -l"), nil, nil},
		{"Bash", bash("echo rm -rf build"), nil, nil},
		{"Bash", bash("go test ./..."), nil, nil},
		{"Bash", bash("rm -rf build"), nil, []string{"it deletes files"}},
		{"Bash", bash("make && /bin/rm -rf build"), nil, []string{"it deletes files"}},
		{"Bash", bash("bash -c 'cd x; rm y'"), nil, []string{"it deletes files"}},
		{"Bash", bash("curl -s https://example.org | tee log"), nil, []string{"it accesses the network"}},
		{"Bash", bash("sudo rm x"), nil, []string{"it deletes files", "it acts as another user"}},
		{"Bash", bash("echo x > ../notes"), nil, []string{"outside the agent's workspace: " + root + "/notes"}},
		{"Bash", bash("echo x > /dev/null"), nil, nil},
		{"WebFetch", `{"url":"https://example.org"}`, nil, []string{"it accesses the network"}},
		{"Write", `{"file_path":"src/a.go"}`, nil, nil},
		{"Write", `{"file_path":"out/a.go"}`, nil, []string{"outside the agent's workspace: " + root + "/a.go"}},
		{"Edit", `{"file_path":"/etc/passwd"}`, []string{"/etc/passwd"}, []string{"outside the agent's workspace: /etc/passwd"}},
		{"other", `{}`, []string{repo + "/../x", "src/y"}, []string{"outside the agent's workspace: " + root + "/x"}},
		{"Bash", `{"command":"` + strings.Repeat("x", 30) + "…", nil, []string{"the call is too long and is not shown completely"}},
		{"Bash", "rm -rf build", nil, []string{"it deletes files"}},
		{"Write", "/etc/passwd", nil, []string{"outside the agent's workspace: /etc/passwd"}},
		{"Bash", "rm -rf build (cut)", nil, []string{"the call is too long and is not shown completely"}},
		{"WebFetch", "", nil, []string{"it accesses the network"}},
		{"", "", nil, nil},
	} {
		got := HintsOf(&view.QuestionView{
			Kind: "permission", What: "rm; curl; sudo", Tool: c.tool, Call: c.call, Paths: c.paths,
			Workspace: repo,
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s:\n%s", c.tool, c.call, diff)
		}
	}
	if got := HintsOf(&view.QuestionView{Kind: "question", Tool: "Bash", Call: bash("rm x"), Workspace: repo}); got != nil {
		t.Errorf("a question in words has hints: %q", got)
	}
	many := HintsOf(&view.QuestionView{
		Kind: "permission", Tool: "x", Paths: []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/a"},
		Workspace: repo,
	})
	if len(many) != outsideMax+1 {
		t.Errorf("many files: %q", many)
	}
}

// Whatever a call is, hints end, and name no more than they may.
func FuzzHints(f *testing.F) {
	for _, call := range []string{
		`{"command":"rm -rf $(cat x)"}`, `{"file_path":"../x"}`, `{`, `null`, `[]`, `{"command":3}`,
		`{"command":"cat <<E\nE\n"}`,
	} {
		f.Add("Bash", call, "../x")
		f.Add("Write", call, "/etc")
	}
	f.Fuzz(func(t *testing.T, tool, call, path string) {
		got := HintsOf(&view.QuestionView{Kind: "permission", Tool: tool, Call: call, Paths: []string{path}, Workspace: "/nowhere/repo"})
		if len(got) > len(hints)+outsideMax+2 {
			t.Errorf("%d hints", len(got))
		}
	})
}
