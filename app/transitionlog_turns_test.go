package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	machineturn "github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/transitions"
)

// seedExample is the example of seed 003, Logging, verbatim.
const seedExample = `{
  "timestamp": "2026-02-04T21:00:00Z",
  "event": "state_transition",
  "agentId": "pm",
  "from": "ACTIVE",
  "to": "QUEUED",
  "trigger": "TURN_COMPLETE",
  "channel": "reviews"
}`

// TestTurnLogIsTheSeeds checks that the seed's seven fields equal its example byte for byte,
// followed by Fairlead's own, in both logs.
func TestTurnLogIsTheSeeds(t *testing.T) {
	t.Parallel()
	ch := journal.Change{
		Seq: 41, Time: time.Date(2026, 2, 4, 21, 0, 0, 0, time.UTC), Machine: "turn", Entity: "channel/reviews", Row: "T7",
		From: "ACTIVE", To: "QUEUED", Trigger: string(machineturn.Completed), Actor: change.Actor{Kind: "agent", ID: "pm"},
		Data: json.RawMessage(`{"turn":{"agent":"pm","body":{"post":{"n":3,"kind":"turn","by":"pm","bytes":2}},"text":"ok"}}`),
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(seedExample)); err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSuffix(want.String(), "}") +
		`,"machine":"turn","entity":"channel/reviews","row":"T7","actor":{"kind":"agent","id":"pm"},"seq":41}` + "\n"
	for what, lines := range map[string]func(context.Context, journal.Change) ([][]byte, error){
		"turns": (&transitions.Controller{}).TurnLines, "transitions": (&transitions.Controller{}).TransitionLines,
	} {
		got, err := lines(t.Context(), ch)
		if err != nil || len(got) != 1 || string(got[0]) != line {
			t.Errorf("%s: %s, %v; want\n%s", what, got, err, line)
		}
	}
	// A change without a new state is only in the log of all transitions, under its own name.
	for _, still := range []struct{ from, to string }{{"", ""}, {"QUEUED", "QUEUED"}, {"", "OFFLINE"}} {
		ch := ch
		ch.From, ch.To, ch.Trigger = still.from, still.to, "told"
		if got, err := (&transitions.Controller{}).TurnLines(t.Context(), ch); err != nil || len(got) != 0 {
			t.Errorf("%+v: %s, %v", still, got, err)
		}
		got, err := (&transitions.Controller{}).TransitionLines(t.Context(), ch)
		if err != nil || len(got) != 1 || !strings.Contains(string(got[0]), `"agentId":"pm"`) ||
			!strings.Contains(string(got[0]), `"channel":"reviews"`) {
			t.Errorf("%+v: %s, %v", still, got, err)
		}
	}
	ch.Entity, ch.From, ch.To, ch.Trigger = "turn/pm", "OFFLINE", "IDLE", string(machineturn.Connected) // the agent itself, in no channel
	if got, err := (&transitions.Controller{}).TurnLines(t.Context(), ch); err != nil || len(got) != 1 ||
		!strings.Contains(string(got[0]), `"trigger":"Agent starts","channel":"",`) {
		t.Errorf("%s, %v", got, err)
	}
	ch.Data = json.RawMessage(`{"turn":`)
	if _, err := (&transitions.Controller{}).TurnLines(t.Context(), ch); err == nil {
		t.Error("an incomplete change is written")
	}
}

