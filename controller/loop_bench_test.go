package controller

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/workspace"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	driverexec "github.com/fairlead-dev/fairlead/driver/exec"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

// still returns an engine that has recovered and whose loop the benchmark runs. It has no waiters
// and wakes no goroutine, and its appends are discarded, so only the loop itself is measured.
func still(b testing.TB, yaml string, channels []config.Channel) *Supervisor {
	b.Helper()
	conf := benchConfig(b, yaml)
	dir := conf.Dir
	conf.Channels = channels
	ctx := context.Background()
	j, err := sqlite.Open(ctx, filepath.Join(dir, "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	files, err := agentfile.Watch(log)
	if err != nil {
		b.Fatal(err)
	}
	to := &discardJournal{Journal: j}
	e, err := Open(ctx, seam.Options{
		Name: "bench", Config: conf, Journal: to, Files: files, Log: log, Lookup: os.LookupEnv, BootID: workspace.BootID(),
		Host:    &sessions.Shims{Folder: filepath.Join(dir, "sessions"), Workspace: dir},
		Drivers: map[string]driver.Driver{"exec": driverexec.Driver{}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := e.recover(ctx); err != nil {
		b.Fatal(err)
	}
	for _, m := range e.Files {
		m.Crowded = true // the benchmark does not measure the files
	}
	to.last = e.Head()
	b.Cleanup(func() {
		e.Close(nil)
		_ = files.Close()
		_ = j.Close()
	})
	return e
}

// discardJournal discards every append after last is set.
type discardJournal struct {
	journal.Journal
	last    uint64
	appends int
}

func (n *discardJournal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	if n.last == 0 {
		return n.Journal.Append(ctx, batch, expect...)
	}
	n.last, n.appends = n.last+uint64(len(batch)), n.appends+1
	return n.last, nil
}

func (n *discardJournal) SaveSnapshot(context.Context, journal.Snapshot) error { return nil }

// BenchmarkLoop measures separately what a full batch costs the loop, the journal and the waiting
// callers. It reports the fastest round, because other work on the machine makes a round slower,
// never faster.
func BenchmarkLoop(b *testing.B) {
	b.Run("commands", func(b *testing.B) {
		e, next := commandsLoop(b)
		benchLoop(b, e, "command", next)
	})
	b.Run("hand-offs", func(b *testing.B) {
		e, next := handOffsLoop(b)
		benchLoop(b, e, "hand-off", next)
	})
}

// commandsLoop returns a loop and the n-th command of a full batch.
func commandsLoop(b testing.TB) (e *Supervisor, next func(n int) *team.Event) {
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range loop.BatchMax {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [\"true\"], workspace: a%d}\n", n, n)
	}
	e = still(b, yaml.String(), nil)
	return e, func(n int) *team.Event { return e.CommandEvent(human, fmt.Sprintf("a%d", n), "pause", "") }
}

// handOffsLoop returns a loop and the n-th hand-off of a full batch.
func handOffsLoop(b testing.TB) (e *Supervisor, next func(n int) *team.Event) {
	var yaml strings.Builder
	yaml.WriteString("version: 1\nturnConfig: {defaultTimeoutSeconds: 600}\nagents:\n")
	for n := range 100 {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, loop: foreign, workspace: a%d}\n", n, n)
	}
	channels := make([]config.Channel, 0, loop.BatchMax)
	for c := range loop.BatchMax {
		names := []string{fmt.Sprintf("a%d", 3*c%100), fmt.Sprintf("a%d", (3*c+1)%100), fmt.Sprintf("a%d", (3*c+2)%100)}
		channels = append(channels, config.Channel{Name: benchChannel(c), Agents: names, HumanInterruptMode: config.Inject, WaitTimeout: time.Minute})
	}
	e = still(b, yaml.String(), channels)
	tell := func(ev *team.Event) {
		if err := e.Step(context.Background(), []loop.Request{{Event: ev}}); err != nil {
			b.Fatal(err)
		}
	}
	for n := range 100 {
		tell(loop.EventBy(human, "", channel.AgentConnected{Agent: channel.AgentID(fmt.Sprintf("a%d", n))}))
	}
	for c := range loop.BatchMax {
		tell(loop.EventBy(human, "", channel.HumanSpoke{Channel: channel.ChannelID(benchChannel(c)), By: "ada", Mode: channel.ByQueue, Bytes: 2}))
	}
	return e, func(n int) *team.Event {
		head := e.State().Channels.ByID[channel.ChannelID(benchChannel(n))].Head
		if head.Holder == "" {
			b.Fatal("no agent has the turn in ", benchChannel(n), head.Parked)
		}
		return loop.EventBy(team.Actor{Kind: "agent", ID: string(head.Holder)}, "", channel.Said{
			Token: channel.Token{Channel: channel.ChannelID(benchChannel(n)), Agent: head.Holder, Turn: head.Turn}, Bytes: 8, Complete: true,
		})
	}
}

// BenchmarkUntilDue measures how long the loop takes between two batches to find its next deadline:
// it looks at every agent. It reports the fastest round, as BenchmarkLoop does.
func BenchmarkUntilDue(b *testing.B) {
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	const agents = 1000
	for n := range agents {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [\"true\"], workspace: a%d}\n", n, n)
	}
	e := still(b, yaml.String(), []config.Channel{{Name: "c", Agents: []string{"a0", "a1"}, HumanInterruptMode: config.Inject, WaitTimeout: time.Minute}})
	fastest := time.Duration(0)
	for b.Loop() {
		began := time.Now()
		if e.UntilDue() <= 0 {
			b.Fatal("something is due")
		}
		if took := time.Since(began); fastest == 0 || took < fastest {
			fastest = took
		}
	}
	b.ReportMetric(float64(fastest.Nanoseconds())/agents, "best-ns/agent")
	b.ReportMetric(0, "ns/op")
}

func benchLoop(b *testing.B, e *Supervisor, what string, next func(n int) *team.Event) {
	fastest, batch := time.Duration(0), make([]loop.Request, loop.BatchMax)
	was, head := spentSoFar(b), e.Head()
	for b.Loop() {
		for n := range batch {
			batch[n] = loop.Request{Event: next(n)}
		}
		began, before := time.Now(), e.Head()
		e.UntilDue()
		if err := e.Step(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
		if took := time.Since(began); fastest == 0 || took < fastest {
			fastest = took
		}
		if e.Head() < before+loop.BatchMax {
			b.Fatalf("%d of %d events changed something", e.Head()-before, loop.BatchMax)
		}
	}
	was.report(b, b.N*loop.BatchMax, what)
	b.ReportMetric(float64(fastest.Nanoseconds())/1000/loop.BatchMax, "best-µs/"+what)
	b.ReportMetric(float64(e.Head()-head)/float64(b.N*loop.BatchMax), "changes/"+what)
	b.ReportMetric(0, "ns/op")
}
