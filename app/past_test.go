package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// shownTeam is everything that the page shows and the journal has.
type shownTeam struct {
	head  uint64
	at    time.Time
	words string
}

// shows collects it, without data that only processes and files have.
func shows(ctx context.Context, e *App) (shownTeam, error) {
	shown, err := e.Status.Team(ctx)
	for i := range shown.Agents {
		a := &shown.Agents[i]
		a.Certainty, a.Doubt, a.EvidenceAgeMS, a.FileBehind = "", "", nil, false
		a.Status, a.StatusWhy, a.IdleReason = "", "", ""
		a.Wall, a.Unheld, a.Holes = "", nil, nil // of this machine and of processes
		a.SetStatus(shown.Stopping, time.Time{})
	}
	channels, err2 := e.Channels.Channels(ctx)
	inbox, err3 := e.Status.Inbox(ctx)
	usage, err4 := e.Status.Usage(ctx, false)
	questions, err5 := e.Questions.Questions(ctx)
	text, err6 := json.MarshalIndent(map[string]any{
		"team": shown, "channels": channels, "inbox": inbox, "usage": usage,
		"questions": questions,
	}, "", " ")
	return shownTeam{head: shown.Head, words: string(text)}, errors.Join(err, err2, err3, err4, err5, err6)
}

// TestPastIsWhatWasShown checks that the team at an earlier change is the team that was shown then.
func TestPastIsWhatWasShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range uint64(testsize.Pick(4, 20, 200)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomPast(t, dir, rand.New(rand.NewPCG(seed, 17))) })
		})
	}
}

func randomPast(t *testing.T, dir string, rnd *rand.Rand) {
	agents := []string{"ada", "bob", "eve"}
	b := newBubble(t, dir, agents...)
	defer b.end()
	b.inOneChannel("ada", "bob")
	h := &whims{promptLedger: newPromptLedger()}
	for range 64 {
		h.of = append(h.of, rnd.IntN(110))
	}
	b.host.play = h.talks
	b.start()
	var kept []shownTeam
	for n := range 100 {
		ctx, agent := t.Context(), agents[rnd.IntN(len(agents))]
		switch rnd.IntN(9) {
		case 0, 1:
			_, _ = b.engine.Channels.Say(ctx, human, "reviews", fmt.Sprintf("message %d", n), "queue")
		case 2, 3, 4:
			orders := []string{"continuous", "run_once", "pause", "run_cleanup"}
			_, _, _ = b.engine.Status.Order(ctx, human, agent, orders[rnd.IntN(len(orders))], "")
		case 5:
			_, _ = b.engine.Agents.Hold(ctx, human, rnd.IntN(3) == 0, "a note")
		case 6:
			_, _ = b.engine.Channels.Disable(ctx, human, agent)
		case 7:
			_, _ = b.engine.Channels.Enable(ctx, human, agent)
		case 8:
			if rnd.IntN(3) == 0 {
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				b.start()
			}
		}
		b.after(time.Duration(rnd.IntN(9000)) * time.Millisecond)
		shown, err := shows(t.Context(), b.engine)
		if err != nil {
			t.Fatal(err)
		}
		shown.at = time.Now()
		kept = append(kept, shown)
	}
	for _, was := range kept {
		then, _, err := journal.Until(t.Context(), b.slate, was.head)
		if err != nil {
			t.Fatal(err)
		}
		e, err := OpenReadOnly(t.Context(), outside.Options{
			Name: "test", Config: b.conf, Journal: then, Host: hostHandle{b.host, newCrashPoint(0, false)}, Drivers: b.engine.opts.Drivers,
			Log: slog.New(slog.DiscardHandler), At: was.at,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.RunReads(ctx) }()
		is, err := shows(t.Context(), e)
		stop()
		if err := errors.Join(err, <-ended); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(was.words, is.words); diff != "" {
			t.Fatalf("change %d, at %s: %s", was.head, was.at, diff)
		}
	}
}
