package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/policy"
)

func TestNamedPaths(t *testing.T) {
	for input, want := range map[string][]string{
		"Write a hello world Python script":                                 nil,
		"Hello, what can you help with?":                                    nil,
		"put it into docs/plan.md, please.":                                 {"docs/plan.md"},
		`save as "my notes.md" and 'b c/d.txt'`:                             {"my notes.md", "b c/d.txt"},
		"edit `src` and `main.go`":                                          {"src", "main.go"},
		"look at ./a/b.go:12:3 and @src/x.py!":                              {"a/b.go", "src/x.py"},
		"in ~/notes/today.txt or /tmp/out/":                                 {"~/notes/today.txt", "/tmp/out/"},
		"the Makefile, the .env and README.md.":                             {"Makefile", ".env", "README.md"},
		"see https://example.com/a/b.md and mail me@example.com":            nil,
		"version 1.2 costs 3.14, e.g. now":                                  nil,
		"the root / and ~ and .. and . stay":                                nil,
		"../other/notes.md is named":                                        {"../other/notes.md"},
		"don't touch it; it's fine":                                         nil,
		"a.md a.md b.md":                                                    {"a.md", "b.md"},
		"schreibe „Plan“ nach doku/übersicht.md":                            {"doku/übersicht.md"},
		"(see docs/a.md, [docs/b.md] and <docs/c.md>)":                      {"docs/a.md", "docs/b.md", "docs/c.md"},
		"write `rm -rf /` nowhere":                                          nil,
		"\"docs/\" holds it":                                                {"docs/"},
		"an \"unclosed quote and a.md":                                      {"a.md"},
		"":                                                                  nil,
		"what is 'quoted' here, and `..`, `.` too":                          nil,
		strings.Repeat("x", 100_000) + " late.md":                           nil,
		"control\x01char.md stays out, a\u0000b.md as well, c.md is all":    {"c.md"},
		"Ändere bitte die Datei src/größe.py und danach „tests/test_a.py“.": {"src/größe.py", "tests/test_a.py"},
		"把结果写到docs/plan.md里，然后看src/main.go。": {
			"把结果写到docs/plan.md里", "docs/plan.md", "然后看src/main.go",
			"src/main.go",
		},
		"请写「docs/a.md」、『b c.md』和（docs/d.md）":             {"docs/a.md", "b c.md", "docs/d.md"},
		"結果を./out/報告.mdと/tmp/out.txtに書いて":                {"結果を./out/報告.mdと/tmp/out.txtに書いて", "/tmp/out.txt"},
		"写到《docs/a.md》【docs/b.md】；docs/c.md！":            {"docs/a.md", "docs/b.md", "docs/c.md"},
		"“docs/a.md”,‘b/c.md’«d/e.md»‹f/g.md›„h/i j.md“": {"docs/a.md", "b/c.md", "d/e.md", "f/g.md", "h/i j.md"},
		"in：docs/a.md　docs/b.md\u00a0docs/c.md":          {"docs/a.md", "docs/b.md", "docs/c.md"},
		"写到「计划.md」":                                      {"计划.md"},
		"“Sieh dir docs/a.md an”":                        {"docs/a.md"},
		"我说“你好”，没有文件":                                    nil,
	} {
		if diff := cmp.Diff(want, policy.NamedPaths(input, nil)); diff != "" {
			t.Errorf("%.80q names other paths (-want +got):\n%s", input, diff)
		}
	}
}

// FuzzNamedPaths checks that every path that a text names can be a path.
func FuzzNamedPaths(f *testing.F) {
	f.Add("look at ./a/b.go:12:3 and @src/x.py!")
	f.Add("an \"unclosed quote and a.md")
	f.Add("a\x00b.md „Plan“ `rm -rf /`")
	f.Fuzz(func(t *testing.T, input string) {
		for _, p := range policy.NamedPaths(input, nil) {
			if p == "" || strings.ContainsAny(p, "\x00\n") {
				t.Errorf("%q names the path %q", input, p)
			}
		}
	})
}
