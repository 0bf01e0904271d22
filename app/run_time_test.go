package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
)

// startRun begins a run of a workflow text in a bubble with simulated agents.
func (b *bubble) startRun(id, flow string, flags view.RunFlags) {
	b.t.Helper()
	dir := filepath.Dir(b.conf.Agents[0].Workspace)
	for name, text := range map[string]string{"flow.yaml": flow, "p.md": "work"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	flags.Repo, flags.Workflow, flags.RunID = dir, "flow.yaml", id
	if _, err := b.engine.Runs.StartRun(b.t.Context(), human, flags); err != nil {
		b.t.Fatal(err)
	}
	b.settle()
}

func (b *bubble) runView(id string) view.RunView {
	b.t.Helper()
	view, err := b.engine.Runs.RunByID(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return view
}

// reports writes a report for the step of a session.
func (s *fakeSession) reports(run, step string) {
	s.say("<<<RUN_REPORT_JSON")
	s.say(`{"schema":"v0","run_id":%q,"step_id":%q,"agent":"coder","status":"COMPLETED","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"}`, run, step)
	s.say("RUN_REPORT_JSON>>>")
}

// startTimes returns the times at which an agent was started, relative to the first.
func (h *fakeHost) startTimes(agent string) (at []time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first time.Time
	for _, id := range h.order {
		if agentIn(id) != agent {
			continue
		}
		s := h.sessions[id]
		if first.IsZero() {
			first = s.start
		}
		at = append(at, s.start.Sub(first).Round(time.Millisecond))
	}
	return at
}

const oneStep = "name: one\nsteps:\n  - {id: build, agent: coder, prompt: p.md%s}\n"

// W4: a failing step is tried again after one, two and four seconds, also if the engine was stopped
// for a part of that, and not earlier.
func TestBackoffOfSteps(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(*fakeSession) {}
		b.start()
		four := 4
		b.startRun("r", fmt.Sprintf(oneStep, ""), view.RunFlags{MaxAttempts: &four})
		b.after(1500 * time.Millisecond)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.after(500 * time.Millisecond)
		b.start()
		b.after(time.Minute)
		if at, want := b.host.startTimes("coder"),
			[]time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("started at %v, want %v", at, want)
		}
		if s := b.runView("r").Steps[0]; s.Status != "FAILED" || s.Attempts != 4 {
			t.Errorf("%+v", s)
		}
	})
}

// TestTimeoutOfSteps checks that a step's timeout counts from its start, also across a restart, and
// that the step is then ended and tried again.
func TestTimeoutOfSteps(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { <-s.asked }
		b.start()
		b.startRun("r", fmt.Sprintf(oneStep, ", timeout: 10m"), view.RunFlags{})
		b.after(9 * time.Minute)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.after(59 * time.Second)
		if s := b.runView("r").Steps[0]; s.Status != "RUNNING" || s.Attempts != 1 {
			t.Errorf("before its time: %+v", s)
		}
		b.after(10 * time.Minute)
		if at, want := b.host.startTimes("coder"), []time.Duration{0, 601 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("started at %v, want %v", at, want)
		}
		b.after(2 * time.Minute)
		if s := b.runView("r").Steps[0]; s.Status != "FAILED" || !strings.Contains(s.LastError, "timeout: it took longer than 10m") ||
			len(b.host.running()) > 0 {
			t.Errorf("after it: %+v; alive: %v", s, b.host.running())
		}
	})
}

// TestCostOfRuns checks that a run's cost includes all its attempts, also those of another day.
func TestCostOfRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) {
			s.say("usage 10 1 0.5")
			<-s.asked
		}
		b.start()
		b.startRun("r", fmt.Sprintf(oneStep, ", timeout: 26h"), view.RunFlags{})
		b.after(27 * time.Hour)
		if run := b.runView("r"); run.Steps[0].Attempts != 2 || run.CostUSD != 1 {
			t.Errorf("after two attempts at 0.5: %d, %g", run.Steps[0].Attempts, run.CostUSD)
		}
	})
}

// TestRunsShareAnAgent checks two runs with one agent. Their steps take turns in its slot, and a
// waiting step names the one before it. During a hold no step begins, and running ones finish.
func TestRunsShareAnAgent(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) {
			for _, id := range []string{"a", "b"} {
				if view, err := b.engine.Runs.RunByID(t.Context(), id); err == nil {
					for _, step := range view.Steps {
						if step.Session == s.id {
							s.lasts(time.Minute)
							s.reports(id, step.ID)
						}
					}
				}
			}
		}
		b.start()
		const flow = "name: two\nsteps:\n  - {id: one, agent: coder, prompt: p.md}\n  - {id: two, agent: coder, prompt: p.md, needs: [one]}\n"
		b.startRun("a", flow, view.RunFlags{})
		b.startRun("b", flow, view.RunFlags{})
		b.after(30 * time.Second)
		if s := b.runView("b").Steps[0]; s.Status != "PENDING" || !strings.Contains(s.WaitsFor, "behind run/a/one") {
			t.Errorf("it waits and does not say for what: %+v", s)
		}
		if _, err := b.engine.Agents.Hold(t.Context(), human, true, "wait"); err != nil {
			t.Fatal(err)
		}
		b.after(10 * time.Minute)
		if a, two := b.runView("a"), b.runView("b"); a.Steps[0].Status != "COMPLETED" || a.Steps[1].Status != "PENDING" ||
			two.Steps[0].Status != "PENDING" {
			t.Errorf("held: %+v\n%+v", a.Steps, two.Steps)
		}
		if _, err := b.engine.Agents.Hold(t.Context(), human, false, "go"); err != nil {
			t.Fatal(err)
		}
		b.after(10 * time.Minute)
		for _, id := range []string{"a", "b"} {
			if view := b.runView(id); view.Status != "completed" {
				t.Errorf("%s: %+v", id, view)
			}
		}
		if n := b.host.startsOf("coder"); n != 4 { // the host would report two at a time
			t.Errorf("%d starts for 4 steps", n)
		}
	})
}

// X9: an agent that uses up its daily limit fails its step with the name of the limit and without a
// retry. Steps that need it never start.
func TestLimitFailsAStep(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
		b.agent("coder").Limits.CostPerDayUSD = 10
		b.host.play = func(s *fakeSession) {
			if agentIn(s.id) == "coder" {
				s.say("usage 1 1 11.5")
				<-s.asked
			}
		}
		b.start()
		b.startRun("r",
			"name: l\nsteps:\n  - {id: build, agent: coder, prompt: p.md}\n  - {id: ship, agent: pm, prompt: p.md, needs: [build]}\n",
			view.RunFlags{})
		b.after(time.Minute)
		view := b.runView("r")
		if s := view.Steps[0]; s.Status != "FAILED" || s.Attempts != 1 || !strings.Contains(s.LastError, "cost_per_day_usd") {
			t.Errorf("%+v", s)
		}
		if view.Status != "failed" || view.Steps[1].Status != "PENDING" || b.host.startsOf("pm") > 0 || len(b.host.running()) > 0 {
			t.Errorf("%+v; alive: %v", view, b.host.running())
		}
	})
}
