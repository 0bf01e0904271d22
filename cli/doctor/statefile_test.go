package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/files/agentstate"
)

// SPEC X3: doctor reads a state file as the daemon does: it follows no link, waits at no pipe, and says so. A valid file, also with a
// byte order mark or behind a link that leads to the workspace, is no finding.
func TestStateFilesOfAgents(t *testing.T) {
	valid := string(agentstate.State{DesiredState: agentstate.Pause, CurrentState: agentstate.Pause}.Render())
	text := func(s string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(s), 0o600) }
	}
	outside := filepath.Join(t.TempDir(), "outside.json")
	if err := text(valid)(outside); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, what, do string
		lay            func(path string) error
		linked         bool
	}{
		{name: "no file"},
		{name: "valid", lay: text(valid)},
		{name: "byte order mark", lay: text("\xef\xbb\xbf" + valid)},
		{name: "the workspace is a link", lay: text(valid), linked: true},
		{name: "malformed", lay: text("{"), what: "malformed", do: "moves it aside"},
		{name: "too large", lay: text(strings.Repeat("x", 2<<20)), what: "malformed", do: "moves it aside"},
		{
			name: "link", lay: func(path string) error { return os.Symlink(outside, path) }, what: "is a symbolic link and is not followed",
			do: "neither read nor replaced",
		},
		{
			name: "pipe", lay: func(path string) error { return syscall.Mkfifo(path, 0o600) }, what: "is no plain file",
			do: "neither read nor replaced",
		},
		{
			name: "folder", lay: func(path string) error { return os.Mkdir(path, 0o700) }, what: "is no plain file",
			do: "neither read nor replaced",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			var err error
			if test.lay != nil {
				err = test.lay(filepath.Join(folder, agentstate.FileName))
			}
			if test.linked {
				at := filepath.Join(t.TempDir(), "link")
				err = errors.Join(err, os.Symlink(folder, at))
				folder = at
			}
			if err != nil {
				t.Fatal(err)
			}
			found := lookAtFile(config.Agent{Name: "ada", Workspace: folder})
			switch {
			case test.what == "" && len(found) > 0:
				t.Errorf("%+v", found)
			case test.what != "" &&
				(len(found) != 1 || !strings.Contains(found[0].What, test.what) || !strings.Contains(found[0].Do, test.do)):
				t.Errorf("%+v", found)
			}
		})
	}
}
