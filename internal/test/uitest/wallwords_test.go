package uitest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// The page says of an agent's wall what it does not hold, and its holes; and nothing where that is not known.
func TestWallWords(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("node", "--input-type=module", "--eval", `
		import { wallWords } from `+fmt.Sprintf("%q", "file://"+filepath.Join(uitest.UIDir(), "static", "agents", "words.js"))+`;
		process.stdout.write(JSON.stringify([{}, { wall: 'nothing', unheld: ['read'] }, { wall: 'namespaces', unheld: [] }, { wall: 'landlock', unheld: ['read', 'network'], holes: ['a', 'b'] }].map(wallWords)));`).Output()
	want := `[[],["no wall: its program can do what your user can"],["wall of namespaces"],["wall of landlock, not held: read, network","hole: a","hole: b"]]`
	if err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}

// The page says which hosts an agent reached or was refused, the newest first.
func TestContactWords(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("node", "--input-type=module", "--eval", `
		import { contactWords } from `+fmt.Sprintf("%q", "file://"+filepath.Join(uitest.UIDir(), "static", "agents", "words.js"))+`;
		const many = Array.from({ length: 10 }, (_, i) => ({ host: 'h' + i, reached: 1, refused: 0 }));
		const lists = [{}, { contacts: [{ host: 'a', reached: 2, refused: 1 }, { host: 'b:8443', reached: 0, refused: 3 }] }, { contacts: many }].map(contactWords);
		process.stdout.write(JSON.stringify([lists[0], lists[1], lists[2].length, lists[2][0], lists[2][8]]));`).Output()
	want := `[[],["b:8443: refused 3×","a: reached 2×, refused 1×"],9,"h9: reached 1×","and 2 more"]`
	if err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}
