package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A text that was kept can be read when the files that it holds are gone; a workflow, which it does not hold, has to be there.
func TestKeptFilesNeedNotExist(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		FileName:        "version: 1\nagents:\n  a: {driver: script, script: a.script.yaml, workspace: a}\n  c: {driver: script, script: sub/c.script.yaml, workspace: c}\nworkflows: [b.yaml]\n",
		"a.script.yaml": "steps: []\n", "b.yaml": "b", "sub/c.script.yaml": "steps: []\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was := ReadSource(dir, nil)
	if was.Err != nil || len(was.Files) != 3 {
		t.Fatal(was.Err, len(was.Files))
	}
	for _, c := range []struct{ gone, fault string }{{"a.script.yaml", ""}, {"sub", ""}, {"b.yaml", `there is no file "b.yaml"`}} {
		if err := os.RemoveAll(filepath.Join(dir, c.gone)); err != nil {
			t.Fatal(err)
		}
		kept, err := ParseSource(was.Encode(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case kept.Sum() != was.Sum():
			t.Errorf("%s: another sum", c.gone)
		case c.fault == "" && kept.Err != nil, c.fault != "" && (kept.Err == nil || !strings.Contains(kept.Err.Error(), c.fault)):
			t.Errorf("%s: %v, want %q", c.gone, kept.Err, c.fault)
		}
		if found := ReadSource(dir, nil); found.Err == nil {
			t.Errorf("%s: the files are loaded without it", c.gone)
		}
	}
}
