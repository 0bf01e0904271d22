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
