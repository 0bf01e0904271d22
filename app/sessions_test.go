package app

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// TestMalformedSessionIDs checks that malformed session ids match no session and no folder.
func TestMalformedSessionIDs(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.command("coder", "run_once")
		b.settle()
		for _, id := range []string{
			"", "-", "coder", "coder-", "coder-0", "coder-01", "coder-+1", "coder-1 ", " coder-1", "coder-2", "coder--1", "coder-1e0",
			"coder-99999999999999999999", "coder-18446744073709551615", "../x-1", "../coder-1", "coder/../coder-1", "-1", "codr-1",
			"coder-\x001",
		} {
			var unknown *team.Unknown
			if _, err := b.engine.Sessions.Session(t.Context(), id); !errors.As(err, &unknown) {
				t.Errorf("%q: %v", id, err)
			}
			if _, _, err := b.engine.Sessions.Output(t.Context(), id, 0); !errors.As(err, &unknown) {
				t.Errorf("output of %q: %v", id, err)
			}
			if _, err := b.engine.Sessions.Facts(t.Context(), id, -1, 1, time.Second); !errors.As(err, &unknown) {
				t.Errorf("facts of %q: %v", id, err)
			}
		}
		if info, err := b.engine.Sessions.Session(t.Context(), "coder-1"); err != nil || !info.Open || info.Agent != "coder" {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// TestOutputAndFacts checks the output and facts of a session that runs, of one that has ended, and
// of one that the team no longer lists.
func TestOutputAndFacts(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) {
			for range 30 {
				s.say("line of %s", s.id)
			}
			<-s.asked
		}
		b.start()
		b.command("coder", "continuous")
		b.settle()
		ask := func(id string, tail int) []driver.Fact {
			t.Helper()
			facts, err := b.engine.Sessions.Facts(t.Context(), id, -1, tail, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return facts
		}
		read := func(id string, offset int64) string {
			t.Helper()
			out, _, err := b.engine.Sessions.Output(t.Context(), id, offset)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			defer context.AfterFunc(ctx, func() { out.Close() })()
			text, _ := io.ReadAll(out)
			return string(text)
		}
		const all = 30 * len("line of coder-1\n")
		if n := len(ask("coder-1", 10)); n != 10 {
			t.Errorf("%d facts of a session that runs", n)
		}
		if facts := ask("coder-1", 0); len(facts) != 30 || facts[29].Offset != int64(all) {
			t.Errorf("%d facts", len(facts))
		}
		if n := len(read("coder-1", 16)); n != all-16 {
			t.Errorf("%d bytes of a session that runs", n)
		}
		for range 25 { // more than the team lists
			for _, id := range b.host.running() {
				b.host.session(id).exit(0)
			}
			b.settle()
		}
		for _, id := range []string{"coder-1", "coder-20"} {
			if n, m := len(ask(id, 7)), len(read(id, 0)); n != 7 || m < all {
				t.Errorf("%s: %d facts, %d bytes", id, n, m)
			}
			if info, err := b.engine.Sessions.Session(t.Context(), id); err != nil || info.Open || (id == "coder-20" && info.Outcome != "ok") {
				t.Errorf("%s: %+v, %v", id, info, err)
			}
		}
		if m := b.engine.Sessions.Slots["coder"]; len(m.Doing) > 4 {
			t.Errorf("actions of old sessions are kept: %v", m.Doing)
		}
	})
	n := sessions.Newest{Most: sessions.FactsMax}
	for range 100 {
		n.Add(driver.Fact{Text: strings.Repeat("x", 1<<20)})
	}
	if len(n.Facts) != sessions.FactsBytesMax>>20 {
		t.Errorf("%d megabytes are kept", len(n.Facts))
	}
}