// movedSeqs lists the changes of agents' states. Each has a line that begins with the fields of seed 003.
func (b *bubble) movedSeqs() (seqs []uint64) {
	b.t.Helper()
	for _, ch := range b.history() {
		if ch.Machine != "turn" || ch.From == "" || ch.From == ch.To {
			continue
		}
		body, err := team.BodyOf(ch.Data)
		set := change.As[machineturn.Set](body)
		if set == nil {
			b.t.Fatalf("change %d: %s, %v", ch.Seq, ch.Data, err)
		}
		name, ok := strings.CutPrefix(ch.Entity, "channel/")
		if !ok {
			name = ""
		}
		begins := fmt.Appendf(nil, `{"timestamp":%q,"event":"state_transition","agentId":%q,"from":%q,"to":%q,"trigger":%q,"channel":%q,`,
			ch.Time.UTC().Format("2006-01-02T15:04:05.999Z07:00"), set.Agent, ch.From, ch.To,
			machineturn.TriggerFrom(machineturn.State(ch.From), machineturn.Event(ch.Trigger)), name)
		if got, err := (&transitions.Controller{}).TurnLines(b.t.Context(), ch); err != nil || len(got) != 1 ||
			!bytes.HasPrefix(got[0], begins) {
			b.t.Errorf("%s, %v; want %s", got, err, begins)
		}
		seqs = append(seqs, ch.Seq)
	}
	return seqs
}

// TestTurnLogIsWholeAfterEveryCut checks that a log of turns has each state change once and nothing
// else, regardless of when its supervisor was killed.
func TestTurnLogIsWholeAfterEveryCut(t *testing.T) {
	t.Parallel()
	entries := 0
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log", "turns.jsonl")
			rnd := rand.New(rand.NewPCG(seed, 7))
			inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
				for range 6 {
					b.open(20+rnd.IntN(60), rnd.IntN(2) == 0)
					b.engine.Transitions.LogBytesMax = 3000 // some ten lines
					ctx, cut := context.WithCancel(t.Context())
					done, e := make(chan error, 1), b.engine
					go func() { done <- e.Transitions.LogTurns(ctx, path) }()
					b.run()
					b.settle()
					b.chat(ctx, rnd)
					cut()
					<-done
					b.die()
					tear(t, path, rnd)
				}
				b.start()
				done, e := make(chan error, 1), b.engine
				go func() { done <- e.Transitions.LogTurns(t.Context(), path) }()
				b.settle()
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				want := b.movedSeqs()
				if got := logged(t, path); !slices.Equal(got, want) {
					t.Errorf("logged %v, want %v", got, want)
				}
				entries += len(want)
			})
		})
	}
	if entries < 100 {
		t.Errorf("only %d state changes; the test must cause more", entries)
	}
}

// chat makes people and two agents act in a channel.
func (b *bubble) chat(ctx context.Context, rnd *rand.Rand) {
	tell := func(ev team.Event) {
		ev.Actor = human
		_, _ = b.engine.Loop.Do(ctx, loop.Request{Event: &ev}) // refusals are valid results, and so is the end of the loop
	}
	conf := configured(b.conf, func(config.Agent) driver.Capabilities { return driver.Capabilities{Prompts: true, Answers: true} })
	conf.Turns = map[string]machineturn.AgentSettings{"coder": {}, "pm": {}}
	conf.Channels = map[string]team.Channel{"reviews": {Settings: machineturn.DefaultSettings(), Agents: []string{"coder", "pm"}}}
	tell(team.Event{What: conf})
	for _, name := range []machineturn.AgentID{"coder", "pm"} {
		tell(team.Event{What: machineturn.AgentConnected{Agent: name}})
		tell(team.Event{What: machineturn.AssignAsked{Channel: "reviews", Agent: name}})
	}
	for range 6 {
		var token machineturn.Token
		_ = b.engine.Loop.View(ctx, func(t *team.Team) {
			if c := t.Channels.ByID["reviews"]; c != nil {
				token = machineturn.Token{Channel: "reviews", Agent: c.Head.Holder, Turn: c.Head.Turn}
			}
		})
		switch rnd.IntN(4) {
		case 0:
			tell(team.Event{What: machineturn.HumanSpoke{Channel: "reviews", By: "ada", Bytes: 5}, Text: "hello"})
		case 1:
			tell(team.Event{What: machineturn.Said{Token: token, Bytes: 4, Complete: true}, Text: "done"})
		case 2:
			tell(team.Event{What: machineturn.WaitAskedFor{Token: token, Why: "a build"}})
		case 3:
			b.after(30 * time.Second) // some turns expire
		}
		b.settle()
	}
}
