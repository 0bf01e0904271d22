package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// The actions of an agent inside one of Fairlead's sessions, through the tools (MCP) that the
// session was given. The token identifies the agent; what the agent claims about its identity is
// ignored. A turn is found by the session, which knows what it was told last, so a late call cannot
// end another agent's turn.
//
// Text and calls arrive in two ways. An agent's text arrives through its output, with a short delay;
// a call arrives at once. So a call that depends on earlier text waits until that text is in the
// journal (wordsFirst). The end of a turn is recorded in the channel and takes effect when the
// listener has read the whole answer.

// AgentCaller is an agent in one of its sessions, as its token names it. Only the hash proves it: it is
// compared with the session's in the journal when the call arrives, and again when it takes effect.
type AgentCaller struct {
	Agent     string
	Session   string
	TokenHash string
	Own       bool // the session's own socket proves it in place of a token
}

// SessionOver says that a token does not belong to an open session.
type SessionOver struct{ AgentCaller }

func (s *SessionOver) Error() string {
	return fmt.Sprintf("session %s of %s is over, or this is not its token; a new session gets one of its own",
		clip.Text(s.Session, loop.ActorBytesMax), clip.Text(s.Agent, loop.ActorBytesMax))
}

// byCaller is who acts, as the journal tells it.
func byCaller(c AgentCaller) change.Actor { return turns.ByAgent(c.Agent) }

// acting finds the seat and the session of who acts; it runs in the loop.
func (c *Controller) acting(t *team.Team, caller AgentCaller) (*sessions.Slot, *team.Session, error) {
	m := c.sessions.Slots[caller.Agent]
	if run, step, own := sessions.StepParts(caller.Agent); m == nil && own {
		if r := c.runs.Live[run]; r != nil {
			m = r.Slots[step]
		}
	}
	if m == nil || m.Run == "" && t.Agents[caller.Agent] == nil {
		return nil, nil, &SessionOver{caller}
	}
	m = m.With(t, caller.Session)
	s := m.Open(t)
	if s == nil || s.ID != caller.Session || len(s.TokenHashes) == 0 || !caller.Own && !slices.Contains(s.TokenHashes, caller.TokenHash) {
		return nil, nil, &SessionOver{caller}
	}
	return m, s, nil
}

// ActOpen says whether the session is open: nil, or *SessionOver.
func (c *Controller) ActOpen(ctx context.Context, caller AgentCaller) error {
	var over error
	return cmp.Or(c.loop.View(ctx, func(t *team.Team) { _, _, over = c.acting(t, caller) }), over)
}

// untilSeen waits, a few seconds at most, until it is in the journal that the session's process was
// seen: one that is quick calls before.
func (c *Controller) untilSeen(ctx context.Context, caller AgentCaller) {
	ctx, cancel := context.WithTimeout(ctx, wordsWait)
	defer cancel()
	_ = c.loop.Until(ctx, func(t *team.Team) bool { // the call is judged again after it, whatever came first
		_, s, err := c.acting(t, caller)
		return err != nil || s.Phase != session.Open
	})
}

// act submits what an agent did in a channel. late: it is recorded, but changes no turn (N3).
func (c *Controller) act(ctx context.Context, caller AgentCaller, text string, what channel.Input, look func(*team.Team)) (late bool,
	err error,
) {
	ev := loop.EventBy(byCaller(caller), "", what)
	ev.Text = text
	_, err = c.loop.Do(ctx, loop.Request{Event: ev, Look: look, Found: func(changes []change.Change) {
		for i := range changes {
			late = late || changes[i].Trigger == string(channel.SaidLate)
		}
	}})
	if err != nil && !loop.IsAnswer(err) {
		return false, err // Found may still run
	}
	return late, err
}

// holding is the turn that an act is about.
type holding struct {
	token channel.Token
	mid   bool // its answer is under way in this session
	late  bool // it was its turn, and is not any more
	state channel.State
	lease channel.Lease
	m     *sessions.Slot
}

