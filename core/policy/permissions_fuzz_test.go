package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

func patterns(t testing.TB, texts ...string) []policy.Pattern {
	t.Helper()
	all := make([]policy.Pattern, 0, len(texts))
	for _, text := range texts {
		p, err := policy.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// A wrong pattern gives a one-line error that says how to correct it.
func TestParsePattern(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "name a tool",
		"Bash(":                      "no closing bracket",
		"Bash(git status) ":          "no closing bracket",
		"Bash()":                     "write Bash alone",
		"Bash(  )":                   "write Bash alone",
		"(x)":                        "names no tool",
		"Re ad":                      "names no tool",
		"Read(src":                   "no closing bracket",
		"Read([a)":                   "is not a glob",
		"Read({a)":                   "is not a glob",
		"Read(../x)":                 "leads out",
		"Read(src/../../x)":          "leads out",
		"WebFetch(example.com)":      "names no host",
		"WebFetch(domain:)":          "names no host",
		"WebFetch(domain:*)":         "names no host",
		"WebFetch(domain:a*.b)":      "names no host",
		"WebFetch(domain:x@y)":       "names no host",
		"Task(backend)":              "takes no brackets",
		"mcp__docs__x(y)":            "takes no brackets",
		"B*(rm)":                     "takes no brackets",
		"Bash(a\nb)":                 "control characters",
		"Read(\xff)":                 "control characters",
		strings.Repeat("x", 5000):    "is longer than",
		"Bash(" + "\x1b[31m" + "rm)": "control characters",
	} {
		_, err := policy.ParsePattern(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, not %q", text, err, want)
		}
	}
	for _, text := range []string{
		"*", "Read", "mcp__*", "Bash(git status:*)", "Write(a b/**)", "Write(src/)", "Read({a,b}/*.go)",
		"Bash(echo (x))", "WebFetch(domain:*.example.com)", "their.tool-2",
	} {
		if p, err := policy.ParsePattern(text); err != nil || p.String() != text {
			t.Errorf("%q: %q, %v", text, p, err)
		}
	}
}

// FuzzPattern checks that every text is a pattern or gives a one-line error, and that no pattern makes a call
// panic.
func FuzzPattern(f *testing.F) {
	scene := policytest.Build(f)
	disk, where := dispatchfolder.Disk{}, workspaceOf(scene)
	for _, c := range permissionCases(f) {
		for _, text := range slices.Concat(c.allow, c.deny) {
			f.Add(text, c.call.Tool, string(c.input(scene)))
		}
	}
	f.Fuzz(func(t *testing.T, text, tool, input string) {
		p, err := policy.ParsePattern(text)
		if err != nil {
			if words := err.Error(); words == "" || strings.ContainsAny(words, "\n\x00\x1b") {
				t.Errorf("%q is refused by %q", text, words)
			}
			return
		}
		call := policy.Call{Tool: tool, Input: json.RawMessage(input), Dir: scene.Repo}
		denied, _ := answerOf(nil, []policy.Pattern{p}, call, nil, where, disk)
		both, rule := answerOf([]policy.Pattern{p}, []policy.Pattern{p}, call, nil, where, disk)
		if denied == "deny" && both != "deny" {
			t.Errorf("%q denies %s %q, and beside itself answers %q by %q", text, tool, input, both, rule)
		}
	})
}

// FuzzPermissions checks that commands which some shell patterns allow hold only those commands, at any
// position, and no redirect to a file. It reads the parse tree as simply as possible.
func FuzzPermissions(f *testing.F) {
	scene := policytest.Build(f)
	disk, where := dispatchfolder.Disk{}, workspaceOf(scene)
	for _, c := range permissionCases(f) {
		if command := c.call.Command(scene); command != "" {
			f.Add(command)
		}
	}
	for _, c := range policytest.Calls(f) {
		if command := c.Command(scene); command != "" {
			f.Add(command)
		}
	}
	allow := patterns(f, "Bash(git status*)", "Bash(ls *)", "Bash(head *)", "Bash(go test ./...)")
	deny := patterns(f, "Bash(ls /etc*)", "Read(.env)")
	mayStand := []string{
		"git", "ls", "head", "go", "cd", "true", "false", ":", "time", "timeout", "nice", "bash", "sh", "zsh", "dash",
		"ksh", "ash", "fish", "rbash", "[", "{",
	}
	f.Fuzz(func(t *testing.T, command string) {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Skip()
		}
		var decoded struct{ Command string }
		if err := json.Unmarshal(raw, &decoded); err != nil {
			t.Fatal(err)
		}
		verdict, rule := answerOf(allow, deny, policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo}, nil, where, disk)
		if verdict != "allow" {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(decoded.Command), "")
		if err != nil {
			t.Fatalf("%q is allowed by %q, and does not parse", decoded.Command, rule)
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				if len(n.Args) > 0 && !slices.ContainsFunc(mayStand, func(name string) bool { return standsFor(n.Args[0], name) }) {
					t.Errorf("%q is allowed by %q, and runs another command", decoded.Command, rule)
				}
			case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.FuncDecl, *syntax.DeclClause, *syntax.CoprocClause,
				*syntax.Assign:
				t.Errorf("%q is allowed by %q, and holds a form that is not", decoded.Command, rule)
			case *syntax.Redirect:
				if word := n.Word.Lit(); word != "/dev/null" && strings.Trim(word, "0123456789-") != "" {
					t.Errorf("%q is allowed by %q, and redirects to %s", decoded.Command, rule, word)
				}
			}
			return true
		})
	})
}

