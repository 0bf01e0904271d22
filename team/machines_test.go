package team

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doc/machines.md is written from the tables, and never by hand.
func TestMachinesDocument(t *testing.T) {
	page := MachinesPage()
	file := filepath.Join("..", "doc", "machines.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 go test ./team writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(written), "\n"), strings.Split(page, "\n")); diff != "" {
		t.Errorf("doc/machines.md is not what the tables say; UPDATE=1 go test ./team writes it anew:\n%s", diff)
	}
}

func TestMachinesAreWhole(t *testing.T) {
	for _, m := range Machines() {
		if m.Name == "" || m.Promise == "" || len(m.Rows) == 0 || !strings.HasPrefix(m.Mermaid, "stateDiagram-v2\n") || m.Matrix == "" {
			t.Errorf("%+v", m)
		}
	}
}

func TestSessionMatrix(t *testing.T) {
	file := filepath.Join("testdata", "session.matrix.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(SessionTable.Matrix()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 go test ./team writes it", err)
	}
	if diff := cmp.Diff(string(want), SessionTable.Matrix()); diff != "" {
		t.Errorf("if it is meant, UPDATE=1 go test ./team renews it:\n%s", diff)
	}
}