// turnOf finds the turn in which an agent acts: the one that its session was told last, or, if the
// agent fetches its turns itself, the one that it has. It runs in the loop. The error is a refusal.
func (c *Controller) turnOf(t *team.Team, caller AgentCaller, channelName, event string) (h holding, err error) {
	m, s, err := c.acting(t, caller)
	if err != nil {
		return h, err
	}
	h.m = m
	id := channel.AgentID(caller.Agent)
	if channelName != "" && t.Channels.ByID[channel.ChannelID(channelName)] == nil {
		return h, &team.Unknown{What: "channel", Name: clip.Text(channelName, loop.ActorBytesMax), Known: t.ChannelsOf(caller.Agent)}
	}
	in := func(ch channel.ChannelID) bool { return channelName == "" || string(ch) == channelName }
	if delivery := s.Delivery; s.ServesChannels() && delivery != nil && !team.IsLeadToken(delivery.Token) && in(delivery.Token.Channel) {
		if s.AnswerPending() && delivery.Re != 0 {
			return h, &table.Refusal{
				Subject: caller.Agent + " in #" + string(delivery.Token.Channel), Event: event, State: "answering a person", Row: "T17",
				Reason: fmt.Sprintf("it answers message %d, which needs no turn; the end of its answer is the end of that", delivery.N),
			}
		}
		if delivery.Token.Turn != 0 {
			h.token, h.mid = delivery.Token, s.AnswerPending()
			h.see(t)
			if !h.late || channelName != "" || h.mid {
				return h, nil
			}
		}
	}
	var held []string
	for _, name := range t.ChannelsOf(caller.Agent) {
		ch := t.Channels.ByID[channel.ChannelID(name)]
		if ch != nil && ch.Head.Holder == id && in(channel.ChannelID(name)) && ch.Head.Lease.Delivered {
			held = append(held, name)
			h.token = channel.Token{Channel: channel.ChannelID(name), Agent: id, Turn: ch.Head.Turn}
		}
	}
	switch {
	case len(held) == 1:
		h.see(t)
		return h, nil
	case len(held) > 1:
		return h, &table.Refusal{
			Subject: caller.Agent, Event: event, State: "ACTIVE in " + strings.Join(held, ", "), Row: "T7",
			Reason: "it holds more than one turn; name the channel that is meant",
		}
	case h.token.Turn != 0:
		return h, nil // late
	}
	return h, c.noTurn(t, caller, channelName, event)
}

// see reads the state of the turn from the channel.
func (h *holding) see(t *team.Team) {
	c := t.Channels.ByID[h.token.Channel]
	h.late = c == nil || c.Head.Holder != h.token.Agent || c.Head.Turn != h.token.Turn
	h.state = t.Channels.StateOf(h.token.Agent, h.token.Channel)
	if !h.late {
		h.lease = c.Head.Lease
	}
}

// noTurn says why there is no turn to act in.
func (c *Controller) noTurn(t *team.Team, caller AgentCaller, channelName, event string) error {
	no := &table.Refusal{Subject: caller.Agent, Event: event, State: "without a turn", Row: "T7"}
	states := c.channels.TurnsOf(caller.Agent)
	switch waits := c.untoldTurn(t, caller.Agent); {
	case waits != "":
		no.State, no.Reason = "ACTIVE in #"+waits, "its turn there begins when this session is over: it has not been told what was said"
	case len(states) == 0:
		no.Reason = "it is in no channel; what it does here needs no turn, and ends with its answer"
	case channelName != "":
		no.Subject, no.State = caller.Agent+" in #"+channelName,
			string(t.Channels.StateOf(channel.AgentID(caller.Agent), channel.ChannelID(channelName)))
		no.Reason = "it does not hold the turn there; it is told when it does"
	default:
		no.Reason = "it holds no turn in " + strings.Join(hashed(table.Names(states)), ", ") + "; it is told when it does"
	}
	return no
}