// standsFor reports whether a word is this name, quoted in any way.
func standsFor(w *syntax.Word, name string) bool {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, w); err != nil {
		return false
	}
	text := strings.NewReplacer(`"`, "", "'", "", `\\`, `\`, `\`, "").Replace(strings.ReplaceAll(b.String(), "\\\n", ""))
	return text == name || strings.HasSuffix(text, "/"+name) || strings.HasPrefix(text, "{"+name+",")
}

// FuzzPermissionsFiles checks that writes which a pattern allows are below its folder, wherever links lead.
func FuzzPermissionsFiles(f *testing.F) {
	scene := policytest.Build(f)
	disk, where := dispatchfolder.Disk{}, workspaceOf(scene)
	for _, c := range permissionCases(f) {
		if c.call.Tool == "Write" || c.call.Tool == "Edit" {
			f.Add(string(c.input(scene)))
		}
	}
	allow := patterns(f, "Write(src/**)", "Edit(docs/**)")
	f.Fuzz(func(t *testing.T, input string) {
		verdict, rule := answerOf(allow, nil, policy.Call{Tool: "Write", Input: json.RawMessage(input), Dir: scene.Repo}, nil, where, disk)
		if verdict != "allow" {
			return
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(input), &fields); err != nil {
			t.Fatalf("%q is allowed by %q, and is no JSON", input, rule)
		}
		for _, key := range []string{"file_path", "filePath", "path", "notebook_path", "notebookPath", "absolute_path", "abs_path"} {
			text, ok := fields[key].(string)
			if !ok {
				continue
			}
			if !strings.HasPrefix(text, "/") {
				text = scene.Repo + "/" + text
			}
			at, err := disk.Look(text)
			if err != nil || !strings.HasPrefix(at.Path, scene.Repo+"/src") && !strings.HasPrefix(at.Path, scene.Repo+"/docs") {
				t.Errorf("%q is allowed by %q, and leads to %s (%v)", input, rule, at.Path, err)
			}
		}
	})
}

// BenchmarkAnswer: an answer takes well under a millisecond.
func BenchmarkAnswer(b *testing.B) {
	scene := policytest.Build(b)
	disk, where := dispatchfolder.Disk{}, workspaceOf(scene)
	allow := patterns(b, "Read", "Write(src/**)", "Bash(git status*)", "Bash(go test *)", "Bash(head *)", "mcp__fairlead__*")
	deny := patterns(b, "Bash(rm *)", "Bash(git push*)", "Read(.env)")
	raw, err := json.Marshal(map[string]string{"command": "cd " + scene.Repo + "/src && go test ./... -run X 2>&1 | head -n 40"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if verdict, _ := answerOf(allow, deny, policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo}, nil, where,
			disk); verdict != "allow" {
			b.Fatal("it is not allowed")
		}
	}
}

// answerOf is the answer of permissions without bounds.
func answerOf(allow, deny []policy.Pattern, call policy.Call, paths []string, where policy.Where, disk policy.Disk) (verdict, rule string) {
	verdict, rule, _ = policy.Permissions{Allow: allow, Deny: deny}.Answer(call, paths, where, disk)
	return verdict, rule
}
