package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestStepContinuesItsConversation checks that a step with continue_conversation resumes its
// conversation after a gate has sent the run back, and receives only the reason. Without it, or if
// the program cannot resume, a new conversation gets the whole task again. An agent that succeeds
// needs no report if the report is optional.
func TestStepContinuesItsConversation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step    string
		resumes bool
		full    int // percent of the model's context after the first round
		resume  string
		prompt  string // in the second round
	}{
		"continued": {
			"continue_conversation: true, report_optional: true", true, 79, "talk-coder-1",
			"What you did was sent back by the step check of this run:\n\nit is red",
		},
		"full": {
			"continue_conversation: true, report_optional: true", true, 80, "",
			"work\n\nWhat you did was sent back by the step check of this run:\n\nit is red",
		},
		"new": {
			"report_optional: true", true, 0, "",
			"work\n\nWhat you did was sent back by the step check of this run:\n\nit is red",
		},
		"not possible": {
			"continue_conversation: true, report_optional: true", false, 0, "",
			"work\n\nWhat you did was sent back by the step check of this run:\n\nit is red",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder judge", func(t *testing.T, b *bubble) {
				var prompts []string
				b.conversing(config.ResumeInterrupted, func(s *fakeSession) {
					if text, _, ok := s.next(time.Hour); ok && agentIn(s.id) == "coder" {
						prompts = append(prompts, strings.TrimSpace(text))
					}
					if agentIn(s.id) == "judge" {
						gate := ""
						if s.id == "judge-1" {
							gate = `,"gate_failure":"it is red"`
						}
						s.say("<<<RUN_REPORT_JSON")
						s.say(`{"schema":"v0","run_id":"r","step_id":"check","agent":"judge","status":"COMPLETED","started_at":"2026-11-21T10:00:00Z","ended_at":"2026-11-21T10:00:01Z"%s}`, gate)
						s.say("RUN_REPORT_JSON>>>")
					}
					s.say("stop ok %d%%", c.full)
				})
				b.driver.resumes = c.resumes
				b.start()
				b.startRun("r",
					"name: f\nsteps:\n  - {id: work, agent: coder, prompt: p.md, "+c.step+
						"}\n  - {id: check, agent: judge, prompt: p.md, needs: [work], loop_back_to: work}\n", view.RunFlags{})
				b.after(time.Minute)
				if v := b.runView("r"); v.Status != "completed" || v.Steps[0].Iteration != 1 {
					t.Fatalf("%+v", v)
				}
				if got := b.resumedBy("coder-2"); got != c.resume {
					t.Errorf("coder-2 resumed %q, want %q", got, c.resume)
				}
				if want := []string{"work", c.prompt}; !slices.Equal(prompts, want) {
					t.Errorf("prompts %q, want %q", prompts, want)
				}
			})
		})
	}
}
