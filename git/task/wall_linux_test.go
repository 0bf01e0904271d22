package task

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// TestCommandsInTheView runs checks in the view of a task's agent: by namespaces, and by Landlock alone. Each denial has a twin that is
// allowed. The cases of mounted are held by namespaces only.
func TestCommandsInTheView(t *testing.T) {
	best := sandbox.Abilities
	t.Cleanup(func() { sandbox.Abilities = best })
	if best().By == sandbox.ByNothing {
		t.Skip(best().Why)
	}
	w := newWorld(t)
	dir := filepath.Dir(w.repo)
	home, data, other := filepath.Join(dir, "home"), filepath.Join(dir, "data"), filepath.Join(w.repo, "agents", "other")
	t.Setenv("HOME", home)
	for _, file := range []string{
		filepath.Join(home, ".ssh", "id"), filepath.Join(data, "read", "file"), filepath.Join(data, "write", "file"),
		filepath.Join(w.task.Tree, "hidden", "file"),
		filepath.Join(w.task.Tree, ".claude", "settings.json"), filepath.Join(other, "file"), filepath.Join(w.repo, ".fairlead", "token"),
	} {
		w.must(os.MkdirAll(filepath.Dir(file), 0o755))
		w.put(filepath.Dir(file), filepath.Base(file), "secret\n")
	}
	l, err := net.Listen("unix", filepath.Join(data, "socket"))
	w.must(err)
	defer l.Close()
	w.task.Wall = Wall{
		Mode: "workspace", Read: []string{filepath.Join(data, "read")}, Write: []string{filepath.Join(data, "write")},
		Hide:   []string{filepath.Join(w.task.Tree, "hidden")},
		Others: []string{other},
	}
	for _, row := range []struct {
		line             string
		allowed, mounted bool
	}{
		{line: "echo x > made && mkdir -p sub && echo x > sub/made && echo x > .git/made", allowed: true},
		{line: `echo x > "$HOME/made" && echo x > "$TMPDIR/made"`, allowed: true},
		{line: "test ! -e $HOME/.ssh", allowed: true},
		{line: "cat " + home + "/.ssh/id"},
		{line: "cat " + data + "/read/file", allowed: true},
		{line: "echo x > " + data + "/read/file"},
		{line: "echo x > " + data + "/write/file", allowed: true},
		{line: "cat hidden/file", mounted: true},
		{line: "cat a.txt .claude/settings.json", allowed: true},
		{line: "echo x > .claude/settings.json", mounted: true},
		{line: "echo x > " + w.repo + "/a.txt"},
		{line: "echo x > " + w.repo + "/.git/made"},
		{line: "cat " + other + "/file", mounted: true},
		{line: "cat " + w.repo + "/.fairlead/token", mounted: true},
		{line: "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"" + data + "/socket\")'"},
		{line: "git status && git log -1", allowed: true},
		{line: "sleep 0 & wait; exit 0", allowed: true},
		{line: "cd $TMPDIR && rm -rf r && git init -q r && cd r && git commit -q --allow-empty -m x && git log --format=%an | grep 'A Person'", allowed: true},
	} {
		for _, can := range []sandbox.Ability{best(), {By: sandbox.ByLandlock}} {
			if row.mounted && can.By == sandbox.ByLandlock || strings.Contains(row.line, "$HOME/.ssh") && can.By != sandbox.ByNamespaces {
				continue
			}
			sandbox.Abilities = func() sandbox.Ability { return can }
			w.task.Checks = []string{row.line}
			var out bytes.Buffer
			if err := w.task.Check(t.Context(), &out); (err == nil) != row.allowed || err != nil && !errors.As(err, new(*CheckFailed)) {
				t.Errorf("by %s, %q: %v\n%s", can.By, row.line, err, &out)
			}
			if said := strings.Contains(out.String(),
				"does not hold: "); said != (can.By == sandbox.ByLandlock || slices.Contains(can.Unheld, sandbox.RowInside)) {
				t.Errorf("by %s, %q: %s", can.By, row.line, &out)
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(w.repo, ".fairlead", "tmp"))
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("left are %v, %v", left, err)
	}

	// Where nothing can be made, the word decides.
	sandbox.Abilities = func() sandbox.Ability {
		return sandbox.Ability{By: sandbox.ByNothing, Why: []sandbox.Reason{{What: "an old kernel"}}}
	}
	for mode, want := range map[string]string{"auto": "", "off": "", "": "", "workspace": "an old kernel", "required": "an old kernel"} {
		w.task.Checks, w.task.Wall.Mode = []string{"true"}, mode
		var out bytes.Buffer
		err := w.task.Check(t.Context(), &out)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || errors.As(err, new(*CheckFailed))) {
			t.Errorf("with %q: %v", mode, err)
		}
	}
	sandbox.Abilities = func() sandbox.Ability { return sandbox.Ability{By: sandbox.ByLandlock} }
	w.task.Wall.Mode = "required"
	if err := w.task.Check(t.Context(), &bytes.Buffer{}); err == nil || errors.As(err, new(*CheckFailed)) ||
		!strings.Contains(err.Error(), "does not hold") {
		t.Errorf("required, by Landlock alone: %v", err)
	}
}

// TestMergedFilesInTheView: checks on merged files run in the same view. They write in the folder of these files alone.
func TestMergedFilesInTheView(t *testing.T) {
	t.Parallel()
	if can := sandbox.Abilities(); can.By == sandbox.ByNothing {
		t.Skip(can.Why)
	}
	w := newWorld(t)
	w.task.Wall.Mode = "workspace"
	w.task.Checks = []string{"test -e other.txt || exit 0; echo x > made && ! echo x > " + w.repo + "/evil && ! echo x > " + w.task.Tree +
		"/evil"}
	w.put(w.task.Tree, "b.txt", "new\n")
	w.must(w.task.Check(t.Context(), &bytes.Buffer{}))
	w.put(w.repo, "other.txt", "of the person\n")
	w.git(w.repo, "add", ".")
	w.git(w.repo, "commit", "--quiet", "-m", "meanwhile")
	if done, err := w.land(&w.task); err != nil || done.Commit == "" {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(w.task.checksDir(), "made")); err != nil {
		t.Error(err)
	}
}
