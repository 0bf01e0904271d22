package app

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// pendingAction returns the only pending action of a foreign agent.
func (b *bubble) pendingAction(agent string) view.ActionView {
	b.t.Helper()
	views, err := b.engine.Channels.AgentActions(b.t.Context(), agent, 0)
	if err != nil || len(views) != 1 {
		b.t.Fatalf("the pending actions of %s are %+v, %v", agent, views, err)
	}
	return views[0]
}

// foreign makes agents of the bubble foreign.
func (b *bubble) foreign(agents ...string) {
	for _, name := range agents {
		b.agent(name).Loop = config.LoopForeign
	}
}

// SPEC T1, T4, T7, T10, T12, T22: foreign agents fetch their actions and act under the numbers of
// their turns. Text under another number is late.
func TestForeignAgentsTakeTurns(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		ctx := t.Context()
		b.inOneChannel("ada", "bob")
		b.foreign("ada", "bob")
		b.start()
		var refusal *table.Refusal
		if err := b.engine.Channels.AgentBeat(ctx, "ada"); !errors.As(err, &refusal) || refusal.Row != "T1" {
			t.Errorf("a heartbeat of a disconnected agent: %v", err)
		}
		for _, name := range []string{"ada", "bob"} {
			if _, err := b.engine.Channels.AgentReady(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		var waited sync.WaitGroup
		var came, again []view.ActionView
		waited.Go(func() { came, _ = b.engine.Channels.AgentActions(ctx, "ada", time.Minute) })
		waited.Go(func() { again, _ = b.engine.Channels.AgentActions(ctx, "ada", time.Minute) })
		b.after(8 * time.Second)
		b.retrySay("please review", "")
		waited.Wait()
		if !reflect.DeepEqual(came, again) {
			t.Errorf("two requests that wait receive %+v and %+v", came, again)
		}
		if len(came) != 1 || came[0].Turn != 1 || !strings.Contains(came[0].Text, "> please review") ||
			!strings.Contains(came[0].Text, "POST /api/v1/channels/reviews/said") || len(came[0].Messages) != 1 {
			t.Fatalf("ada received %+v", came)
		}
		if _, err := b.engine.Channels.AgentConfirm(ctx, "ada", came[0].Key); err != nil {
			t.Fatal(err)
		}
		if views, err := b.engine.Channels.AgentActions(ctx, "ada", 0); err != nil || len(views) != 0 {
			t.Errorf("ada has the turn, but pending is %+v, %v", views, err)
		}
		if _, err := b.engine.Channels.AgentWait(ctx, "reviews", "ada", 1, "a build"); err != nil {
			t.Fatal(err)
		}
		if v, err := b.engine.Channels.Channel(ctx, "reviews"); err != nil || v.State != "WAITING" || v.Why != "a build" {
			t.Errorf("the channel is %+v, %v", v, err)
		}
		if _, err := b.engine.Channels.AgentGoesOn(ctx, "reviews", "ada", 1); err != nil {
			t.Fatal(err)
		}
		if views, err := b.engine.Channels.AgentActions(ctx, "ada", 0); err != nil || len(views) != 0 {
			t.Errorf("ada has continued, but pending is %+v, %v", views, err)
		}
		if _, err := b.engine.Channels.AgentSaid(ctx,
			view.Speech{Channel: "reviews", Agent: "ada", Turn: 1, Text: "it is good", Complete: true}); err != nil {
			t.Fatal(err)
		}
		if todo := b.pendingAction("bob"); todo.Turn != 2 || !strings.Contains(todo.Text, "> it is good") {
			t.Errorf("bob receives %+v", todo)
		}
		if _, err := b.engine.Channels.AgentSaid(ctx,
			view.Speech{Channel: "reviews", Agent: "ada", Turn: 1, Text: "and one more thing"}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.Channels.AgentPass(ctx, "reviews", "ada", 1); !errors.As(err, &refusal) {
			t.Errorf("ada passes without the turn: %v", err)
		}
		if _, err := b.engine.Channels.AgentPass(ctx, "reviews", "bob", 2); err != nil {
			t.Fatal(err)
		}
		page, err := b.engine.Channels.ChannelEntries(ctx, "reviews", view.EntryQuery{})
		if err != nil || len(page.Entries) != 3 || page.Entries[2].Kind != "late" {
			t.Errorf("the page is %+v, %v", page, err)
		}
		if got := b.rows("channel/reviews"); !strings.Contains(got, "T22") || !strings.Contains(got, "T12") {
			t.Errorf("the rows are %s", got)
		}
	})
}

// SPEC T11: three missed heartbeats disconnect an agent. After a restart they are counted from the
// start.
func TestForeignAgentFallsSilent(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		ctx := t.Context()
		b.inOneChannel("ada", "bob")
		b.foreign("ada", "bob")
		b.start()
		for _, name := range []string{"ada", "bob"} {
			if _, err := b.engine.Channels.AgentReady(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		b.retrySay("please review", "")
		for range 4 {
			b.after(10 * time.Second)
			if err := b.engine.Channels.AgentBeat(ctx, "bob"); err != nil {
				t.Fatal(err)
			}
			if v, _ := b.engine.Channels.Channel(ctx, "reviews"); v.Holder == "bob" {
				break
			}
		}
		v, err := b.engine.Channels.Channel(ctx, "reviews")
		if err != nil || v.Holder != "bob" || v.Agents[0].Connected || !v.Agents[0].Crashed {
			t.Fatalf("ada was silent for 40 s, but the channel is %+v, %v", v, err)
		}
		if !strings.Contains(b.rows("channel/reviews"), "T11") {
			t.Errorf("the rows are %s", b.rows("channel/reviews"))
		}
		b.after(25 * time.Second)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.after(20 * time.Second)
		b.start()
		b.after(20 * time.Second)
		if v, _ := b.engine.Channels.Channel(ctx, "reviews"); !v.Agents[1].Connected {
			t.Error("bob counts as disconnected for a time in which no daemon ran")
		}
		b.after(11 * time.Second)
		if v, _ := b.engine.Channels.Channel(ctx, "reviews"); v.Agents[1].Connected {
			t.Error("bob was silent for 31 s but counts as connected")
		}
	})
}

// J3: an agent that cannot be started is not connected. It connects as soon as it can be started.
func TestAgentsAreProbed(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada", "bob")
		b.driver.check.set(func(string) error { return errors.New("it is not installed") })
		b.start()
		b.retrySay("please review", "")
		v, err := b.engine.Channels.Channel(t.Context(), "reviews")
		if err != nil || v.Parked != string(channel.NoAgents) || v.Agents[0].Connected {
			t.Fatalf("the channel is %+v, %v", v, err)
		}
		if n := strings.Count(b.logged.String(), "it is not installed"); n != 2 {
			t.Errorf("reported %d times, want once for each of two agents", n)
		}
		b.driver.check.set(nil)
		b.after(31 * time.Second)
		if v, _ := b.engine.Channels.Channel(t.Context(), "reviews"); v.Holder == "" || !v.Agents[0].Connected || !v.Agents[1].Connected {
			t.Errorf("the agents can be started, but the channel is %+v", v)
		}
	})
}

