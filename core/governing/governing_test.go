package governing

import (
	"os"
	"strings"
	"testing"
)

// What a program would take for a governing file is found, however it is spelled; each has a twin that is not governing.
func TestMatch(t *testing.T) {
	more := []string{"*.sql", "deploy/", "tools/check.sh", "db/**"}
	for _, c := range []struct {
		name, twin string
	}{
		{"fairlead.yaml", "fairlead.md"},
		{"sub/fairlead.yaml", "sub/fairlead.yaml.txt"},
		{"FAIRLEAD.YAML", "FAIRLEAD.YML.md"},
		{"fairlead.yaml.", "fairlead-yaml"},
		{"Fairlead.yaml ", "Fairlead yaml"},
		{".claude/settings.json", "claude/settings.json"},
		{".claude", "x.claude"},
		{"a/b/.Claude/hooks/x.sh", "a/b/.claude2/hooks/x.sh"},
		{".cla\u200cude/settings.json", ".cla-ude/settings.json"},
		{".vſcode/tasks.json", ".vzcode/tasks.json"},
		{".envrc", "envrc.md"},
		{".github/workflows/ci.yml", ".github/ISSUE_TEMPLATE.md"},
		{"x/.husky/pre-commit", "x/husky/pre-commit"},
		{".gitattributes", "gitattributes.md"},
		{"Makefile", "Makefiles.md"},
		{"MAKEFILE", "make/file"},
		{"lib/rules.mk", "lib/rules.md"},
		{"build.rs", "src/main.rs"},
		{"setup.py", "setups.py"},
		{"tests/conftest.py", "tests/test_conf.py"},
		{"web/package.json", "web/packages.json"},
		{"Dockerfile.dev", "Docker.md"},
		{"app/build.gradle.kts", "app/build.kt"},
		{"schema.sql", "schema.sqlite"},
		{"x/deploy/run.txt", "x/deployed/run.txt"},
		{"tools/check.sh", "tools/other/check.sh.md"},
		{"db/a/b", "dbs/a/b"},
		{"README", "AGENTS.md"},
	} {
		if c.name != "README" && !Match(c.name, more) {
			t.Errorf("%q is not found", c.name)
		}
		if Match(c.twin, more) {
			t.Errorf("%q is found, and decides nothing", c.twin)
		}
	}
}

func TestPatternFault(t *testing.T) {
	for pattern, good := range map[string]bool{
		"*.sql": true, "a/b.sh": true, "deploy/": true, "db/**": true, "/etc": false, "": false,
		"/": false, "[": false, "../x": false, "a//b": false, ".": false,
	} {
		if got := PatternFault(pattern); (got == "") != good {
			t.Errorf("%q: %q", pattern, got)
		}
	}
}

// doc/tasks.md has the tables of this package.
func TestDocument(t *testing.T) {
	const begin, end = "<!-- governing files -->\n", "<!-- end of governing files -->\n"
	text, err := os.ReadFile("../../doc/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	is, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("doc/tasks.md lacks the lines %q and %q", begin, end)
	}
	want := "| what | names |\n|---|---|\n"
	for _, row := range Table {
		want += "| " + row.What + " | `" + strings.Join(row.Patterns, "` `") + "` |\n"
	}
	want += "\n| mixed file | what runs nothing |\n|---|---|\n"
	for _, mix := range Mixes {
		want += "| `" + mix.Name + "` | `" + strings.Join(mix.Idle, "` `") + "` |\n"
	}
	if is == want {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatal("doc/tasks.md does not have the tables; run UPDATE=1 go test ./core/governing")
	}
	if err := os.WriteFile("../../doc/tasks.md", []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
