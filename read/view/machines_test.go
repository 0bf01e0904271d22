package view

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// doc/machines.md is written from the tables, and never by hand.
func TestMachinesDocument(t *testing.T) {
	golden.Check(t, filepath.Join("..", "..", "doc", "machines.md"), MachinesPage())
}

func TestMachinesAreWhole(t *testing.T) {
	for _, m := range Machines() {
		if m.Name == "" || m.Promise == "" || len(m.Rows) == 0 || !strings.HasPrefix(m.Mermaid, "stateDiagram-v2\n") || m.Matrix == "" {
			t.Errorf("%+v", m)
		}
	}
}
