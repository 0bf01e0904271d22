package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A new folder gets the format of this version, and is opened again. One of a development version, which has no number, and
// one of another format are refused with the way out, and stay as they are.
func TestFormat(t *testing.T) {
	for name, c := range map[string]struct {
		has     map[string]string // in .fairlead; a name that ends in / is a folder
		refused string
	}{
		"new":                      {},
		"only made":                {has: map[string]string{".gitignore": "*\n", "lock": "", "log/": ""}},
		"of this format":           {has: map[string]string{"format": "1\n", "journal.db": "", "sessions/": ""}},
		"a restored journal":       {has: map[string]string{"journal.db": ""}},
		"sessions, and no number":  {has: map[string]string{"sessions/": ""}, refused: "no number (it has sessions)"},
		"of a host, and no number": {has: map[string]string{"cluster/": ""}, refused: "no number (it has cluster)"},
		"of a later format": {
			has:     map[string]string{"format": "2\n", "journal.db": ""},
			refused: "its format is 2, and this version reads only 1",
		},
		"no number in the file": {has: map[string]string{"format": ""}, refused: "reads only 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.has {
				path := filepath.Join(dir, ".fairlead", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(name, "/") {
					if err := os.MkdirAll(path, 0o700); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // a refusal holds no lock, and a folder that was opened is opened again
				w, err := OpenWorkspace(dir)
				if c.refused == "" && err != nil ||
					c.refused != "" &&
						(err == nil || !strings.Contains(err.Error(), c.refused) ||
							!strings.Contains(err.Error(), "move the folder away")) {
					t.Fatalf("opened: %v", err)
				}
				if text, _ := os.ReadFile(filepath.Join(dir, ".fairlead", "format")); c.refused == "" && string(text) != "1\n" ||
					c.refused != "" && string(text) != c.has["format"] {
					t.Errorf("the format is %q", text)
				}
				if w != nil {
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
