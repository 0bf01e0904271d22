package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// permissionCase is one line of permissions.txt. The file's head explains the format.
type permissionCase struct {
	line        int
	text        string
	attempt     bool
	verdict     string
	allow, deny []string
	paths       []string
	call        policytest.Case
}

func permissionCases(t testing.TB) []permissionCase {
	t.Helper()
	text, err := os.ReadFile("testdata/permissions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []permissionCase
	var holds permissionCase
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if words, ok := strings.CutPrefix(line, "@"); ok {
			verb, rest, _ := strings.Cut(words, " ")
			switch verb {
			case "none":
				holds = permissionCase{}
			case "allow":
				holds.allow = append(holds.allow[:len(holds.allow):len(holds.allow)], rest)
			case "deny":
				holds.deny = append(holds.deny[:len(holds.deny):len(holds.deny)], rest)
			case "paths":
				holds.paths = strings.Fields(rest)
			default:
				t.Fatalf("permissions.txt:%d: no such line: %s", i+1, line)
			}
			continue
		}
		c := holds
		c.line, c.text = i+1, line
		rest, attempt := strings.CutPrefix(line, "! ")
		c.attempt = attempt
		fields := strings.SplitN(rest, " ", 3)
		if len(fields) < 3 {
			t.Fatalf("permissions.txt:%d: not [!] VERDICT TOOL ARGUMENT: %s", i+1, line)
		}
		c.verdict = fields[0]
		c.call = policytest.Case{Tool: fields[1], Arg: strings.ReplaceAll(fields[2], "⏎", "\n")}
		all = append(all, c)
	}
	return all
}

// input returns the call's arguments; text that begins with a bracket is used as it is.
func (c permissionCase) input(s policytest.Scene) json.RawMessage {
	if strings.HasPrefix(c.call.Arg, `{"`) || c.call.Arg == "{}" {
		return json.RawMessage(s.Expand(c.call.Arg))
	}
	return c.call.Input(s)
}

func (c permissionCase) call1(s policytest.Scene) policy.Call {
	return policy.Call{Tool: c.call.Tool, Input: c.input(s), Dir: s.Repo}
}

func (c permissionCase) patterns(t testing.TB, s policytest.Scene, texts []string) []policy.Pattern {
	t.Helper()
	all := make([]policy.Pattern, 0, len(texts))
	for _, text := range texts {
		p, err := policy.ParsePattern(s.Expand(text))
		if err != nil {
			t.Fatalf("permissions.txt:%d: %v", c.line, err)
		}
		all = append(all, p)
	}
	return all
}

func (c permissionCase) expanded(s policytest.Scene) []string {
	all := make([]string, 0, len(c.paths))
	for _, p := range c.paths {
		all = append(all, s.Expand(p))
	}
	return all
}

// workspaceOf is what is known outside a dispatch.
func workspaceOf(s policytest.Scene) policy.Where {
	return policy.Where{Repo: s.Repo, Home: s.Home, Protected: []string{s.State}, Commits: true}
}

// Every line of the table (X10).
func TestPermissions(t *testing.T) {
	cases := permissionCases(t)
	attempts := 0
	for _, c := range cases {
		if c.attempt {
			attempts++
		}
	}
	if len(cases) < 150 || attempts*3 < len(cases) {
		t.Errorf("%d calls, %d of them attempts; there should be 150, a third of them attempts", len(cases), attempts)
	}
	t.Logf("%d calls, %d of them attempts", len(cases), attempts)
	scene := policytest.Build(t)
	for _, c := range cases {
		book := policy.Permissions{Allow: c.patterns(t, scene, c.allow), Deny: c.patterns(t, scene, c.deny)}
		verdict, rule, doubt := book.Answer(c.call1(scene), c.expanded(scene), workspaceOf(scene), dispatchfolder.Disk{})
		got := verdict
		switch {
		case doubt != "":
			got, rule = "doubt", doubt
		case verdict == "":
			got = "ask"
		case strings.HasPrefix(rule, "X10: "):
			got = "X10"
		case !strings.HasPrefix(rule, verdict+" "):
			t.Errorf("permissions.txt:%d: %s: the verdict %q by the rule %q", c.line, c.text, verdict, rule)
		}
		if got != c.verdict {
			t.Errorf("permissions.txt:%d: %s\n\tis %s (%s); allow %q, deny %q", c.line, c.text, got, rule, c.allow, c.deny)
		}
	}
}

