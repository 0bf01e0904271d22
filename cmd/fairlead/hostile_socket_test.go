package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A logout takes the runtime folder away under a working team. Verbs find the daemon again at
// the same place, which is again its owner's alone; who listened before listens on; and a
// daemon after this one finds the agents, whose shims' sockets went the same way.
func TestLogout(t *testing.T) {
	run, err := os.MkdirTemp("/tmp", "fl-run-") //nolint:usetesting // short, for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) }) // after the rig's own
	t.Setenv("XDG_RUNTIME_DIR", run)
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, -c, 'until test -e enough; do sleep 0.02; done'], workspace: ada}\n",
	})
	s.must("once", "ada")
	began := s.until("ada", "it runs", func(v view.WhyView) bool { return v.Agent.Session != nil && v.Agent.Session.PID > 0 })
	before, err := workspace.FindDaemon(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	watcher := s.client()

	if err := os.RemoveAll(filepath.Join(run, "fairlead")); err != nil {
		t.Fatal(err)
	}
	s.poll("verbs find the daemon again", func() bool { _, code := s.fairlead("unhold"); return code == cli.ExitDone })
	now, err := workspace.FindDaemon(s.dir)
	if err != nil || !reflect.DeepEqual(now, before) {
		t.Errorf("the daemon was %+v and is %+v: %v", before, now, err)
	}
	for path, want := range map[string]fs.FileMode{now.Socket: fs.ModeSocket | 0o600, filepath.Dir(now.Socket): fs.ModeDir | 0o700} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, want %s: %v", path, info, want, err)
		}
	}
	if _, err := watcher.Agents(t.Context()); err != nil {
		t.Errorf("who was there before is not served: %v", err)
	}

	s.kill()
	s.up()
	after := s.until("ada", "it is found again", func(v view.WhyView) bool { return v.Agent.Session != nil })
	if after.Agent.Session.ID != began.Agent.Session.ID || after.Agent.Session.PID != began.Agent.Session.PID {
		t.Errorf("the session was %+v and is %+v", began.Agent.Session, after.Agent.Session)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "ada", "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("ada", "it rests", func(v view.WhyView) bool {
		return v.Agent.Session == nil && len(v.Sessions) > 0 && v.Sessions[0].Outcome == "ok"
	})
}

// poll waits for what no agent's view shows.
func (s *rig) poll(what string, ok func() bool) {
	s.t.Helper()
	wait.Until(s.t, what, ok)
}
