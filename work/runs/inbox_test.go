package runs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

// Artifacts are named by agents: nothing outside of the repository is read, nothing that waits is opened, and the reason
// is said.
func TestReadArtifact(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "repo")
	for name, text := range map[string]string{
		"../secret": "secret", "note.md": "Ä note\n", "long": strings.Repeat("ä", fileTextMax), "sub/in": "inner", "binary": "a\x00b",
		"latin": "\xe4", "empty": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": "../secret", "absolute": filepath.Join(top, "secret"), "inside": "note.md", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(fileSumMax + 1); err != nil {
		t.Fatal(err)
	}
	if err := big.Close(); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]struct {
		text, why string
		cut, sum  bool
	}{
		"note.md":                       {text: "Ä note\n", sum: true},
		filepath.Join(dir, "note.md"):   {text: "Ä note\n", sum: true},
		"sub/in":                        {text: "inner", sum: true},
		"inside":                        {text: "Ä note\n", sum: true},
		"empty":                         {sum: true},
		"long":                          {text: strings.Repeat("ä", fileTextMax/2), cut: true, sum: true},
		"binary":                        {why: "it is no text", sum: true},
		"latin":                         {why: "it is no text", sum: true},
		"big":                           {why: "it is larger than 4 MiB"},
		"missing":                       {why: "there is no such file"},
		"sub":                           {why: "it is a folder"},
		"pipe":                          {why: "it is no ordinary file"},
		"../secret":                     {why: "it is outside of the repository"},
		filepath.Join(top, "secret"):    {why: "it is outside of the repository"},
		"sub/../../secret":              {why: "it is outside of the repository"},
		"out":                           {why: "it cannot be read"},
		"absolute":                      {why: "it cannot be read"},
		"up/secret":                     {why: "it cannot be read"},
		"":                              {why: "it is outside of the repository"},
		"note.md\x00":                   {why: "it cannot be read"},
		"<img src=x onerror=alert(1)>/": {why: "there is no such file"},
	} {
		got := readArtifact(root, dir, name)
		if got.Text != want.text || !strings.Contains(got.Why, want.why) || (got.Why == "") != (want.why == "") || got.Cut != want.cut ||
			(got.Sum != "") != want.sum {
			t.Errorf("%q: %.60q, why %q, cut %v, sum %q", name, got.Text, got.Why, got.Cut, got.Sum)
		}
	}
}

// Whatever an artifact has, what is shown of it is text within the limit.
func FuzzArtifactText(f *testing.F) {
	for _, seed := range []string{
		"", "a", "ä", "a\x00b", "\xff", strings.Repeat("x", fileTextMax) + "ä",
		strings.Repeat("x", fileTextMax-1) + "ä", strings.Repeat("x", fileTextMax-1) + "\xe4",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		text, cut := textOf(content)
		switch {
		case !utf8.ValidString(text) || len(text) > fileTextMax || strings.ContainsRune(text, 0):
			t.Errorf("%q is shown", text)
		case !strings.HasPrefix(string(content), text):
			t.Errorf("%.40q is not the beginning of %.40q", text, content)
		case text != "" && cut != (len(content) > fileTextMax):
			t.Errorf("cut is %v for %d bytes", cut, len(content))
		case text == "" && utf8.Valid(content) && len(content) > 0 && !strings.ContainsRune(string(content), 0):
			t.Errorf("%.40q is a text", content)
		}
	})
}
