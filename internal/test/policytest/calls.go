package policytest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
)

// Case is one line of calls.txt. The file's head explains the format.
type Case struct {
	Line    int
	Text    string // the line itself
	Attempt bool   // the call tries to bypass the rules
	Main    bool
	Verdict string // allow, unsure, ask, D8, D9, X10
	Key     string // a part of the expected reason; empty: any
	Tool    string
	Arg     string // with {{…}} in it

	Named, Tools         []string
	Interactive, Commits bool
	Plain                bool   // set by a test: there is no kernel sandbox for MAIN's commands
	Dir                  string // relative to the repository
}

// Calls reads core/policy/testdata/calls.txt.
func Calls(t testing.TB) []Case {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "core", "policy", "testdata", "calls.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	var holds Case
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "# ") || line == "#":
			continue
		case strings.HasPrefix(line, "@"):
			if !holds.direct(strings.Fields(line)) {
				t.Fatalf("calls.txt:%d: no such line: %s", i+1, line)
			}
			continue
		}
		c := holds
		c.Line, c.Text = i+1, line
		rest, attempt := strings.CutPrefix(line, "! ")
		c.Attempt = attempt
		fields := strings.SplitN(rest, " ", 5)
		if len(fields) < 5 || fields[0] != "main" && fields[0] != "agent" ||
			!slices.Contains([]string{"allow", "unsure", "ask", "D8", "D9", "X10"}, fields[1]) {
			t.Fatalf("calls.txt:%d: not [!] WHO VERDICT KEY TOOL ARGUMENT: %s", i+1, line)
		}
		c.Main, c.Verdict, c.Tool, c.Arg = fields[0] == "main", fields[1], fields[3], strings.ReplaceAll(fields[4], "⏎", "\n")
		if fields[2] != "-" {
			c.Key = strings.ReplaceAll(fields[2], "_", " ")
		}
		cases = append(cases, c)
	}
	return cases
}

// direct parses a line that begins with @.
func (c *Case) direct(words []string) bool {
	switch rest := slices.Clone(words[1:]); words[0] {
	case "@named":
		c.Named = rest
	case "@tools":
		c.Tools = rest
	case "@interactive", "@orchestrator":
		c.Interactive = words[0] == "@interactive"
	case "@commits", "@nocommits":
		c.Commits = words[0] == "@commits"
	case "@dir":
		c.Dir = strings.Join(rest, " ")
	default:
		return false
	}
	return true
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the test")
	return ""
}

// Call returns the case as a tool call on a scene.
func (c Case) Call(s Scene) policy.Call {
	call := policy.Call{Tool: c.Tool, Dir: s.Repo, Input: c.Input(s), Confined: !c.Plain}
	if c.Dir != "" {
		call.Dir += "/" + c.Dir
	}
	if !c.Main {
		call.AgentID = "agent-1"
	}
	return call
}

// Where returns what is known of the dispatch.
func (c Case) Where(s Scene) policy.Where {
	named := make([]string, 0, len(c.Named))
	for _, p := range c.Named {
		named = append(named, s.Expand(p))
	}
	return policy.Where{
		Repo: s.Repo, Session: s.Session, Outputs: s.Outputs, Dialogue: s.Dialogue, Home: s.Home, Protected: []string{s.State},
		Named: named, Tools: c.Tools, Model: true, Interactive: c.Interactive, Commits: c.Commits,
	}
}

// Rules returns the seed's rules for the calling role.
func (c Case) Rules() policy.Rules {
	if c.Main {
		return policy.MainRules()
	}
	return policy.AgentRules()
}

// Command returns the shell command of a Bash call; empty if it is not plain text.
func (c Case) Command(s Scene) string {
	if c.Tool != "Bash" || strings.HasPrefix(c.Arg, `{"`) {
		return ""
	}
	return s.Expand(c.Arg)
}

// Input returns the call's arguments.
func (c Case) Input(s Scene) json.RawMessage {
	arg := s.Expand(c.Arg)
	var value map[string]any
	switch {
	case strings.HasPrefix(arg, `{"`) || strings.HasPrefix(arg, "[") && c.Tool != "Bash":
		return json.RawMessage(arg)
	case c.Tool == "Bash":
		value = map[string]any{"command": arg}
	case c.Tool == "Write":
		value = map[string]any{"file_path": arg, "content": "text\n"}
	case c.Tool == "Edit":
		value = map[string]any{"file_path": arg, "old_string": "a", "new_string": "b"}
	case c.Tool == "MultiEdit":
		value = map[string]any{"file_path": arg, "edits": []any{map[string]any{"old_string": "a", "new_string": "b"}}}
	case c.Tool == "NotebookEdit":
		value = map[string]any{"notebook_path": arg, "new_source": "b"}
	case c.Tool == "Read":
		value = map[string]any{"file_path": arg}
	case c.Tool == "LS":
		value = map[string]any{"path": arg}
	case c.Tool == "Glob" || c.Tool == "Grep":
		value = map[string]any{"pattern": arg}
	default:
		return json.RawMessage(arg)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}