// untoldTurn is a channel in which an agent holds the turn and was not told so yet.
func (c *Controller) untoldTurn(t *team.Team, agent string) string {
	for _, name := range t.ChannelsOf(agent) {
		if ch := t.Channels.ByID[channel.ChannelID(name)]; ch != nil && ch.Head.Holder == channel.AgentID(agent) &&
			!ch.Head.Lease.Delivered {
			return name
		}
	}
	return ""
}

func hashed(names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, "#"+name)
	}
	return out
}

const (
	wordsWait = 3 * time.Second        // for the listener to report what was said before a call; it reports once a second
	callWait  = 250 * time.Millisecond // for a call to be seen in the output; some programs never show it
)

// wordsFirst waits, a few seconds at most, until what a session said before a call is in the
// journal: else it would come after what the call does. tool is what the call looks like in the
// output, where it is to be seen there at all.
func (c *Controller) wordsFirst(ctx context.Context, caller AgentCaller, tool string) {
	ctx, cancel := context.WithTimeout(ctx, wordsWait)
	defer cancel()
	c.untilSeen(ctx, caller)
	proc := c.sessions.AwaitProc(ctx, caller.Session) // a daemon that was just started finds it again in a moment
	if proc == nil {
		return
	}
	need := c.lastWords(ctx, caller, proc, tool)
	_ = c.loop.Until(ctx, func(t *team.Team) bool { // after wordsWait the call is taken without them
		_, s, err := c.acting(t, caller)
		return err != nil || !s.ServesChannels() || s.Offset >= need
	})
}

// lastWords finds the offset at which the last text ends that a session said before a call of the tool.
// It reads the output from where the journal knows it. A call that is not in it yet is waited for, for
// callWait at most.
func (c *Controller) lastWords(ctx context.Context, caller AgentCaller, proc sessionhost.Process, tool string) (end int64) {
	var from int64
	var m *sessions.Slot
	var session team.Session
	if err := c.loop.View(ctx, func(t *team.Team) {
		if is, s, err := c.acting(t, caller); err == nil {
			m, session, from = is, *s, s.Offset
		}
	}); err != nil || m == nil {
		return 0
	}
	proof, err := proc.Evidence(ctx)
	if err != nil {
		return 0
	}
	reading, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	// read goes through the output until a call of the tool follows the last text, behind the first facts.
	read := func(wire driver.Wire, first int) (facts int, called bool) {
		for fact, err := range m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, session), wire).Facts(reading, from) {
			if err != nil {
				break
			}
			switch {
			case fact.Kind == driver.Said && fact.Tool == "":
				end, called = fact.Offset, false
			case fact.Kind == driver.ToolCalled && isOurs(fact.Tool, tool):
				called = true
			}
			if facts++; called && first >= 0 && facts > first {
				break
			}
		}
		return facts, called
	}
	if facts, called := read(upTo{proc, max(from, proof.Bytes)}, -1); !called {
		read(proc, facts) // the output that comes now
	}
	return end
}

// isOurs reports whether a tool that a program named is one of Fairlead's tools: programs put the
// server's name before it, each in its own way.
func isOurs(told, tool string) bool {
	return told == tool || strings.HasSuffix(told, "_"+tool) || strings.HasSuffix(told, "."+tool) || strings.HasSuffix(told, "/"+tool) ||
		strings.HasSuffix(told, ":"+tool)
}

// memberOf says whether an agent is in a channel, or leads there.
func memberOf(t *team.Team, agent, channelName string) bool {
	if slices.Contains(t.ChannelsOf(agent), channelName) {
		return true
	}
	c := t.Channels.ByID[channel.ChannelID(channelName)]
	return c != nil && string(c.Settings.Lead) == agent
}

// upTo is a wire that ends after so many bytes of output.
type upTo struct {
	driver.Wire
	end int64
}

func (u upTo) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	out, err := u.Wire.Output(ctx, offset)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(out, max(0, u.end-offset)), out}, nil
}
