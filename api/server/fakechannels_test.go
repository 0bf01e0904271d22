package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// hears answers with what the fake answers everybody with, and that there is one channel only.
func (f *fake) hears(ctx context.Context, channel, words string) error {
	if err := f.answer(); err != nil {
		return err
	}
	switch {
	case channel != "reviews":
		return &team.Unknown{What: "channel", Name: channel, Known: []string{"reviews"}}
	case words == "refuse":
		return &machine.Refusal{Subject: "#reviews", Event: "message", State: "removed", Row: "X5", Reason: "it is no longer in fairlead.yaml"}
	case words == "hang":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f *fake) channelView() view.ChannelView {
	since := testTime
	return view.ChannelView{
		Name: "reviews", Holder: "coder", State: "ACTIVE", Queue: []string{"reviewer"}, Deadline: &since, Since: &since, Turn: 3, Messages: 12,
		Mode: "inject", RoundsMax: 3, TimeoutMS: 60_000, Configured: true,
	}
}

func (f *fake) Channels(context.Context) ([]view.ChannelView, error) {
	return []view.ChannelView{f.channelView()}, f.answer()
}

func (f *fake) Channel(ctx context.Context, name string) (view.ChannelView, error) {
	if err := f.hears(ctx, name, ""); err != nil {
		return view.ChannelView{}, err
	}
	return f.channelView(), nil
}

func (f *fake) ChannelEntries(ctx context.Context, name string, q view.EntryQuery) (view.ChannelPage, error) {
	if err := f.hears(ctx, name, ""); err != nil {
		return view.ChannelPage{}, err
	}
	if q.After == 12 {
		return view.ChannelPage{Head: 12}, nil
	}
	text := fmt.Sprintf("before=%d after=%d limit=%d moves=%v", q.Before, q.After, q.Limit, q.Moves)
	return view.ChannelPage{Entries: []view.ChannelEntry{{Seq: 12, At: testTime, Kind: "turn", N: 12, By: "coder", Text: text, Turn: 3}}, More: true, Head: 12}, nil
}

func (f *fake) Say(ctx context.Context, by seam.Actor, channel, text, mode string) (view.Spoken, error) {
	if err := f.hears(ctx, channel, text); err != nil {
		return view.Spoken{}, err
	}
	f.said(by, "say %s mode %q %q", channel, mode, text)
	return view.Spoken{MessageID: "reviews/13", N: 13, State: "queued", Seq: 14}, nil
}

// heard keeps an order about a channel as one line, and gives it a sequence.
func (f *fake) heard(ctx context.Context, by seam.Actor, channel, words, format string, args ...any) (uint64, error) {
	if err := f.hears(ctx, channel, words); err != nil {
		return 0, err
	}
	f.said(by, format, args...)
	return 14, nil
}

func (f *fake) Grant(ctx context.Context, by seam.Actor, channel, agent string, now bool) (uint64, error) {
	return f.heard(ctx, by, channel, agent, "grant %s agent %q now=%v", channel, agent, now)
}

func (f *fake) Skip(ctx context.Context, by seam.Actor, channel string, turn uint64) (uint64, error) {
	return f.heard(ctx, by, channel, "", "skip %s turn=%d", channel, turn)
}

func (f *fake) Override(ctx context.Context, by seam.Actor, channel string, goOn bool) (uint64, error) {
	return f.heard(ctx, by, channel, "", "override %s go_on=%v", channel, goOn)
}

func (f *fake) Assign(ctx context.Context, by seam.Actor, channel, agent string) (uint64, error) {
	return f.heard(ctx, by, channel, agent, "assign %s agent %q", channel, agent)
}

func (f *fake) Unassign(ctx context.Context, by seam.Actor, channel, agent string) (uint64, error) {
	return f.heard(ctx, by, channel, agent, "remove %s agent %q", channel, agent)
}

func (f *fake) Disable(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	return f.does(ctx, by, agent, "disable %s", agent)
}

func (f *fake) Enable(ctx context.Context, by seam.Actor, agent string) (uint64, error) {
	return f.does(ctx, by, agent, "enable %s", agent)
}

// itself is who acts where an agent acts for itself.
func itself(agent string) seam.Actor { return seam.Actor{Kind: "itself", ID: agent} }

// does keeps what is about an agent as one line.
func (f *fake) does(ctx context.Context, by seam.Actor, agent, format string, args ...any) (uint64, error) {
	if _, err := f.Agent(ctx, agent); err != nil {
		return 0, err
	}
	f.said(by, format, args...)
	return 15, nil
}

func (f *fake) AgentReady(ctx context.Context, agent string) (uint64, error) {
	return f.does(ctx, itself(agent), agent, "ready")
}

func (f *fake) AgentBeat(ctx context.Context, agent string) error {
	_, err := f.does(ctx, itself(agent), agent, "beat")
	return err
}

func (f *fake) AgentLeft(ctx context.Context, agent string) (uint64, error) {
	return f.does(ctx, itself(agent), agent, "leave")
}

// AgentActions gives reviewer one at once, and lets everybody else wait.
func (f *fake) AgentActions(ctx context.Context, agent string, wait time.Duration) ([]view.ActionView, error) {
	if _, err := f.Agent(ctx, agent); err != nil {
		return nil, err
	}
	if agent == "reviewer" {
		return []view.ActionView{{Key: "tell_turn/reviews/reviewer/4", Do: "tell_turn", Channel: "reviews", Agent: agent, Turn: 4, Text: "You have the turn."}}, nil
	}
	f.do(func() { f.waiting++ })
	defer f.do(func() { f.waiting-- })
	select {
	case <-time.After(wait):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fake) AgentConfirm(ctx context.Context, agent, key string) (uint64, error) {
	return f.does(ctx, itself(agent), agent, "told %q", key)
}

func (f *fake) AgentSaid(ctx context.Context, s view.Speech) (uint64, error) {
	return f.heard(ctx, itself(s.Agent), s.Channel, s.Text, "said turn=%d re=%d complete=%v ended=%v %q", s.Turn, s.Re, s.Complete, s.Ended, s.Text)
}

func (f *fake) AgentPass(ctx context.Context, channel, agent string, turn uint64) (uint64, error) {
	return f.heard(ctx, itself(agent), channel, "", "pass turn=%d", turn)
}

func (f *fake) AgentWait(ctx context.Context, channel, agent string, turn uint64, why string) (uint64, error) {
	return f.heard(ctx, itself(agent), channel, why, "wait turn=%d %q", turn, why)
}

func (f *fake) AgentGoesOn(ctx context.Context, channel, agent string, turn uint64) (uint64, error) {
	return f.heard(ctx, itself(agent), channel, "", "go_on turn=%d", turn)
}

// toThePoint is what an order says without who gave it.
func toThePoint(orders []string) (out []string) {
	for _, order := range orders {
		_, words, _ := strings.Cut(order, ": ")
		out = append(out, words)
	}
	return out
}
