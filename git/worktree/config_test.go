package worktree

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Git reads the file as it was meant, whatever is in the values and between the dots of a key.
func TestConfigText(t *testing.T) {
	t.Parallel()
	want := []string{
		"user.name", "A \"B\" C\\", "user.email", " a; b # c\t", "core.x", "two\nlines", "core.empty", "",
		"url.(none: \"see\" a\\b).c).pushinsteadof", "/x y/", "url.(none: \"see\" a\\b).c).pushinsteadof", "file:///é\xff", "user.name", "another",
	}
	g := newGround(t)
	g.put("config", configText(want), 0o600)
	said, err := exec.CommandContext(t.Context(), "git", "config", "--null", "--list", "--file", filepath.Join(g.dir, "config")).Output()
	var got []string
	for _, entry := range Zeroed(string(said)) {
		key, value, _ := strings.Cut(entry, "\n")
		got = append(got, key, value)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%q, want\n%q", err, got, want)
	}
}
