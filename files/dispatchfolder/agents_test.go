package dispatchfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/core/dispatch"
)

func TestFrontMatter(t *testing.T) {
	for _, c := range []struct{ name, text, want, why string }{
		{"plain", "---\nname: a\ndescription: Use to write\n---\nbody", "Use to write", ""},
		{"a colon in it", "---\ndescription: Use this: when, \"x\": y\n---\n", `Use this: when, "x": y`, ""},
		{"double quotes", "---\ndescription: \"a \\\"b\\\"\\nc\" # why\n---\n", "a \"b\"\nc", ""},
		{"single quotes", "---\ndescription: 'it''s'\n---\n", "it's", ""},
		{"quotes that go on", "---\ndescription: \"first\" and more\n---\n", `"first" and more`, ""},
		{"folded", "---\ndescription: >-\n  one\n  two\n\n  three\ntools: Read\n---\n", "one two\nthree", ""},
		{"as it is", "---\ndescription: |\n  one\n    two\n\n  three\n---\n", "one\n  two\n\nthree", ""},
		{"over lines", "---\ndescription: one\n  two\n---\n", "one two", ""},
		{"a remark", "---\n# description: no\ndescription: one # two\n---\n", "one", ""},
		{"a list", "---\ndescription:\n  - one\n---\n", "", ""},
		{"twice", "---\ndescription: one\ndescription: two\n---\n", "one", ""},
		{"CRLF and BOM", "\xef\xbb\xbf---\r\ndescription: one\r\n---\r\n", "one", ""},
		{"none", "# An agent", "", "no front matter"},
		{"no end", "---\ndescription: one\n", "", "does not end"},
		{"no text", "---\ndescription: \xff\n---\n", "", "UTF-8"},
		{"nothing", "", "", "no front matter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields, why := frontMatter([]byte(c.text))
			if fields["description"] != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%q, %q", fields["description"], why)
			}
		})
	}
}

// Texts in valid YAML are read as a YAML parser reads them, apart from white space.
func FuzzFrontMatter(f *testing.F) {
	for _, value := range []string{
		"Use to write", "'it''s'", `"a\nb\"c"`, ">-\n  one\n  two", "|\n  one\n   two\n", "a # b", "- a", "[a]",
		"\n  x", "a\n\n  b",
	} {
		f.Add("---\ndescription: " + value + "\nname: n\n---\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		fields, why := frontMatter([]byte(text))
		if why != "" {
			return
		}
		got := fields["description"]
		if !plainYAML(text) {
			return
		}
		var doc map[string]any
		body := strings.TrimPrefix(text, "---\n")
		if yaml.Unmarshal([]byte(body[:strings.Index(body, "\n---")+1]), &doc) != nil {
			return
		}
		if want, ok := doc["description"].(string); ok && !slices.Equal(strings.Fields(want), strings.Fields(got)) {
			t.Errorf("we read %q, and YAML %q", got, want)
		}
	})
}

// plainYAML reports whether a text holds only what people write in front matter: lines that begin with a
// name, and indented text.
func plainYAML(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		name, _, field := strings.Cut(line, ":")
		switch {
		case line == "" || line == "---":
		case line[0] == ' ' && strings.ContainsAny(strings.TrimSpace(line + "x")[:1], "|>#-:"):
			return false
		case line[0] != ' ' && (!field || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" || name[0] == '-'):
			return false
		}
	}
	return strings.HasPrefix(text, "---\ndescription: ") && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && !strings.ContainsRune(" \n-:.,'\"#>|", c)
	})
}

// The project's agents come before the user's; files that cannot be used are reported.
func TestAgents(t *testing.T) {
	repo, home := t.TempDir(), t.TempDir()
	put := func(base, name, text string) {
		file := filepath.Join(base, ".claude", "agents", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(repo, "b.md", "---\nname: writer\ndescription: the project's\n---\n")
	put(home, "x.md", "---\nname: writer\ndescription: the user's\n---\n")
	put(home, "deep/y.md", "---\nname: tester\ndescription: tests\n---\n")
	put(home, "nameless.md", "---\ndescription: by its file\n---\n")
	put(repo, "bad.md", "# no front matter")
	put(repo, "mute.md", "---\nname: mute\n---\n")
	put(repo, "main.md", "---\nname: MAIN\ndescription: me\n---\n")
	put(repo, "evil.md", "---\nname: ../evil\ndescription: me\n---\n")
	put(repo, "twin.md", "---\nname: writer\ndescription: another\n---\n")
	put(repo, "big.md", "---\nname: big\ndescription: x\n---\n"+strings.Repeat("x", agentBytesMax))
	put(repo, "notes.txt", "not one")
	all, faults, err := Agents(repo, home)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range all {
		got = append(got, a.Name+": "+a.Text)
	}
	if diff := cmp.Diff([]string{"nameless: by its file", "tester: tests", "writer: the project's"}, got); diff != "" {
		t.Error(diff)
	}
	var bad []string
	for _, f := range faults {
		bad = append(bad, filepath.Base(f.File))
	}
	if diff := cmp.Diff([]string{"bad.md", "big.md", "evil.md", "main.md", "mute.md", "twin.md"}, bad); diff != "" {
		t.Error(diff)
	}
	if none, _, err := Agents(t.TempDir(), ""); err != nil || len(none) != 0 {
		t.Errorf("where there are none: %v, %v", none, err)
	}
}

// The first line stays readable with the greatest number of agents.
func TestTwoThousandAgents(t *testing.T) {
	noSync(t)
	repo := t.TempDir()
	dir := filepath.Join(repo, ".claude", "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range agentsMax + 5 {
		text := fmt.Sprintf("---\nname: agent-%04d\ndescription: %s\n---\n", i, strings.Repeat("word \\ ", 400))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	all, faults, err := Agents(repo, "")
	if err != nil || len(all) != agentsMax || len(faults) == 0 {
		t.Fatalf("%d agents, %v, %v", len(all), faults, err)
	}
	f := begin(t, dispatch.Setup{Agents: all})
	if s := session(t, f); len(s.Agents) != agentsMax || len(s.Agents[7].Text) > describedMax/agentsMax {
		t.Errorf("%d agents", len(s.Agents))
	}
	do(t, f, dispatch.UserInput{Text: "x", Match: &dispatch.Match{Agent: "agent-0007"}})
	if got := session(t, f); got.State() != "agent-0007" {
		t.Errorf("the state is %s", got.State())
	}
}
