package controller

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"
	"github.com/fairlead-dev/fairlead/internal/test/wait"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/team"
)

// BenchmarkFolderLine measures the time from another program's order in a dispatch folder, which
// adds a line there, until a watcher of the engine has the change, which is then in the journal. It
// is compared with that order alone and with bare syncs.
func BenchmarkFolderLine(b *testing.B) {
	e, dir, _ := benchEngine(b, "version: 1\nagents:\n  coder: {driver: exec, command: [\"true\"], workspace: coder}\n")
	ctx := context.Background()
	setup := dispatch.Setup{Mode: dispatch.Orchestrator, Agents: []dispatch.Description{{Name: "coder", Text: "Use to write scripts"}}}
	f, _, err := dispatchfolder.Create(filepath.Join(dir, dispatchctl.SessionsFolder, "bench"), setup, dispatchfolder.Options{Repo: dir, Home: dir})
	if err != nil {
		b.Fatal(err)
	}
	by := dispatchfolder.Actor{Kind: "human", ID: "bench"}
	entity := "dispatch/" + f.Name()
	// A folder is watched from its first line on.
	awaitRow := func(after uint64, row string) time.Time {
		for ch, err := range e.Changes(ctx, after, entity) {
			if err != nil {
				b.Fatal(err)
			}
			if ch.Row == row {
				break
			}
		}
		return time.Now()
	}
	awaitRow(0, "D1")
	bare := syncer(b)
	var written, seen, bares []time.Duration
	for n := 0; b.Loop(); n++ {
		bares = append(bares, bare())
		var head uint64
		if err := e.View(ctx, func(*team.Team) { head = e.Head() }); err != nil {
			b.Fatal(err)
		}
		var in dispatch.Input = dispatch.UserInput{Text: "good morning"}
		row := "D2"
		if n%2 == 1 {
			in, row = dispatch.Respond{Text: "good morning to you"}, "D7"
		}
		watched := make(chan time.Time, 1)
		go func() { watched <- awaitRow(head, row) }()
		for e.Watchers() == 0 {
			wait.Pause(100 * time.Microsecond)
		}
		began := time.Now()
		if _, _, err := f.Do(began, by, in); err != nil {
			b.Fatal(err)
		}
		written = append(written, time.Since(began))
		seen = append(seen, (<-watched).Sub(began))
	}
	b.ReportMetric(float64(median(written).Microseconds()), "µs/line-written")
	b.ReportMetric(float64(median(seen).Microseconds()), "µs/line-seen")
	b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare-sync")
	b.ReportMetric(median(seen).Seconds()/median(bares).Seconds(), "line-seen/bare-sync")
	b.ReportMetric(median(seen).Seconds()/median(written).Seconds(), "line-seen/line-written")
	b.ReportMetric(0, "ns/op")
}
