package agentstate

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/exchange"
)

// seedLoop is the main loop of the seed's agent, with shorter sleeps.
const seedsAgent = `
import json, os, sys, time
from datetime import datetime

STATE_FILE = sys.argv[1]
PAUSE = 0.01

def read_state():
    if not os.path.exists(STATE_FILE):
        return {'desired_state': 'pause', 'current_state': 'pause'}
    with open(STATE_FILE, 'r') as f:
        return json.load(f)

def write_state(desired=None, current=None):
    state = read_state()
    if desired:
        state['desired_state'] = desired
    if current:
        state['current_state'] = current
    state['timestamp'] = datetime.utcnow().isoformat() + 'Z'
    with open(STATE_FILE, 'w') as f:
        json.dump(state, f, indent=2)

def run_session():
    time.sleep(0.2)

while True:
    state = read_state()
    desired = state['desired_state']
    if desired == 'continuous':
        write_state(current='continuous')
        run_session()
    elif desired in ('run_once', 'run_cleanup'):
        write_state(current=desired)
        run_session()
        write_state(desired='pause', current='pause')
    else:
        if state.get('current_state') != 'pause':
            write_state(current='pause')
        time.sleep(PAUSE)
`

// TestSeedLoop commands an agent that runs the seed's loop: it obeys, and its reports are seen.
func TestWeCommandTheSeedsAgent(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	script := filepath.Join(t.TempDir(), "agent.py")
	if err := os.WriteFile(script, []byte(seedsAgent), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, FileName)
	if err := os.WriteFile(path, []byte(`{"desired_state":"pause","current_state":"continuous","model":"theirs"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	d := Watch(nil)
	defer func() { _ = d.Close() }()
	arrived := make(chan Seen, 256)
	d.Deliver(func(s Seen) { d.Confirm(s); arrived <- s })
	if err := d.Add("coder", folder); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", script, path)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	reports := func(desired, current string) {
		t.Helper()
		for s := <-arrived; s.State.DesiredState != desired || s.State.CurrentState != current; s = <-arrived {
			if s.Kind != exchange.KindWritten {
				t.Fatalf("%+v", s)
			}
		}
	}
	command := func(desired string) {
		t.Helper()
		for {
			found, err := d.Read("coder")
			if err != nil {
				t.Fatal(err)
			}
			next := found.State.WithCommand(desired, SetByHuman, "from the test", time.Now())
			if err = d.Write(t.Context(), "coder", next.Render(), exchange.AnyLook, nil); err == nil {
				return
			}
			if !errors.Is(err, exchange.ErrChanged) {
				t.Fatal(err)
			}
		}
	}
	reports(Pause, Pause)
	command(RunOnce)
	reports(RunOnce, RunOnce)
	reports(Pause, Pause)
	command(Continuous)
	reports(Continuous, Continuous)
	command(Pause)
	reports(Pause, Pause)
	s, err := d.Read("coder")
	if err != nil || s.State.SetBy != SetByHuman || len(s.State.Extra) != 1 || string(s.State.Extra[0].Raw) != `"theirs"` {
		t.Errorf("%+v, %v", s, err)
	}
}
