package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/question"
)

// stopNow stops Fairlead as `down --now` does, and waits for its end.
func (b *bubble) stopNow() {
	b.t.Helper()
	if err := b.engine.Agents.Stop(b.t.Context(), human, true); err != nil {
		b.t.Fatal(err)
	}
	b.after(time.Minute)
	if n := b.host.running(); len(n) > 0 {
		b.t.Fatalf("%v still runs", n)
	}
	if err := b.stop(); err != nil {
		b.t.Fatal(err)
	}
}

// asked runs a session until it is asked to end.
func asked(s *fakeSession) { <-s.asked }

// TestDownNowCutsOff checks that a session that `down --now` interrupted resumes its conversation
// like one that a crash interrupted, with a prompt that mentions it. A session that was asked to
// stop, or that succeeded, is not resumed.
func TestDownNowCutsOff(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		life  func(*fakeSession)
		first string
		then  string // desired state that is written during the session, before Fairlead stops
		want  string
		is    string
	}{
		"continuous":               {life: asked, first: "continuous", want: "talk-coder-1", is: "cancelled"},
		"once":                     {life: asked, first: "run_once", want: "talk-coder-1", is: "cancelled"},
		"continuous, then once":    {life: asked, first: "continuous", then: "run_once", want: "talk-coder-1", is: "cancelled"},
		"told to stop":             {life: asked, first: "continuous", then: "pause", want: "", is: "cancelled"},
		"once, told to stop":       {life: asked, first: "run_once", then: "pause", want: "", is: "cancelled"},
		"it says that it was done": {life: func(s *fakeSession) { s.say("stop ok"); <-s.asked }, first: "continuous", want: "", is: "ok"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.conversing(config.ResumeInterrupted, func(s *fakeSession) {
					if s.id != "coder-1" {
						<-s.asked
						return
					}
					tt.life(s)
				})
				b.start()
				b.command("coder", tt.first)
				b.after(time.Second)
				if tt.then != "" {
					b.command("coder", tt.then)
				}
				b.stopNow()
				past := b.replayed().Agents["coder"].Past
				if got := string(past[len(past)-1].Outcome); got != tt.is && tt.is != "ok" {
					t.Errorf("its session ended as %s", got)
				}
				b.start()
				b.command("coder", "continuous")
				b.after(time.Minute)
				if got := b.resumedBy("coder-2"); got != tt.want {
					t.Errorf("resumed %q, want %q", got, tt.want)
				}
				if cut := strings.HasPrefix(string(b.host.session("coder-2").in),
					`{"prompt":"You were interrupted`); cut != (tt.want != "") {
					t.Errorf("the prompt is %s", b.host.session("coder-2").in)
				}
			})
		})
	}
}

// planConversations lists a plan's statements about conversations, in order.
func planConversations(plan view.Plan) []view.PlanConversation {
	var found []view.PlanConversation
	for _, line := range plan.Lines {
		for _, step := range line.Steps {
			if step.Conversation != nil {
				found = append(found, *step.Conversation)
			}
		}
	}
	return found
}

