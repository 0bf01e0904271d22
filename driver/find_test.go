package driver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/driver"
)

// A program is looked up like a shell in the workspace would, and errors say what is wrong.
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

// An interpreter without its script cannot work, which is known before the start.
func TestCheckScript(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "work.sh"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command []string
		missing bool
	}{
		{[]string{"sh", "work.sh"}, false},
		{[]string{"sh", "./work.sh", "none.sh"}, false},
		{[]string{"sh", filepath.Join(dir, "work.sh")}, false},
		{[]string{"sh", "none.sh"}, true},
		{[]string{"/usr/bin/python3", "none.py"}, true},
		{[]string{"sh", dir + "/none.sh"}, true},
		{[]string{"sh", "-c", "none.sh"}, false},
		{[]string{"python3", "-u", "none.py"}, true},
		{[]string{"python3", "-m", "none.py"}, false},
		{[]string{"python3", "-W", "none.py"}, false}, // a value of -W
		{[]string{"python3", "none"}, true},
		{[]string{"bash", "-eu", "none.sh"}, true},
		{[]string{"bash", "-ec", "none.sh"}, false},
		{[]string{"bash", "-e", "work.sh"}, false},
		{[]string{"sh", "./none"}, true},
		{[]string{"sh", "none"}, false}, // it may be in PATH
		{[]string{"sh", "-"}, false},
		{[]string{"env", "A=1", "python3", "none.py"}, true},
		{[]string{"env", "-i", "python3", "none.py"}, false}, // not read
		{[]string{"node", "server"}, false},                  // node finds server.js
		{[]string{"deno", "https://127.0.0.1/a.ts"}, false},  // no file of this machine
		{[]string{"agent", "none.sh"}, false},                // not known what it means
		{[]string{"sh"}, false},
	} {
		err := driver.CheckScript(driver.Agent{Name: "coder", Workspace: dir, Command: c.command})
		if (err != nil) != c.missing || err != nil && !strings.Contains(err.Error(), dir) {
			t.Errorf("%q: %v", c.command, err)
		}
	}
}

// Only an agent that is offered tools receives their address in its environment.
func TestEnvironmentOfTools(t *testing.T) {
	t.Setenv("FAIRLEAD_MCP_TOKEN", "of somebody else")
	told := func(m driver.MCP) (all []string) {
		for _, kv := range driver.Environment(driver.Agent{Name: "coder", MCP: m}, driver.Session{}) {
			if strings.HasPrefix(kv, "FAIRLEAD_MCP_") {
				all = append(all, kv)
			}
		}
		return all
	}
	if got := told(driver.MCP{}); got != nil {
		t.Errorf("nobody offers anything, and it is told %q", got)
	}
	want := []string{`FAIRLEAD_MCP_STDIO=["/bin/fairlead","mcp"]`, "FAIRLEAD_MCP_TOKEN=t", "FAIRLEAD_MCP_URL=u"}
	if got := told(driver.MCP{URL: "u", Token: "t", Stdio: []string{"/bin/fairlead", "mcp"}}); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
}
