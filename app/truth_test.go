package app

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
)

// byEvent is less than every polling interval, so something that is known within it was reported by
// an event. A machine with much other work takes longer, and a start takes proportionally longer,
// too; so byStarts times the duration of a start is also accepted.
const (
	byEvent  = 900 * time.Millisecond
	byStarts = 5
)

// TestEndsAreReportedByEvents checks that all waiters are notified of the end of a session in every
// case, without polling.
func TestEndsAreReportedByEvents(t *testing.T) {
	t.Parallel()
	kill := func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
	for name, c := range map[string]struct {
		end  func(w *world, agent int) error
		says string
	}{
		"agent killed": {func(_ *world, agent int) error { return kill(agent) }, "SIGKILL"},
		"agent ends":   {func(w *world, _ int) error { w.write("go", ""); return nil }, ""},
		"shim killed":  {func(w *world, _ int) error { return kill(w.shimOf("coder-1")) }, "its shim"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, agentYAML(gated), nil)
			ordered := time.Now()
			w.command("coder", "run_once")
			shown := w.until("coder", "it runs", running)
			began := time.Now()
			if err := c.end(w, shown.Session.PID); err != nil {
				t.Fatal(err)
			}
			w.until("coder", "it is over", func(v view.AgentView) bool { return v.Session == nil })
			if took, start := time.Since(began), began.Sub(ordered); took > byEvent+byStarts*start {
				t.Errorf("it took %v, and its start %v", took, start)
			}
			if s := w.sessions(); len(s) != 1 || !strings.Contains(s[0].Why, c.says) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestEvidenceHasItsAge checks that every piece of evidence has a time and a matching age, and that
// every source is asked.
func TestEvidenceHasItsAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "run_once")
	w.until("coder", "it runs, and its shim says so", func(v view.AgentView) bool { return running(v) && v.EvidenceAgeMS != nil })
	asked := time.Now()
	why := w.why("coder")
	for why.Agent.EvidenceAgeMS == nil && time.Since(asked) < waitMax { // the shim was too slow this time
		asked = time.Now()
		why = w.why("coder")
	}
	slack := time.Since(asked) + 100*time.Millisecond
	sources := map[string]bool{}
	for _, piece := range why.Evidence {
		sources[piece.Source] = true
		at := asked.Add(-time.Duration(piece.AgeMS) * time.Millisecond)
		if piece.At.IsZero() || piece.AgeMS < 0 || at.Sub(piece.At).Abs() > slack {
			t.Errorf("%s: %s: at %v, %d ms old", piece.Source, piece.What, piece.At, piece.AgeMS)
		}
	}
	for _, source := range []string{"journal", "file", "shim", "driver"} {
		if !sources[source] {
			t.Errorf("no evidence from the %s: %+v", source, why.Evidence)
		}
	}
	if why.Agent.EvidenceAgeMS == nil || *why.Agent.EvidenceAgeMS > slack.Milliseconds() {
		t.Errorf("%v", why.Agent.EvidenceAgeMS)
	}
}