// TestPagesOfAConversation checks that a page of a conversation contains whole changes, in order,
// for every query.
func TestPagesOfAConversation(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		ctx := t.Context()
		b.inOneChannel("ada", "bob")
		b.foreign("ada", "bob")
		b.start()
		for range 30 {
			if _, err := b.engine.Channels.Say(ctx, human, "reviews", strings.Repeat("x", 30), "queue"); err != nil {
				t.Fatal(err)
			}
		}
		whole := func(e *App) []view.ChannelEntry {
			t.Helper()
			page, err := e.Channels.ChannelEntries(ctx, "reviews", view.EntryQuery{Limit: 500, Moves: true})
			if err != nil || page.More || len(page.Entries) < 30 {
				t.Fatalf("%d entries, %v", len(page.Entries), err)
			}
			return page.Entries
		}
		check := func(e *App) {
			t.Helper()
			all := whole(e)
			var older []view.ChannelEntry
			for before := uint64(0); ; {
				page, err := e.Channels.ChannelEntries(ctx, "reviews", view.EntryQuery{Limit: 7, Before: before, Moves: true})
				if err != nil || len(page.Entries) == 0 {
					t.Fatalf("before %d: %v, %v", before, page, err)
				}
				older = append(page.Entries, older...)
				before = page.Entries[0].Seq
				if !page.More {
					break
				}
			}
			var newer []view.ChannelEntry
			for after := uint64(1); ; {
				page, err := e.Channels.ChannelEntries(ctx, "reviews", view.EntryQuery{Limit: 7, After: after, Moves: true})
				if err != nil || len(page.Entries) == 0 {
					t.Fatalf("after %d: %v, %v", after, page, err)
				}
				newer = append(newer, page.Entries...)
				after = page.Entries[len(page.Entries)-1].Seq
				if !page.More {
					break
				}
			}
			if len(older) != len(all) || len(newer) != len(all) {
				t.Errorf("%d entries, %d from the end, %d from the beginning", len(all), len(older), len(newer))
			}
		}
		check(b.engine)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		check(b.engine) // the same from the journal alone
		if v, err := b.engine.Channels.Channel(ctx, "reviews"); err != nil || v.Last == nil || v.Last.N != 30 {
			t.Errorf("the last messages are %+v, %v", v.Last, err)
		}
	})
}

// TestWaitForActionsEnds checks that a request that waits for actions ends with its caller and with
// the daemon.
func TestWaitForActionsEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada")
		b.foreign("ada")
		b.start()
		if _, err := b.engine.Channels.AgentReady(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var gone, closed error
		var waits sync.WaitGroup
		waits.Go(func() { _, gone = b.engine.Channels.AgentActions(ctx, "ada", time.Minute) })
		waits.Go(func() { _, closed = b.engine.Channels.AgentActions(t.Context(), "ada", time.Minute) })
		b.settle()
		cancel()
		b.settle()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		waits.Wait()
		if !errors.Is(gone, context.Canceled) || !errors.Is(closed, loop.ErrClosed) {
			t.Errorf("the requests returned %v and %v", gone, closed)
		}
		var unknown *team.Unknown
		b.start()
		if _, err := b.engine.Channels.AgentActions(t.Context(), "eve", 0); !errors.As(err, &unknown) {
			t.Errorf("actions of an unknown agent: %v", err)
		}
	})
}
