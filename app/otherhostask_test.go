package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
)

// askedOfHost is the open question about a lost host; nil: there is none.
func (b *bubble) askedOfHost() *view.QuestionView {
	b.t.Helper()
	open, err := b.engine.Questions.Questions(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if len(open) > 1 {
		b.t.Fatalf("several questions are open: %+v", open)
	}
	if len(open) == 0 {
		return nil
	}
	return &open[0]
}

// waits is why the step of T1 waits for a host; empty: it does not.
func (b *bubble) waits() string {
	b.t.Helper()
	for _, w := range b.hosts().Waiting {
		return w.Why
	}
	return ""
}

// askBubble loses the host b of a step with on_lost: ask, while c could take it. A person is asked once.
func askBubble(t *testing.T, test func(t *testing.T, b *bubble, o, c *otherHost)) {
	t.Helper()
	teamBubble(t, host.Ask, func(s *fakeSession) {
		<-s.asked
		s.exit(0)
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		o, c := hosts[0], hosts[1]
		o.joins()
		b.give("Write a file")
		o.lives(10 * time.Second)
		o.write("b.txt", "made alone\n")
		o.disconnects()
		c.joins()
		c.lives(30 * time.Second)
		if q := b.askedOfHost(); q != nil || b.hostOf() != "b" {
			t.Fatalf("it may run on b, and a person is asked: %+v", q)
		}
		o.host.killAll() // by the deadline of its shim, which on_lost: ask has
		c.lives(50 * time.Second)
		q := b.askedOfHost()
		if q == nil || q.Kind != "host_lost" || q.Session != "coder-2" ||
			!strings.Contains(q.What, "host b was lost with coder-1, which ran step work of T1") || len(q.Options) != 2 || q.FreeText ||
			b.hostOf() != "" || c.host.startsOf("coder") != 0 {
			t.Fatalf("%+v, on %q", q, b.hostOf())
		}
		if got := b.waits(); got != "waits for an answer to "+q.ID+": b was lost with coder-1" {
			t.Errorf("it %s", got)
		}
		if _, err := b.engine.Questions.AnswerQuestion(t.Context(), human, q.ID, view.QuestionAnswer{Text: "whatever"}); err == nil ||
			!strings.Contains(err.Error(), "elsewhere, wait") {
			t.Errorf("an answer without an option: %v", err)
		}
		var no *table.Refusal
		if _, err := b.engine.Questions.AnswerQuestion(t.Context(), change.Actor{Kind: "agent", ID: "critic"}, q.ID,
			view.QuestionAnswer{Option: "elsewhere"}); !errors.As(err, &no) || no.Row != "X10" {
			t.Errorf("an agent answers: %v", err)
		}
		test(t, b, o, c)
	})
}

func TestAskAnsweredElsewhere(t *testing.T) {
	askBubble(t, func(t *testing.T, b *bubble, o, c *otherHost) {
		if err := b.stop(); err != nil { // the question outlives the daemon
			t.Fatal(err)
		}
		b.start()
		c.lives(10 * time.Second)
		b.answer(b.askedOfHost().ID, view.QuestionAnswer{Option: "elsewhere"})
		c.lives(20 * time.Second)
		if b.hostOf() != "c" || c.host.startsOf("coder") != 1 || b.waits() != "" {
			t.Fatalf("it is on %q, %s", b.hostOf(), b.waits())
		}
		o.connects()
		c.lives(5 * time.Second)
		o.lives(5 * time.Second)
		if late := b.late("b"); len(late) != 1 || late[0].Ref == "" || b.hostOf() != "c" || o.host.startsOf("coder") != 1 {
			t.Errorf("%+v, on %q", late, b.hostOf())
		}
	})
}

func TestAskAnsweredWait(t *testing.T) {
	askBubble(t, func(t *testing.T, b *bubble, o, c *otherHost) {
		b.answer(b.askedOfHost().ID, view.QuestionAnswer{Option: "wait"})
		c.lives(2 * time.Minute)
		if got := b.waits(); got != "waits for b, which was lost with coder-1, as human/tester decided; `fairlead host remove b` lets it begin elsewhere" || c.host.startsOf("coder") != 0 || b.askedOfHost() != nil {
			t.Errorf("it %s", got)
		}
		o.connects()
		o.lives(20 * time.Second)
		if late := b.late("b"); len(late) != 1 || b.hostOf() == "" || o.host.startsOf("coder")+c.host.startsOf("coder") != 2 {
			t.Errorf("%+v, on %q", late, b.hostOf())
		}
	})
}

func TestAskUntilTheHostIsBack(t *testing.T) {
	askBubble(t, func(t *testing.T, b *bubble, o, c *otherHost) {
		id := b.askedOfHost().ID
		o.slow = make(chan struct{})
		o.connects()
		o.lives(10 * time.Second)
		if got := b.waits(); got != "waits until the leader has fetched what coder-1 left on b, which is back" || b.askedOfHost() != nil {
			t.Errorf("it %s, asked %+v", got, b.askedOfHost())
		}
		close(o.slow)
		o.lives(15 * time.Second)
		if q := b.replayed().Questions.Questions[id]; q == nil || q.State != "withdrawn" || b.hostOf() == "" ||
			o.host.startsOf("coder")+c.host.startsOf("coder") != 2 {
			t.Errorf("%+v, on %q", q, b.hostOf())
		}
	})
}

func TestAskUntilTheHostIsRemoved(t *testing.T) {
	askBubble(t, func(t *testing.T, b *bubble, o, c *otherHost) {
		b.answer(b.askedOfHost().ID, view.QuestionAnswer{Option: "wait"})
		c.lives(5 * time.Second)
		if _, err := b.engine.Cluster.RemoveHost(t.Context(), human, "b"); err != nil {
			t.Fatal(err)
		}
		c.lives(15 * time.Second)
		if b.hostOf() != "c" || b.waits() != "" {
			t.Errorf("it is on %q, %s", b.hostOf(), b.waits())
		}
	})
}