// TestPlanOfConversations checks that a plan names the conversation that a session resumes, and
// that the start does the same.
func TestPlanOfConversations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		how   config.Resume
		down  func(b *bubble) // runs while no daemon runs
		words string          // in the plan
		want  string          // conversation of the session that is started
	}{
		"it runs": {
			config.ResumeInterrupted, func(*bubble) {},
			"adopt coder-1: it outlived the daemon, as process 1007; it resumes conversation talk-coder-1", "",
		},
		"lost":        {config.ResumeInterrupted, loses, "it resumes conversation talk-coder-1", "talk-coder-1"},
		"lost, never": {config.ResumeNever, loses, "it begins a new conversation: its configuration says `resume: never`", ""},
		"ended well": {
			config.ResumeInterrupted, func(b *bubble) { b.each(func(s *fakeSession) { s.say("stop ok"); s.exit(0) }) },
			"it begins a new conversation: talk-coder-1 ended well", "",
		},
		"ended well, always": {
			config.ResumeAlways, func(b *bubble) { b.each(func(s *fakeSession) { s.say("stop ok"); s.exit(0) }) },
			"2000-01-01T00:00:00Z; it resumes conversation talk-coder-1; then if it failed", "talk-coder-1",
		},
		"died": {
			config.ResumeInterrupted, func(b *bubble) { b.each(func(s *fakeSession) { s.exit(137) }) },
			"resumes conversation talk-coder-1 if it was cut off, else begins a new one", "talk-coder-1",
		},
		"another model": {
			config.ResumeInterrupted, func(b *bubble) { loses(b); b.agent("coder").Model = "m2" },
			"it first asks a person whether to resume conversation talk-coder-1, because its conditions have changed: model: m1 is now m2",
			"?",
		},
		"no conversations": {config.ResumeInterrupted, func(b *bubble) { loses(b); b.driver.resumes = false }, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.conversing(tt.how, asked)
				b.start()
				b.command("coder", "continuous")
				b.after(time.Second)
				b.die()
				tt.down(b)
				plan := b.dryRun()
				line := plan.Lines[0].String()
				if !strings.Contains(line, tt.words) || tt.words == "" && strings.Contains(line, "conversation") {
					t.Errorf("the plan says %s", line)
				}
				b.start()
				b.after(time.Second)
				switch {
				case tt.want == "?":
					b.open1(question.Resume)
				case b.host.startsOf("coder") > 1:
					if got := b.resumedBy("coder-2"); got != tt.want {
						t.Errorf("resumed %q, but the plan says %s", got, line)
					}
				case tt.want != "":
					t.Errorf("no session was started, but the plan says %s", line)
				}
			})
		})
	}
}

func loses(b *bubble) {
	b.each(func(s *fakeSession) { s.finish(session.Exit{Lost: true, Why: "its shim was killed"}) })
}

// TestPlanKnowsTheAnswer checks that the plan uses a person's answer.
func TestPlanKnowsTheAnswer(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]view.PlanConversation{
		view.GoOn: {Do: view.GoOn, ID: "talk-coder-1"},
		view.Anew: {Do: view.Anew, Why: "a person decided so, for talk-coder-1"},
	} {
		inBubble(t, "coder", func(t *testing.T, b *bubble) {
			b.conversing(config.ResumeInterrupted, asked)
			b.start()
			b.command("coder", "continuous")
			b.after(time.Second)
			b.die()
			loses(b)
			b.agent("coder").Model = "m2"
			b.start()
			b.after(time.Second)
			q := b.open1(question.Resume)
			// The daemon crashes when the answer is in the journal and the session has not received
			// it.
			b.dieAtNextAct()
			if _, err := b.engine.Questions.AnswerQuestion(b.t.Context(), human, q.ID, view.QuestionAnswer{Option: option}); err == nil {
				t.Error("the daemon lives")
			}
			b.settle()
			b.die()
			if got := planConversations(b.dryRun()); len(got) != 1 || got[0].Do != want.Do || got[0].ID != want.ID ||
				got[0].Why != want.Why {
				t.Errorf("after %q the plan is %v", option, got)
			}
		})
	}
}

// TestPlanOfATalk checks that a session for channels resumes the agent's earlier conversation.
func TestPlanOfATalk(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada", "bob")
		b.conversing(config.ResumeInterrupted, waitsForPrompts)
		b.start()
		b.retrySay("hello", "")
		b.after(20 * time.Minute) // the sessions have ended
		release := make(chan struct{})
		b.driver.check.set(func(string) error { <-release; return nil })
		b.retrySay("hello again", "")
		b.settle()
		b.crashPoint.die()
		close(release)
		b.die()
		found := false
		for _, line := range b.dryRun().Lines {
			found = found ||
				strings.Contains(line.String(), "start ada-2 (turn)") &&
					strings.Contains(line.String(), "it resumes conversation talk-ada-1")
		}
		if !found {
			t.Errorf("the plan is %v", b.dryRun().Lines)
		}
		b.start()
		b.after(10 * time.Second)
		if got := b.resumedBy("ada-2"); got != "talk-ada-1" {
			t.Errorf("resumed %q", got)
		}
	})
}
