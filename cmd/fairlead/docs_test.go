package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// doc/cli.md is what the program says of itself.
func TestCLIPage(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"docs", "cli"}, nil, &out, &errs); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	golden.Check(t, filepath.Join("..", "..", "doc", "cli.md"), out.String())
}

// Every page that docs offers can be printed without a daemon.
func TestDocsPages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"machines", "config", "workflow", "api", "cli"} {
		var out, errs bytes.Buffer
		if code := run([]string{"docs", page}, nil, &out, &errs); code != cli.ExitDone || out.Len() < 1000 {
			t.Errorf("docs %s: exit code %d, %d bytes, %s", page, code, out.Len(), &errs)
		}
	}
}
