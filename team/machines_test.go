package team

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doc/machines.md is written from the tables, and never by hand.
func TestMachinesDocument(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("<!-- Code generated from the tables by UPDATE=1 go test ./team; DO NOT EDIT. -->\n\n" +
		"# The machines\n\n" +
		"What is not a row here does not happen: an event that a state has no row for is refused. " +
		"The ids are the specification's. F rows are the rules for a foreign loop and S rows the life of a session, which " +
		"the specification gives as text. `fairlead docs machines` prints the same.\n")
	for _, m := range Machines() {
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n\n```mermaid\n%s```\n\n", m.Name, m.Promise, m.Mermaid)
		doc.WriteString("| row | from | event | to | does | why |\n|---|---|---|---|---|---|\n")
		for _, row := range m.Rows {
			fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s | %s |\n", row.ID, row.From, row.On, row.To, strings.Join(row.Do, ", "), row.Why)
		}
	}
	file := filepath.Join("..", "doc", "machines.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 go test ./team writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(written), "\n"), strings.Split(doc.String(), "\n")); diff != "" {
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
