package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/work/agents"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/tools"
)

var byBob = change.Actor{Kind: "agent", ID: "bob"}

// SPEC X9: an agent orders others at a rate. Above it a pause still counts, and is recorded once; a person has no rate. Its twin is
// an agent below the rate.
func TestRateOfOrders(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada eve bob", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { s.lasts(24 * time.Hour) }
		b.start()
		order := func(by change.Actor, agent, word string) error {
			_, err := b.engine.Agents.Command(t.Context(), by, agent, word, "because")
			return err
		}
		for n := range agents.OrdersMax {
			if err := order(byBob, "ada", []string{"continuous", "run_cleanup"}[n%2]); err != nil {
				t.Fatalf("order %d, below the rate: %v", n, err)
			}
		}
		var no *table.Refusal
		if err := order(byBob, "ada", "continuous"); !errors.As(err, &no) || no.Row != "X9" || !strings.Contains(no.Reason, "30 orders") ||
			!strings.Contains(no.Reason, "10s") {
			t.Errorf("above the rate: %v", err)
		}
		if err := order(human, "eve", "continuous"); err != nil {
			t.Errorf("a person: %v", err)
		}
		recorded := func(pauses int) int {
			b.settle() // the session's own changes are no orders
			before := len(strings.Fields(b.rows("control/ada")))
			for range pauses {
				if err := order(byBob, "ada", "pause"); err != nil {
					t.Fatal(err)
				}
			}
			return len(strings.Fields(b.rows("control/ada"))) - before
		}
		if n := recorded(1); n == 0 || b.view("ada").DesiredState != "pause" {
			t.Errorf("a pause made %d changes, and %s is desired", n, b.view("ada").DesiredState)
		}
		if n := recorded(999); n != 0 {
			t.Errorf("999 more pauses made %d changes", n)
		}
		for range 1000 {
			if _, err := b.engine.Agents.Hold(t.Context(), byBob, true, "stop"); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(b.rows("team/team"), "X8"); n != 1 {
			t.Errorf("1,000 holds made %d changes", n)
		}
		b.after(agents.OrdersEvery)
		if err := order(byBob, "eve", "run_once"); err != nil {
			t.Errorf("after the interval: %v", err)
		}
	})
}

// SPEC X9: an agent that asks 1,000 questions, and takes each back, is asked no more of above its rate: the others are answered with
// no, and not recorded. A rule's answers have a higher rate, so ordinary work passes.
func TestRateOfQuestions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allow     []string
		yes, most int
	}{
		"people are asked": {most: questions.AskedMax},
		"a rule answers":   {allow: []string{"Bash(make *)"}, yes: 500, most: 500},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				var calls []string
				for n := range 500 {
					calls = append(calls, fmt.Sprintf(`Bash {"command":"make %d"}`, n))
				}
				r := &replies{}
				b.host.play = r.asksFor(calls...)
				b.agent("coder").Permissions = config.Permissions{Allow: c.allow, Timeout: time.Millisecond}
				b.start()
				b.command("coder", "run_once")
				b.after(90 * time.Second)
				asked := len(b.replayed().Questions.Questions)
				yes := 0
				for _, answer := range r.of("coder-1") {
					if answer == "yes" {
						yes++
					}
				}
				total := 0
				for _, ch := range b.history() {
					if strings.HasPrefix(ch.Entity, "question/") && ch.From == "none" {
						total++
					}
				}
				if yes != c.yes || total < c.most || total > c.most+60 {
					t.Errorf("%d questions are recorded, %d kept, %d answers are yes of %d", total, asked, yes, len(r.of("coder-1")))
				}
				if got := len(r.of("coder-1")); got != 500 {
					t.Errorf("%d answers of 500", got)
				}
			})
		})
	}
}

// SPEC X9: a program that writes an agent's file in a loop makes a bounded number of changes; the last content counts, and a pause
// counts at once.
func TestRateOfFiles(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { s.lasts(24 * time.Hour) }
		b.start()
		b.command("ada", "run_once")
		b.settle()
		words := []string{"continuous", "run_cleanup"}
		flood := func() (changes int) {
			before := len(b.history())
			for n := range 2000 {
				b.disk.writeDesired("ada", words[n%2], fmt.Sprint(n), time.Now().Add(time.Duration(n)*time.Millisecond))
			}
			b.settle()
			return len(b.history()) - before
		}
		if n := flood(); n < agents.SightsMax/2 || n > 2*agents.SightsMax {
			t.Errorf("2,000 writes at one moment made %d changes", n)
		}
		b.after(time.Second)
		b.is("ada", "run_cleanup", "run_once")
		flood()
		b.disk.writeDesired("ada", "pause", "stop", time.Now().Add(time.Minute))
		b.settle()
		if b.view("ada").DesiredState != "pause" {
			t.Errorf("a pause waits: %s", b.view("ada").DesiredState)
		}
	})
}

// SPEC X9: an agent that asks people 1,000 questions with its tool does not bury the inbox; the refusal has the numbers.
func TestRateOfAskHuman(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { <-s.asked; s.say("stop ok") }
		b.acting(&toolCaller{})
		b.command("ada", "run_once")
		b.settle()
		ada, asked := callerOf("ada", "ada-1"), 0
		var last error
		for n := range 1000 {
			if _, err := b.engine.Tools.ActAskHuman(t.Context(), ada, tools.AgentQuestion{Text: fmt.Sprint("Which one? ", n)},
				time.Millisecond); err != nil {
				last = err
				continue
			}
			asked++
		}
		open, err := b.engine.Questions.Questions(t.Context())
		if asked != questions.AskedMax || err != nil || len(open) != questions.AskedMax {
			t.Errorf("%d were asked, and %d are in the inbox: %v", asked, len(open), err)
		}
		var no *table.Refusal
		if !errors.As(last, &no) || no.Row != "X9" || !strings.Contains(no.Reason, "60 questions") ||
			!strings.Contains(no.Reason, "every 2s") {
			t.Errorf("above the rate: %v", last)
		}
	})
}