// TestRemovedAgent checks that an agent that is no longer configured finishes its session and
// starts no other one. The same holds for an agent whose driver is missing.
func TestRemovedAgent(t *testing.T) {
	t.Parallel()
	for _, driverGone := range []bool{false, true} {
		inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
			b.start()
			b.command("coder", "continuous")
			b.settle()
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			b.conf.Agents = b.conf.Agents[1:]
			if driverGone {
				b.recordDriver("coder", "vanished")
			}
			b.start()
			if a := b.view("coder"); a.Session == nil || !a.Removed {
				t.Errorf("%+v", a)
			}
			if _, err := b.engine.Status.Why(t.Context(), "coder"); err != nil {
				t.Error(err)
			}
			b.host.session("coder-1").say("usage 1 1 1")
			b.after(time.Second)
			b.host.session("coder-1").exit(0)
			b.settle()
			if a := b.view("coder"); a.Session != nil || b.host.startsOf("coder") != 1 || (!driverGone && a.UsageToday.InputTokens != 1) {
				t.Errorf("%+v, %d starts", a, b.host.startsOf("coder"))
			}
			if view, err := b.engine.Status.Team(t.Context()); err != nil || len(view.Agents) != 1 {
				t.Errorf("%+v, %v", view, err)
			}
			if err := b.engine.Agents.Stop(t.Context(), human, false); err != nil {
				t.Fatal(err)
			}
			b.settle()
			select {
			case <-b.engine.Loop.Stopped():
			default:
				t.Error("the stop is not complete")
			}
		})
	}
}

// recordDriver writes into the journal that another driver ran an agent.
func (b *bubble) recordDriver(agent, driver string) {
	b.t.Helper()
	a := b.replayed().Agents[agent]
	settings := a.Settings
	settings.Driver = driver
	records, err := loop.AppendRecords(nil, []change.Change{{
		Machine: "team", Entity: "agent/" + agent, Row: "E3", From: "configured", To: "configured", Trigger: "agent_configured",
		At: time.Now(), Actor: sessions.ByRecovery, Body: &team.AgentSet{Settings: settings},
	}})
	if err == nil {
		_, err = b.slate.Append(b.t.Context(), records)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestLoopChangesHands checks that an agent's loop changes between Fairlead and foreign across a
// restart, in both directions, while a session runs: the running session ends or finishes, and no
// second one runs meanwhile.
func TestLoopChangesHands(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) { <-s.asked }
		coder := b.agent("coder")
		coder.Command = []string{"loop"}
		b.start()
		b.command("coder", "continuous")
		b.settle()
		for round := range 3 {
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			coder.Loop = config.LoopForeign
			b.start()
			if ids := b.host.running(); len(ids) != 1 {
				t.Fatalf("round %d, foreign: %v run", round, ids)
			}
			if round == 0 { // Fairlead's last session finishes first
				b.host.session(b.host.running()[0]).exit(0)
			}
			b.after(time.Minute)
			ids := b.host.running()
			if len(ids) != 1 || b.host.session(ids[0]).kind != driver.Foreign && round == 0 {
				t.Fatalf("round %d, foreign: %v run", round, ids)
			}
			if round > 0 {
				b.host.session(ids[0]).exit(0)
				b.after(time.Minute)
			}
			if s := b.host.session(b.host.running()[0]); s.kind != driver.Foreign {
				t.Fatalf("round %d: %s is a %s", round, s.id, s.kind)
			}
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			coder.Loop = config.LoopFairlead
			b.start()
			b.after(time.Minute)
			if s := b.host.session(b.host.running()[0]); s.kind != driver.Work {
				t.Fatalf("round %d: %s is a %s, want one of Fairlead's loop", round, s.id, s.kind)
			}
			b.checkConsistent()
		}
	})
}

// SPEC C14: a session that does not end delays a stop until the second stop.
func TestStopOfASessionWithoutEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.start()
		b.command("coder", "continuous")
		b.settle()
		faults := 0
		b.host.ends.set(func(string) error { // it does not accept the request to end at first, either
			if faults++; faults < 4 {
				return errors.New("the shim hangs")
			}
			return nil
		})
		for _, now := range []bool{false, false, true} {
			select {
			case <-b.engine.Loop.Stopped():
				t.Fatal("it was stopped")
			default:
			}
			if err := b.engine.Agents.Stop(t.Context(), human, now); err != nil {
				t.Fatal(err)
			}
			b.after(24 * time.Hour)
		}
		select {
		case <-b.engine.Loop.Stopped():
		default:
			t.Error("the stop is not complete")
		}
		b.is("coder", "continuous", "pause")
	})
}
