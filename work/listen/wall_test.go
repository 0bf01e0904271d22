package listen

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// walledProcess is a process whose shim reports its wall.
type walledProcess struct {
	sessionhost.Process
	proof  sessionhost.Proof
	silent error
}

func (p walledProcess) Evidence(context.Context) (sessionhost.Proof, error) { return p.proof, p.silent }

// TestWritableByTheWall checks that only the trial of this very session saves questions, and where it lets its program write.
func TestWritableByTheWall(t *testing.T) {
	on := config.AgentSandbox{Mode: config.SandboxWorkspace, Write: []string{"/srv/data"}}
	for name, c := range map[string]struct {
		box  config.AgentSandbox
		proc walledProcess
		want []string
	}{
		"all rows are held": {on, walledProcess{proof: sessionhost.Proof{Wall: "namespaces"}}, []string{"/w", "/srv/data"}},
		"the network is not": {
			on,
			walledProcess{proof: sessionhost.Proof{Wall: "namespaces", Unheld: []string{"network"}}},
			[]string{"/w", "/srv/data"},
		},
		"processes are not": {
			on,
			walledProcess{proof: sessionhost.Proof{Wall: "namespaces", Unheld: []string{"process"}}},
			[]string{"/w", "/srv/data"},
		},
		"reading is not":         {on, walledProcess{proof: sessionhost.Proof{Wall: "landlock", Unheld: []string{"read"}}}, nil},
		"writing is not":         {on, walledProcess{proof: sessionhost.Proof{Wall: "landlock", Unheld: []string{"write"}}}, nil},
		"folders inside are not": {on, walledProcess{proof: sessionhost.Proof{Wall: "landlock", Unheld: []string{"inside"}}}, nil},
		"it has no wall":         {on, walledProcess{}, nil},
		"its shim is silent":     {on, walledProcess{proof: sessionhost.Proof{Wall: "namespaces"}, silent: errors.New("no answer")}, nil},
		"the sandbox is off":     {config.AgentSandbox{Mode: config.SandboxOff}, walledProcess{proof: sessionhost.Proof{Wall: "namespaces"}}, nil},
	} {
		l := &SessionListener{m: &sessions.Slot{Conf: &config.Agent{Sandbox: c.box}}, proc: c.proc}
		got, network := l.walled(t.Context(), "/w")
		held := got != nil && !slices.Contains(c.proc.proof.Unheld, "network")
		if !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) || network != held {
			t.Errorf("%s: %q, network held: %v; not %q", name, got, network, c.want)
		}
	}
}
