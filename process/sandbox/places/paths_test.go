package places_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// TestWriteFolders checks that can_write narrows a view to the folders with the listed files, and which entries no folder holds.
func TestWriteFolders(t *testing.T) {
	t.Parallel()
	for entries, want := range map[string][2]string{
		"":                     {"", ""},
		"src/**":               {"src", ""},
		"src/ docs/a/**":       {"src docs/a", ""},
		"./src/**":             {"src", ""},
		"src/** *.md":          {".", "*.md"},
		"*.md src/**":          {".", "*.md"},
		"**":                   {".", ""},
		"src":                  {".", "src"},
		"src/*":                {"src", "src/*"},
		"src/**/*.go":          {"src", "src/**/*.go"},
		"src/main.go":          {"src", "src/main.go"},
		"src/a/b":              {"src/a/b", ""},
		"src/[ab]/c":           {"src", "src/[ab]/c"},
		"~/notes/**":           {"~/notes", ""},
		"~/.notes":             {"~/.notes", "~/.notes"},
		"~/*.md":               {"~", "~/*.md"},
		"/srv/data/**":         {"/srv/data", ""},
		"*.md /srv/data/x.txt": {". /srv/data", "*.md /srv/data/x.txt"},
		"/*.md":                {"/", "/*.md"},
	} {
		list := strings.Fields(entries)
		if got := strings.Join(places.WriteFolders(list), " "); got != want[0] {
			t.Errorf("%s: the folders are %s, want %s", entries, got, want[0])
		}
		if got := strings.Join(places.Patterns(list, nil), " "); got != want[1] {
			t.Errorf("%s: the patterns are %s, want %s", entries, got, want[1])
		}
	}
	if all := places.WriteFolders(nil); len(all) != 1 || all[0] != "." {
		t.Errorf("without can_write the view grants %q", all)
	}
	if got := strings.Join(places.Patterns(nil, []string{"keys/**", "keys", "*.pem", "a/b"}), " "); got != "keys *.pem" {
		t.Errorf("of cannot_write the patterns are %s", got)
	}
}

// FuzzCheckout checks that a .git file, which an agent can write, opens only what the repository knows as this checkout.
func FuzzCheckout(f *testing.F) {
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	at := func(rest string) string { return filepath.Join(dir, rest) }
	for _, p := range []string{"w/worktrees/y", "main/worktrees/other", "main/objects", "team/.fairlead", "home"} {
		if err := os.MkdirAll(at(p), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.WriteFile(at("main/worktrees/other/gitdir"), []byte(at("elsewhere/.git")), 0o644); err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		"gitdir: ../main/worktrees/other", "gitdir: " + at("main/worktrees/other") + "\n", "gitdir: \x00", "gitdir:", "x", "", "gitdir: ~",
		"gitdir: .",
		"gitdir: worktrees/..", "gitdir: /", "gitdir: " + at("main"), "gitdir: " + strings.Repeat("x/", 9000),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(at("w/.git"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := places.Of(places.Session{
			Agent: "a", Driver: "exec", Dir: at("w"), Root: at("team"), State: at("team/.fairlead"), Own: at("team/.fairlead/tmp/a-1"),
			Env: []string{"HOME=" + at("home")}, Ability: sandbox.Ability{By: sandbox.ByNamespaces},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range p.View.Places {
			if one.Path != at("w") && !strings.HasPrefix(one.Path, at("w")+"/") && !strings.HasPrefix(one.Path, at("home")+"/") {
				t.Errorf("%q opens %+v", text, one)
			}
		}
	})
}
