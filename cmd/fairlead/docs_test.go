package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doc/cli.md is what the program says of itself.
func TestCLIPage(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"docs", "cli"}, nil, &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	path := filepath.Join("..", "..", "doc", "cli.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 go test ./cmd/fairlead writes it", err)
	}
	if diff := cmp.Diff(string(written), out.String()); diff != "" {
		t.Errorf("doc/cli.md is not what the program says; UPDATE=1 go test ./cmd/fairlead writes it anew:\n%s", diff)
	}
}

// Every page that docs offers can be printed without a daemon.
func TestDocsPages(t *testing.T) {
	for _, page := range []string{"machines", "config", "api", "cli"} {
		var out, errs bytes.Buffer
		if code := run([]string{"docs", page}, nil, &out, &errs); code != exitDone || out.Len() < 1000 {
			t.Errorf("docs %s: exit code %d, %d bytes, %s", page, code, out.Len(), &errs)
		}
	}
}
