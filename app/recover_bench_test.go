package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/work/agents"
	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// BenchmarkRecover measures how long a start takes to rebuild a team from its journal, with and
// without a snapshot, beside a bare read and decode of the same rows; and the size of a change on
// disk. FAIRLEAD_RECOVER sets another number of changes.
func BenchmarkRecover(b *testing.B) {
	changes := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("FAIRLEAD_RECOVER")); err == nil {
		changes = n
	}
	ctx := context.Background()
	path := filepath.Join(b.TempDir(), "journal.db")
	j, err := sqlite.Open(ctx, path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	live(b, j, changes)
	open := func() (*App, time.Duration) {
		began := time.Now()
		e, err := Open(ctx, outside.Options{Config: &config.Config{}, Journal: j, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return e, time.Since(began)
	}
	var bares, withouts, withs []time.Duration
	bares = append(bares, decodeAll(b, j))
	e, took := open()
	withouts = append(withouts, took)
	snap, err := e.Loop.Snapshot(ctx)
	if err == nil {
		err = j.SaveSnapshot(ctx, snap)
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for range 9 {
			_, took := open()
			withs = append(withs, took)
		}
	}
	if err := j.Close(); err != nil { // this moves the log into the file
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(changes), "changes")
	b.ReportMetric(float64(median(bares).Milliseconds()), "ms/bare-decode")
	b.ReportMetric(float64(median(withouts).Milliseconds()), "ms/without")
	b.ReportMetric(median(withouts).Seconds()/median(bares).Seconds(), "without/bare")
	b.ReportMetric(float64(median(withs).Microseconds())/1000, "ms/with-snapshot")
	b.ReportMetric(float64(info.Size())/float64(changes), "bytes/change")
	b.ReportMetric(0, "ns/op")
}

// decodeAll is the bare operation: read every row and decode its JSON.
func decodeAll(b *testing.B, j journal.Journal) time.Duration {
	began := time.Now()
	for rec, err := range j.Read(context.Background(), journal.Query{}) {
		if err != nil {
			b.Fatal(err)
		}
		if _, err := loop.ChangeOf(rec); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// live makes eight agents work, one one-shot after another, until the journal has so many changes.
func live(b *testing.B, j journal.Journal, changes int) {
	t := team.New(agents.RenderSum)
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var kept []journal.Change
	stored := 0
	say := func(agent string, what any) {
		at = at.Add(137 * time.Millisecond)
		made, err := t.Decide(team.Event{At: at, Actor: human, Agent: agent, What: what})
		if err != nil {
			b.Fatal(err)
		}
		records, err := loop.AppendRecords(nil, made)
		if err != nil {
			b.Fatal(err)
		}
		for _, ch := range made {
			t.Apply(ch)
		}
		kept = append(kept, records...)
		for len(kept) >= journal.BatchChangesMax || (len(kept) > 0 && stored+len(kept) >= changes) {
			n := min(len(kept), journal.BatchChangesMax, changes-stored)
			if n == 0 {
				kept = nil
				return
			}
			if _, err := j.Append(context.Background(), kept[:n]); err != nil {
				b.Fatal(err)
			}
			kept, stored = kept[n:], stored+n
		}
	}
	agents := map[string]team.Settings{}
	var names []string
	for n := range 8 {
		names = append(names, fmt.Sprintf("agent-%d", n))
		agents[names[n]] = team.Settings{
			Driver: "exec",
			Policy: control.Policy{FailuresMax: 5, BackoffFirst: time.Second, BackoffMax: time.Minute},
		}
	}
	say("", team.DaemonStarted{BootID: "boot"})
	say("", team.Configured{Agents: agents})
	for _, name := range names {
		say(name, control.FileGone{})
		say(name, control.Started{})
	}
	for n := 0; stored < changes; n++ {
		name := names[n%len(names)]
		say(name, control.Commanded{Desired: control.WordRunOnce, By: "human", Note: fmt.Sprintf("ticket %d", n)})
		id := t.Agents[name].Session.ID
		say(name, team.SessionStarted{Session: id, PID: 1000 + n})
		say(name, team.SessionReported{Session: id, Offset: 4096, Usage: change.Usage{InputTokens: 1200, OutputTokens: 340, CostUSD: 0.02}})
		say(name, team.SessionEnded{Session: id, Outcome: control.OK, Exit: session.Exit{SpoolBytes: 8192}})
	}
}
