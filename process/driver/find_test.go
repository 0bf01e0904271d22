package driver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// TestFindProgram checks that a program is looked up as a shell in the workspace does, and that
// errors say what is wrong.
func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"agent": 0o755, "bin/agent": 0o755, "plain": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/nowhere", "PATH=.:" + dir + "/bin:" + dir}
	for _, c := range []struct {
		command string
		want    string // a path in the folder, or a part of the error
	}{
		{"agent", "bin/agent"},
		{"./agent", "agent"},
		{"bin/agent", "bin/agent"},
		{dir + "/agent", "agent"},
		{"plain", "not in the PATH"},
		{"./plain", "not executable"},
		{"./none", "no such file"},
		{"./bin", "is a folder"},
		{"none", "not in the PATH"},
		{"", "has no command"},
		{"a\x00b", "NUL"},
	} {
		got, err := driver.FindProgram(driver.Agent{Name: "coder", Workspace: dir, Command: []string{c.command, "-v"}}, env)
		if got != filepath.Join(dir, c.want) && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q is %q, %v; want %s", c.command, got, err, c.want)
		}
	}
}

// TestCheckScript checks that a missing script of an interpreter is reported before the start.
func TestCheckScript(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "agents", "coder")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		filepath.Join(dir, "work.sh"), filepath.Join(root, "agent.py"),
		filepath.Join(root, "agents", "near.sh"),
	} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for command, wrong := range map[string]bool{
		"sh work.sh": false, "sh ./work.sh agent.py": false, "python3 ../../agent.py": false, "python3 " + root + "/agent.py": false,
		"python3 agent.py": true, "/usr/bin/python3 -u agent.py": true, "env A=1 python3 agent.py": true, "sh -e near.sh": true,
		"tool ./agent.py": true,
		"python3 none.py": false, "tool out.txt agent.py": false, "deno https://127.0.0.1/a.ts": false, "sh": false, "": false,
	} {
		err := driver.CheckScript(driver.Agent{Name: "coder", Workspace: dir, Command: strings.Fields(command)})
		if (err != nil) != wrong || err != nil && !strings.Contains(err.Error(), dir) {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// TestEnvironmentOfTools checks that only an agent with tools receives their address.
func TestEnvironmentOfTools(t *testing.T) {
	t.Setenv("FAIRLEAD_MCP_TOKEN", "of another program")
	told := func(m driver.MCP) (all []string) {
		for _, kv := range driver.Environment(driver.Agent{Name: "coder", MCP: m}, driver.Session{}) {
			if strings.HasPrefix(kv, "FAIRLEAD_MCP_") {
				all = append(all, kv)
			}
		}
		return all
	}
	if got := told(driver.MCP{}); got != nil {
		t.Errorf("an agent without tools receives %q", got)
	}
	want := []string{`FAIRLEAD_MCP_STDIO=["/bin/fairlead","mcp"]`, "FAIRLEAD_MCP_TOKEN=t", "FAIRLEAD_MCP_URL=u"}
	if got := told(driver.MCP{URL: "u", Token: "t", Stdio: []string{"/bin/fairlead", "mcp"}}); !slices.Equal(got, want) {
		t.Errorf("the environment has %q", got)
	}
}