// Input that is made to take long is answered in a limited time, because a person waits.
func TestPermissionsIsNotKeptBusy(t *testing.T) {
	scene := policytest.Build(t)
	deny := patterns(t, "Bash(rm *)", "Bash(*x*y*z*)", "Bash(git push*)", "Read(.env)", "Write(**/secret/*)")
	for _, command := range []string{
		strings.Repeat("rm ", 10_000), "ls " + strings.Repeat("a ", 15_000), strings.Repeat("ls;", 10_000),
		"ls " + strings.Repeat("{a,b}", 400),
		"ls " + strings.Repeat("{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n} ", 800), strings.Repeat("bash -c ", 3000) + "ls",
		strings.Repeat("time ", 6000) + "ls",
		"echo '" + strings.Repeat("x y ", 8000) + "'", strings.Repeat("find . -exec ", 200),
		strings.Repeat("(", 400) + "ls" + strings.Repeat(")", 400),
		strings.Repeat("ls | ", 6000) + "ls", strings.Repeat("cd src; ", 3000) + "cat .env", "ls " + strings.Repeat("a=b:c@d=", 3000),
	} {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		answerOf(patterns(t, "Bash(*)"), deny, policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo}, nil, workspaceOf(scene),
			dispatchfolder.Disk{})
		if took := time.Since(begin); took > 20*time.Second { // far more than needed, for slow machines
			t.Errorf("%.30q… takes %s", command, took)
		} else {
			t.Logf("%.30q… takes %s", command, took.Round(time.Millisecond))
		}
	}
}

// A command line with more commands than are read is for a person, and so is one that ends in a denied command.
func TestRestOfALongLineIsDoubtful(t *testing.T) {
	scene := policytest.Build(t)
	for _, command := range []string{
		strings.Repeat("ls;", 2500) + "rm x", strings.Repeat("ls&&", 2500) + "rm x",
		strings.Repeat("{ ls;", 400) + "rm x" + strings.Repeat(";}", 400),
	} {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		call := policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo}
		for _, allowed := range []string{"*", "Bash(*)", "Bash(ls)"} {
			book := policy.Permissions{Allow: patterns(t, allowed), Deny: patterns(t, "Bash(rm *)")}
			if verdict, rule, _ := book.Answer(call, nil, workspaceOf(scene), dispatchfolder.Disk{}); verdict == "allow" {
				t.Errorf("%.20q… is allowed by %q", command, rule)
			}
			book = policy.Permissions{Allow: book.Allow, Bounds: policy.Rules{CannotExecute: []string{"rm"}}}
			if verdict, rule, _ := book.Answer(call, nil, workspaceOf(scene), dispatchfolder.Disk{}); verdict == "allow" {
				t.Errorf("with bounds, %.20q… is allowed by %q", command, rule)
			}
		}
		if v := policy.Judge(policy.MainRules(), true, call, workspaceOf(scene), dispatchfolder.Disk{}); v.Allow {
			t.Errorf("MAIN may give %.20q… without a sandbox", command)
		}
	}
}

// No pattern allows a call by an argument that is not known completely, and a denial stays one.
func TestUnread(t *testing.T) {
	scene := policytest.Build(t)
	for _, tt := range []struct {
		call  policy.Call
		deny  string
		want  string
		doubt bool
	}{
		{call: policy.Call{Tool: "Bash", Unread: []string{"command"}, Input: []byte(`{"command":"ls"}`)}},
		{call: policy.Call{Tool: "Bash", Unread: []string{"command"}, Input: []byte(`{"command":"ls"}`)}, deny: "Bash(rm *)", doubt: true},
		{
			call: policy.Call{Tool: "Bash", Unread: []string{"command"}, Input: []byte(`{"command":"rm x"}`)}, deny: "Bash(rm *)",
			want: "deny",
		},
		{
			call: policy.Call{Tool: "Edit", Unread: []string{"paths"}, Input: []byte(`{"file_path":"a"}`)}, deny: "Write(src/**)",
			doubt: true,
		},
		{call: policy.Call{Tool: "Edit", Unread: []string{"paths"}, Input: []byte(`{"file_path":"a"}`)}, deny: "Bash(rm *)"},
		{call: policy.Call{Tool: "think", Unread: []string{"tool"}, Input: []byte(`{"x":1}`)}, want: "allow"},
		{call: policy.Call{Tool: "think", Unread: []string{"tool"}, Input: []byte(`{"x":1}`)}, deny: "mcp__docs__*", doubt: true},
	} {
		book := policy.Permissions{Allow: patterns(t, "*")}
		if tt.deny != "" {
			book.Deny = patterns(t, tt.deny)
		}
		tt.call.Dir = scene.Repo
		verdict, rule, doubt := book.Answer(tt.call, nil, workspaceOf(scene), dispatchfolder.Disk{})
		if verdict != tt.want || (doubt != "") != tt.doubt {
			t.Errorf("%+v, deny %q: %q by %q, doubt %q", tt.call, tt.deny, verdict, rule, doubt)
		}
	}
}
