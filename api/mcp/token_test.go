package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The key is made once, only its owner can read it, and one that others could read is replaced.
func TestMCPKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.key")
	first, err := ReadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	if again, err := ReadKey(path); err != nil || again != first {
		t.Errorf("read again it is another one: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	open, err := ReadKey(path)
	if err != nil || open == first {
		t.Errorf("one that others could read was taken: %v", err)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if short, err := ReadKey(path); err != nil || short == open || short == (Key{}) {
		t.Errorf("one that is none was taken: %v", err)
	}
	target := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Remove(path), os.WriteFile(target, []byte("x"), 0o600), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(path); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(target); string(text) != "x" {
		t.Error("the key was written through a link")
	}
}

var fuzzKey = Key{1, 2, 3}

// No two callers have one token, and whatever is no token is refused without harm.
func FuzzToken(f *testing.F) {
	f.Add("coder", "coder-1", "coder.coder-1.x")
	f.Add("a.b", "c", fuzzKey.Token("a", "b.c"))
	f.Add("%2E", "%", "%.%.%")
	f.Add("", "", "..")
	f.Fuzz(func(t *testing.T, agent, session, forged string) {
		token := fuzzKey.Token(agent, session)
		if len(token) <= mcpTokenMax {
			who, err := fuzzKey.Who(token)
			if err != nil || who.Agent != agent || who.Session != session {
				t.Fatalf("%q is of %+v, %v", token, who, err)
			}
		}
		who, err := fuzzKey.Who(forged)
		if err == nil && fuzzKey.Token(who.Agent, who.Session) != forged {
			t.Fatalf("%q was taken for %+v", forged, who)
		}
	})
}
