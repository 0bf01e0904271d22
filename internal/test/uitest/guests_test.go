package uitest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Guests is the real server with channels whose agents have `loop: foreign`. The test acts for
// them, as a program does that joins over HTTP. Actions stay unconfirmed until a method says
// otherwise, so that the timer of a turn starts only with TimeOut.
type Guests struct {
	*Server
	Proxy *Proxy
}

// person is the author of messages that the test posts.
var person = change.Actor{Kind: "human", ID: "you"}

// GuestsYAML is the fairlead.yaml of these agents; the sections in rest follow.
func GuestsYAML(rest string, agents ...string) string {
	var b strings.Builder
	b.WriteString("version: 1\nagents:\n")
	for _, a := range agents {
		fmt.Fprintf(&b, "  %s: {driver: exec, command: [\"true\"], loop: foreign, workspace: guests/%s, turn_timeout: 1h}\n", a, a)
	}
	b.WriteString(rest)
	return b.String()
}

// NewGuests serves the team of a fairlead.yaml and connects the agents in this order.
func NewGuests(t testing.TB, config string, agents ...string) *Guests {
	t.Helper()
	files := map[string]string{"fairlead.yaml": config}
	for _, a := range agents {
		files["guests/"+a+"/README"] = "The workspace of " + a + ".\n"
	}
	s := NewServer(t, files)
	g := &Guests{Server: s, Proxy: s.Intercept()}
	for _, a := range agents {
		if _, err := s.engine.Channels.AgentReady(t.Context(), a); err != nil {
			t.Fatalf("connect %s: %v", a, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var beats sync.WaitGroup
	beats.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-wait.After(channel.BeatEvery / 2):
			}
			for _, a := range agents {
				_ = s.engine.Channels.AgentBeat(ctx, a) // an agent that lacks heartbeats leaves the channel, which the story sees
			}
		}
	})
	t.Cleanup(func() { cancel(); beats.Wait() })
	return g
}

func (g *Guests) must(_ any, err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// head returns the channel's state: the turn, the agent that has it, and the interruption.
func (g *Guests) head(name string) (head channel.Head) {
	g.t.Helper()
	g.must(nil, g.engine.Loop.View(g.t.Context(), func(t *team.Team) { head = t.Channels.ByID[channel.ChannelID(name)].Head }))
	return head
}

// turn waits until an agent has the turn, and returns the channel's state.
func (g *Guests) turn(name string) (head channel.Head) {
	g.t.Helper()
	if !wait.Poll(func() bool { head = g.head(name); return head.Holder != "" }) {
		g.t.Fatalf("no agent has the turn in %s: %s", name, head.Parked)
	}
	return head
}

// confirm acknowledges the pending actions of these kinds.
func (g *Guests) confirm(agent channel.AgentID, kinds ...channel.ActionKind) {
	g.t.Helper()
	actions, err := g.engine.Channels.AgentActions(g.t.Context(), string(agent), 0)
	g.must(nil, err)
	for _, a := range actions {
		if slices.Contains(kinds, channel.ActionKind(a.Do)) {
			g.must(g.engine.Channels.AgentConfirm(g.t.Context(), string(agent), a.Key))
		}
	}
}

// Say posts text of the agent that has the turn; done ends the turn.
func (g *Guests) Say(name, text string, done bool) {
	g.t.Helper()
	h := g.turn(name)
	g.must(g.engine.Channels.AgentSaid(g.t.Context(),
		view.Speech{Channel: name, Agent: string(h.Holder), Turn: h.Turn, Text: text, Complete: done}))
}

// Answer posts the answer to the person who interrupted.
func (g *Guests) Answer(name, text string) {
	g.t.Helper()
	h := g.head(name)
	g.confirm(h.Holder, channel.StopWork)
	g.confirm(h.Aside.Agent, channel.StopWork, channel.TellAside)
	g.must(g.engine.Channels.AgentSaid(g.t.Context(),
		view.Speech{Channel: name, Agent: string(h.Aside.Agent), Re: h.Aside.Message, Text: text, Ended: true}))
}

// Late posts text of an agent for a turn that has ended.
func (g *Guests) Late(name, agent string, turn uint64, text string) {
	g.t.Helper()
	g.must(g.engine.Channels.AgentSaid(g.t.Context(), view.Speech{Channel: name, Agent: agent, Turn: turn, Text: text, Complete: true}))
}

// Wait lets the agent that has the turn ask to wait.
func (g *Guests) Wait(name, why string) {
	g.t.Helper()
	h := g.turn(name)
	g.must(g.engine.Channels.AgentWait(g.t.Context(), name, string(h.Holder), h.Turn, why))
}

// Pass lets the agent that has the turn pass it.
func (g *Guests) Pass(name string) {
	g.t.Helper()
	h := g.turn(name)
	g.must(g.engine.Channels.AgentPass(g.t.Context(), name, string(h.Holder), h.Turn))
}

// TimeOut confirms the turn, which starts its timer. The agent must have a short limit. On a slow
// machine the turn may have timed out already, if an interruption started the timer before.
func (g *Guests) TimeOut(name string) {
	g.t.Helper()
	var h channel.Head
	wait.Until(g.t, "a turn, or the rest after one that timed out", func() bool {
		h = g.head(name)
		return h.Holder != "" || h.Parked == channel.Quiet
	})
	if h.Holder != "" {
		g.confirm(h.Holder, channel.TellTurn, channel.TellGoOn)
	}
}

// Hear posts a message of a person; an empty mode is the channel's.
func (g *Guests) Hear(name, text, mode string) {
	g.t.Helper()
	g.must(g.engine.Channels.Say(g.t.Context(), person, name, text, mode))
}

// Converse lets the agents of a channel complete n turns. One of them must have the turn.
func (g *Guests) Converse(name string, n int) {
	g.t.Helper()
	for i := range n {
		g.Say(name, fmt.Sprintf("word %d of many, said by %s", i, g.head(name).Holder), true)
	}
}

// RealGuests is the target of scenarios in which a test decides what the agents of a channel do.
func RealGuests(t *testing.T) Target {
	t.Helper()
	agents := []string{"coder", "reviewer"}
	config := GuestsYAML("channels:\n  quay: {agents: [coder, reviewer], waitTimeoutSeconds: 3600}\n", agents...)
	g := NewGuests(t, strings.Replace(config, "guests/reviewer, turn_timeout: 1h", "guests/reviewer, turn_timeout: 1s", 1), agents...)
	refuse := func(path, reason string) func() string {
		return func() string { g.Proxy.Refuse("POST", path, reason); return reason }
	}
	return Target{URL: g.URL, Agent: "coder", Line: NewLine(t, g.URL), ChannelStory: &ChannelStory{
		Name: "quay", First: "coder", Next: "reviewer",
		Done:    func(text string) { g.Say("quay", text, true) },
		Aside:   func(text string) { g.Answer("quay", text) },
		TimeOut: func() { g.TimeOut("quay") },
		Wait:    func(why string) { g.Wait("quay", why) },
		Late:    func(text string) { g.Late("quay", "coder", 1, text) },
		Refuse:  refuse("/channels/quay/skip", "the team is being stopped"),
		Deaf:    refuse("/channels/quay/messages", "256 messages wait for an answer"),
	}}
}
