package controller

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

// benchRound is an engine with channels in which a person has asked something, and foreign agents
// that answer without end.
type benchRound struct {
	b      *testing.B
	e      *Supervisor
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
	if err := r.e.View(ctx, func(*team.Team) {
		for _, m := range r.e.Files { // the benchmark does not measure the files
			m.Crowded = true
		}
	}); err != nil {
		b.Fatal(err)
	}
	for n := range agents {
		if _, err := r.e.AgentReady(ctx, fmt.Sprintf("a%d", n)); err != nil {
			b.Fatal(err)
		}
	}
	r.beats(agents)
	r.everywhere(channels, func(c int) {
		if _, err := r.e.Say(ctx, human, benchChannel(c), "go on for ever", "queue"); err != nil {
			b.Error(err)
		}
		view, err := r.e.Channel(ctx, benchChannel(c))
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
		for loop.Rest(ctx, channel.BeatEvery) {
			for n := range agents {
				_ = r.e.AgentBeat(ctx, fmt.Sprintf("a%d", n))
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

// complete ends the current turn in a channel. It returns when that is durable.
func (r *benchRound) complete(c int) {
	ring := r.rings[c]
	if _, err := r.e.AgentSaid(context.Background(), view.Speech{Channel: benchChannel(c), Agent: ring[0], Turn: r.turns[c], Text: "so it is", Complete: true}); err != nil {
		r.b.Error(err)
	}
	r.rings[c] = append(slices.Clone(ring[1:]), ring[0])
	r.turns[c]++
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
			views, err := r.e.AgentActions(ctx, next, time.Minute)
			if err != nil {
				r.b.Error(err)
			}
			if err != nil || slices.ContainsFunc(views, func(v view.ActionView) bool { return v.Channel == benchChannel(c) && v.Turn == r.turns[c]+1 }) {
				has <- time.Now()
				return
			}
			for i := range views { // turns of other channels
				_, _ = r.e.AgentConfirm(ctx, next, views[i].Key)
			}
		}
	}()
	<-asked
	number, ring := r.turns[c], r.rings[c]
	began := time.Now()
	if _, err := r.e.AgentSaid(ctx, view.Speech{Channel: benchChannel(c), Agent: ring[0], Turn: number, Text: "so it is", Complete: true}); err != nil {
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
	if _, err := r.e.AgentConfirm(context.Background(), agent, key); err != nil {
		r.b.Error(err)
	}
}

// BenchmarkHandOff measures the time from the end of one agent's answer until the next agent has
// the turn, durably, beside bare synced writes that are made alternately.
func BenchmarkHandOff(b *testing.B) {
	for _, channels := range []int{1, 1000} {
		for _, agents := range []int{3, 100} {
			b.Run(fmt.Sprintf("channels=%d/agents=%d", channels, agents), func(b *testing.B) {
				r := newRound(b, channels, agents)
				bare := syncer(b)
				r.handOff(0)
				var toolCaller, bares []time.Duration
				was := spentSoFar(b)
				for n := 0; b.Loop(); n++ {
					bares = append(bares, bare())
					toolCaller = append(toolCaller, r.handOff(n*7%channels))
				}
				was.report(b, len(toolCaller), "hand-off")
				sync := median(bares)
				slices.Sort(toolCaller)
				b.ReportMetric(float64(median(toolCaller).Microseconds()), "µs/hand-off")
				b.ReportMetric(float64(toolCaller[len(toolCaller)*99/100].Microseconds()), "µs/hand-off-p99")
				b.ReportMetric(float64(sync.Microseconds()), "µs/bare-sync")
				b.ReportMetric(median(toolCaller).Seconds()/sync.Seconds(), "hand-off/bare-sync")
				b.ReportMetric(toolCaller[len(toolCaller)*99/100].Seconds()/sync.Seconds(), "p99/bare-sync")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkTurnsAtOnce measures how many hand-offs all channels make in parallel, each as soon as
// its own is durable, beside a single channel in the same run.
func BenchmarkTurnsAtOnce(b *testing.B) {
	const channels, each = 256, 4
	r := newRound(b, channels, 3)
	bare := syncer(b)
	var rates, alone []float64
	var bares []time.Duration
	was, made := spentSoFar(b), 0
	for b.Loop() {
		made += 20 + channels*each
		for range 10 {
			bares = append(bares, bare())
		}
		began := time.Now()
		for range 20 {
			r.complete(0)
		}
		alone = append(alone, 20/time.Since(began).Seconds())
		began = time.Now()
		r.everywhere(channels, func(c int) {
			for range each {
				r.complete(c)
			}
		})
		rates = append(rates, channels*each/time.Since(began).Seconds())
	}
	was.report(b, made, "hand-off")
	b.ReportMetric(median(rates), "hand-offs/s")
	b.ReportMetric(median(alone), "alone/s")
	b.ReportMetric(median(rates)/median(alone), "all/alone")
	b.ReportMetric(median(rates)*median(bares).Seconds(), "hand-offs/bare-sync")
	b.ReportMetric(1/median(alone)/median(bares).Seconds(), "alone/bare-sync")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSay measures people's messages in a number of channels in parallel.
func BenchmarkSay(b *testing.B) {
	const channels, each = 64, 4
	r := newRound(b, channels, 3)
	bare := syncer(b)
	ctx := context.Background()
	var rates []float64
	var bares []time.Duration
	for b.Loop() {
		for range 10 {
			bares = append(bares, bare())
		}
		began := time.Now()
		r.everywhere(channels, func(c int) {
			for range each {
				if _, err := r.e.Say(ctx, human, benchChannel(c), strings.Repeat("x", 200), "queue"); err != nil {
					b.Error(err)
				}
			}
		})
		rates = append(rates, channels*each/time.Since(began).Seconds())
		r.everywhere(channels, r.complete) // otherwise too many messages would wait for an answer
	}
	b.ReportMetric(median(rates), "messages/s")
	b.ReportMetric(median(rates)*median(bares).Seconds(), "messages/bare-sync")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPage measures the newest page of a channel with 100,000 messages, and the cost of the
// first question after a start.
func BenchmarkPage(b *testing.B) {
	const said = 100_000
	dir := b.TempDir()
	ctx := context.Background()
	j, err := sqlite.Open(ctx, filepath.Join(dir, "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	at := time.Now().UTC()
	for n := uint64(1); n <= said; {
		var batch []team.Change
		for range 1000 {
			body := channel.Body{Post: &channel.Post{N: n, Kind: channel.OfTurn, By: "ada", Turn: n, Bytes: 200}, Head: &channel.Head{Seq: n, Turn: n}}
			batch = append(batch, team.Change{
				At: at, Machine: "turn", Entity: "channel/c0", Row: "N2", Trigger: "said", Actor: human,
				Body: team.Body{Turn: &team.TurnSet{Agent: "ada", Body: body, Text: strings.Repeat("x", 200)}},
			})
			n++
		}
		records, err := loop.AppendRecords(nil, batch)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.Append(ctx, records); err != nil {
			b.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	files, err := agentfile.Watch(log)
	if err != nil {
		b.Fatal(err)
	}
	defer files.Close()
	conf := &config.Config{}
	e, err := Open(ctx, seam.Options{
		Name: "bench", Config: conf, Journal: j, Files: files, Log: log, BootID: workspace.BootID(),
		Host: &sessions.Shims{Folder: filepath.Join(dir, "sessions"), Workspace: dir},
	})
	if err != nil {
		b.Fatal(err)
	}
	running, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- e.Run(running) }()
	defer func() {
		cancel()
		<-ran
	}()
	<-e.Ready()
	began := time.Now()
	page := func() {
		page, err := e.ChannelEntries(ctx, "c0", view.EntryQuery{})
		if err != nil || len(page.Entries) != 100 || page.Entries[99].N != said {
			b.Fatalf("the page has %d entries, %v", len(page.Entries), err)
		}
	}
	page()
	first := time.Since(began)
	var pages []time.Duration
	for b.Loop() {
		began := time.Now()
		page()
		pages = append(pages, time.Since(began))
	}
	b.ReportMetric(float64(median(pages).Microseconds()), "µs/page")
	b.ReportMetric(float64(first.Milliseconds()), "ms/first-page")
	b.ReportMetric(0, "ns/op")
}
