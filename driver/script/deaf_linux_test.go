package script_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/driver/drivertest"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// Only SIGKILL ends an agent that is stubborn and deaf. Its own runtime does not end it either when its
// input is closed.
func TestIgnoresSIGTERM(t *testing.T) {
	for name, source := range map[string]string{
		"deaf":     "steps: [{hang: here, deaf: true}]",
		"stubborn": "stubborn: true\nsteps: [{hang: here}]",
		"both":     "stubborn: true\nsteps: [{hang: here, deaf: true}]",
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, source)
			l, err := script.Driver{}.Launch(a, session)
			if err != nil {
				t.Fatal(err)
			}
			l.KeepStdin = false
			p := drivertest.Start(t, l)
			for f, err := range (script.Driver{}).Converse(a, session, p).Facts(t.Context(), 0) {
				if err != nil || f.Text != "here" {
					t.Fatalf("%+v %v", f, err)
				}
				p.Signal(syscall.SIGTERM)
				break
			}
			wait.Until(t, "the process has handled SIGTERM and sleeps again", func() bool { return gone(p) || tookAll(t, p.PID()) })
			if gone(p) {
				t.Fatalf("it ended: %s", p.Spool(t))
			}
			p.Signal(syscall.SIGKILL)
			if exit := p.Wait(t); exit.Signal != "SIGKILL" {
				t.Errorf("exit %+v", exit)
			}
		})
	}
}

func gone(p *drivertest.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// anySignal matches a set of pending signals that is not empty, as /proc shows it.
var anySignal = regexp.MustCompile(`(?m)^(SigPnd|ShdPnd):\s*0*[1-9a-f]`)

// tookAll reports whether a process has no pending signal and all its threads sleep: it has handled
// all its signals.
func tookAll(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range threads {
		text, err := os.ReadFile(status)
		if err != nil || anySignal.Match(text) || !strings.Contains(string(text), "State:\tS") {
			return false
		}
	}
	return len(threads) > 0
}
