package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

// benchRound is an engine with channels in which a person has asked something, and foreign agents
// that answer without end.
type benchRound struct {
	b      *testing.B
	e      *App
	rings  [][]string // by channel: the agent that has the turn, then the agents after it
	turns  []uint64   // by channel: the number of the current turn
	inEach int
}

func benchChannel(n int) string { return fmt.Sprintf("c%d", n) }

// newRound creates channels with a number of agents each, out of at most a hundred agents.
func newRound(b *testing.B, channels, inEach int) *benchRound {
	agents := min(100, max(inEach, 3*channels))
	var yaml strings.Builder
	yaml.WriteString("version: 1\nturnConfig: {defaultTimeoutSeconds: 600}\nagents:\n")
	for n := range agents {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, loop: foreign, workspace: a%d}\n", n, n)
	}
	conf := make([]config.Channel, channels)
	r := &benchRound{b: b, rings: make([][]string, channels), turns: make([]uint64, channels), inEach: inEach}
	for c := range channels {
		var names []string
		for n := range inEach {
			names = append(names, fmt.Sprintf("a%d", (c*inEach+n)%agents))
		}
		conf[c] = config.Channel{Name: benchChannel(c), Agents: names, HumanInterruptMode: config.Inject, WaitTimeout: time.Minute}
	}
	r.e, _, _ = benchEngine(b, yaml.String(), func(c *config.Config) { c.Channels = conf })
	ctx := context.Background()
	if err := r.e.Loop.View(ctx, func(*team.Team) {
		for _, m := range r.e.Agents.Files { // the benchmark does not measure the files
			m.Crowded = true
		}
	}); err != nil {
		b.Fatal(err)
	}
	for n := range agents {
		if _, err := r.e.Channels.AgentReady(ctx, fmt.Sprintf("a%d", n)); err != nil {
			b.Fatal(err)
		}
	}
	r.beats(agents)
	r.everywhere(channels, func(c int) {
		if _, err := r.e.Channels.Say(ctx, human, benchChannel(c), "go on for ever", "queue"); err != nil {
			b.Error(err)
		}
		view, err := r.e.Channels.Channel(ctx, benchChannel(c))
		if err != nil || view.Holder == "" {
			b.Errorf("no agent has the turn: %+v, %v", view, err)
			return
		}
		r.rings[c], r.turns[c] = append([]string{view.Holder}, view.Queue...), view.Turn
		r.has(c)
	})
	return r
}

// beats sends heartbeats of all agents for as long as the benchmark runs.
func (r *benchRound) beats(agents int) {
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		for retry.Rest(ctx, channel.BeatEvery) {
			for n := range agents {
				_ = r.e.Channels.AgentBeat(ctx, fmt.Sprintf("a%d", n))
			}
		}
	})
	r.b.Cleanup(func() {
		cancel()
		beating.Wait()
	})
}

// everywhere does something in a number of channels in parallel.
func (r *benchRound) everywhere(channels int, do func(c int)) {
	var doing sync.WaitGroup
	for c := range channels {
		doing.Go(func() { do(c) })
	}
	doing.Wait()
}

// handOff measures the time from the end of one agent's answer until the next agent has the turn.
func (r *benchRound) handOff(c int) time.Duration {
	ctx := context.Background()
	next := r.rings[c][1]
	has := make(chan time.Time, 1)
	asked := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			if first {
				close(asked)
			}
			views, err := r.e.Channels.AgentActions(ctx, next, time.Minute)
			if err != nil {
				r.b.Error(err)
			}
			if err != nil ||
				slices.ContainsFunc(views, func(v view.ActionView) bool { return v.Channel == benchChannel(c) && v.Turn == r.turns[c]+1 }) {
				has <- time.Now()
				return
			}
			for i := range views { // turns of other channels
				_, _ = r.e.Channels.AgentConfirm(ctx, next, views[i].Key)
			}
		}
	}()
	<-asked
	number, ring := r.turns[c], r.rings[c]
	began := time.Now()
	if _, err := r.e.Channels.AgentSaid(ctx,
		view.Speech{Channel: benchChannel(c), Agent: ring[0], Turn: number, Text: "so it is", Complete: true}); err != nil {
		r.b.Fatal(err)
	}
	took := (<-has).Sub(began)
	r.rings[c] = append(slices.Clone(ring[1:]), ring[0])
	r.turns[c]++
	r.has(c)
	return took
}

// has acknowledges the current turn, so that it is not sent again with the next one.
func (r *benchRound) has(c int) {
	agent := r.rings[c][0]
	key := fmt.Sprintf("%s/%s/%s/%d", channel.TellTurn, benchChannel(c), agent, r.turns[c])
	if _, err := r.e.Channels.AgentConfirm(context.Background(), agent, key); err != nil {
		r.b.Error(err)
	}
}

// BenchmarkHandOff measures the time from the end of one agent's answer until the next agent has
// the turn, durably, beside bare synced writes that are made alternately.
func BenchmarkHandOff(b *testing.B) {
	for _, agents := range []int{3, 100} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			r := newRound(b, 1, agents)
			bare := syncer(b)
			r.handOff(0)
			var took, bares []time.Duration
			for b.Loop() {
				bares = append(bares, bare())
				took = append(took, r.handOff(0))
			}
			b.ReportMetric(float64(median(took).Microseconds()), "µs/hand-off")
			b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare-sync")
			b.ReportMetric(median(took).Seconds()/median(bares).Seconds(), "hand-off/bare-sync")
			b.ReportMetric(0, "ns/op")
		})
	}
}
