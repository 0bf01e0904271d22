package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/read/view"
)

// SPEC C14: the first signal lets the session finish, the second ends it; then the file
// says pause, and what was wanted is kept.
func TestSignals(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, -c, 'echo on; exec sleep 1000'], workspace: ada, grace: 1s}\n",
	})
	s.must("start", "ada", "--wait")
	daemon := s.daemon
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	client := s.client()
	s.until("ada", "fairlead stops, and the session goes on", func(why view.WhyView) bool {
		view, err := client.Agents(t.Context())
		return err == nil && view.Stopping && why.Agent.Session != nil && why.Agent.Session.Ending == ""
	})
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("a daemon that was told to stop ended with %v", err)
		}
	case <-time.After(rigWait):
		t.Fatal("the second signal did not end it")
	}
	s.daemon = nil
	text, err := os.ReadFile(filepath.Join(s.dir, "ada", agentstate.FileName))
	if err != nil {
		t.Fatal(err)
	}
	state, err := agentstate.Parse(text)
	if err != nil || state.DesiredState != "continuous" || state.CurrentState != "pause" {
		t.Errorf("the file says %+v, %v", state, err)
	}
	s.up()
	s.until("ada", "it runs again, as was wanted", func(why view.WhyView) bool {
		return why.Agent.Session != nil && why.Agent.Session.ID == "ada-2"
	})
}
