package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/team"
)

// benchCrew returns an engine with eight members of a lead, of which only the lead's output is
// visible.
func benchCrew(b *testing.B) (*Supervisor, string) {
	b.Helper()
	e, dir, _ := benchEngine(b, "version: 1\nagents:\n  julian: {driver: exec, command: [\"true\"], workspace: julian}\n",
		func(c *config.Config) { c.Team.Lead, c.Team.Size = "julian", 8 })
	ctx := context.Background()
	if _, err := e.Hold(ctx, human, true, ""); err != nil {
		b.Fatal(err)
	}
	said := []team.Event{{Actor: sessions.ByShim, What: crew.LeadBegan{Session: "julian-1", UUID: leadUUID}}}
	for _, listed := range everybodyListed() {
		said = append(said, team.Event{Actor: sessions.ByShim, What: crew.Registered{Session: "julian-1", Identity: crew.Identity{
			Name: listed.Name, Seat: listed.Seat, Color: "#c9b1e8", Soul: strings.Repeat("I am "+listed.Name+". ", 300),
		}}})
	}
	if _, err := e.Do(ctx, loop.Request{Events: said}); err != nil {
		b.Fatal(err)
	}
	return e, dir
}

func everybodyListed() (all []crew.Listed) {
	for _, seat := range []int{0, 1, 2, 3, 5, 6, 7, 8} {
		all = append(all, crew.Listed{Name: fmt.Sprintf("Agent%d", seat), Status: "alive", Seat: seat})
	}
	return all
}

// BenchmarkReport measures the time from a lead's report of eight members, which is journaled
// first, until a watcher and eight files have it, beside bare syncs.
func BenchmarkReport(b *testing.B) {
	e, dir := benchCrew(b)
	ctx := context.Background()
	bare := syncer(b)
	var durable, seen, filed, bares []time.Duration
	for n := 0; b.Loop(); n++ {
		bares = append(bares, bare())
		var head uint64
		if err := e.View(ctx, func(*team.Team) { head = e.Head() }); err != nil {
			b.Fatal(err)
		}
		watched := make(chan time.Time, 1)
		go func() {
			agents := 0
			for ch, err := range e.Changes(ctx, head, "") {
				if err != nil {
					b.Error(err)
					break
				}
				if ch.Row == "P4" || ch.Row == "P5" {
					agents++
				}
				if agents == 8 {
					break
				}
			}
			watched <- time.Now()
		}()
		for e.Watchers() == 0 {
			wait.Pause(100 * time.Microsecond)
		}
		listed := everybodyListed()
		if n%2 == 1 {
			listed = nil
		}
		began := time.Now()
		if _, err := e.Submit(ctx, sessions.ByShim, "", crew.Reported{Session: "julian-1", Agents: listed}); err != nil {
			b.Fatal(err)
		}
		durable = append(durable, time.Since(began))
		seen = append(seen, (<-watched).Sub(began))
		awaitFiles(b, e, dir)
		filed = append(filed, time.Since(began))
	}
	b.ReportMetric(float64(median(durable).Microseconds()), "µs/report-durable")
	b.ReportMetric(float64(median(seen).Microseconds()), "µs/report-seen")
	b.ReportMetric(float64(median(filed).Microseconds()), "µs/report-in-files")
	b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare-sync")
	b.ReportMetric(median(seen).Seconds()/median(bares).Seconds(), "report-seen/bare-sync")
	b.ReportMetric(median(filed).Seconds()/median(bares).Seconds(), "report-in-files/bare-sync")
	b.ReportMetric(0, "ns/op")
}

// awaitFiles waits until every document's file agrees with the journal.
func awaitFiles(b *testing.B, e *Supervisor, dir string) {
	b.Helper()
	want := map[string]file.Sum{}
	if err := e.View(context.Background(), func(t *team.Team) {
		for id, doc := range t.Crew.Docs {
			want[string(id)] = file.SumOf(crewfile.WriteDocument(doc))
		}
	}); err != nil {
		b.Fatal(err)
	}
	limit := time.Now().Add(waitMax)
	for id, sum := range want {
		for {
			text, _ := os.ReadFile(filepath.Join(dir, ".fairlead", "agents", id+".json"))
			if file.SumOf(text) == sum {
				break
			}
			if time.Now().After(limit) {
				b.Fatalf("%s: %s", id, text)
			}
			wait.Pause(100 * time.Microsecond)
		}
	}
}

// BenchmarkImport measures the time from putting eight documents into the folder until eight
// members are known and Fairlead has written their files, beside bare syncs.
func BenchmarkImport(b *testing.B) {
	bare := syncer(b)
	var took, bares []time.Duration
	for b.Loop() {
		b.StopTimer()
		e, dir, _ := benchEngine(b, "version: 1\nagents:\n  julian: {driver: exec, command: [\"true\"], workspace: julian}\n",
			func(c *config.Config) { c.Team.Lead, c.Team.Size = "julian", 8 })
		folder := filepath.Join(dir, ".fairlead", "agents")
		for {
			if _, err := os.Stat(folder); err == nil {
				break
			}
			wait.Pause(100 * time.Microsecond)
		}
		wait.Pause(10 * time.Millisecond) // until the watch runs
		bares = append(bares, bare())
		b.StartTimer()
		began := time.Now()
		for _, listed := range everybodyListed() {
			text := doc(listed.Name, listed.Seat, "")
			if err := os.WriteFile(filepath.Join(folder, listed.Name+".json"), []byte(text), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		for {
			view, err := e.Crew(context.Background(), false)
			if err != nil {
				b.Fatal(err)
			}
			if len(view.Agents) == 8 {
				break
			}
			wait.Pause(100 * time.Microsecond)
		}
		awaitFiles(b, e, dir)
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64(median(took).Microseconds()), "µs/import-of-8")
	b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare-sync")
	b.ReportMetric(median(took).Seconds()/median(bares).Seconds(), "import-of-8/bare-sync")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTranscript measures pages of 100,000 messages, beside the bare reading of as many
// changes from the journal.
func BenchmarkTranscript(b *testing.B) {
	e, _ := benchCrew(b)
	ctx := context.Background()
	names := everybodyListed()
	for n := range 250 {
		var said []team.Event
		for i := range 400 {
			said = append(said, team.Event{Actor: sessions.ByShim, What: crew.Spoke{
				Session: "julian-1", Text: fmt.Sprintf("[%s]: message %d of a long day, in which much was done and little was said", names[i%8].Name, 400*n+i),
			}})
		}
		if _, err := e.Do(ctx, loop.Request{Events: said}); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.MakeTranscript(ctx); err != nil {
		b.Fatal(err)
	}
	// messages since the start are in the index already: build it again, as after a start
	e.CrewState.Said.Mu.Lock()
	e.CrewState.Said.Made, e.CrewState.Said.Places, e.CrewState.Said.Newest, e.CrewState.Said.Bytes = false, nil, nil, 0
	e.CrewState.Said.From = e.Head() + 1
	e.CrewState.Said.Mu.Unlock()
	began := time.Now()
	if page, err := e.Transcript(ctx, crewctl.TranscriptQuery{}); err != nil || len(page.Messages) < 100 {
		b.Fatal(len(page.Messages), err)
	}
	first := time.Since(began)
	began = time.Now()
	if err := e.MakeTranscript(ctx); err != nil {
		b.Fatal(err)
	}
	index := time.Since(began)
	page := func(q crewctl.TranscriptQuery, want int) time.Duration {
		began := time.Now()
		page, err := e.Transcript(ctx, q)
		if err != nil || len(page.Messages) < want {
			b.Fatal(len(page.Messages), err)
		}
		return time.Since(began)
	}
	var newest, speaker, found, absent, tail, bares []time.Duration
	for b.Loop() {
		began := time.Now()
		for _, err := range e.Journal().Read(ctx, journal.Query{After: e.Head() - 100, Until: e.Head()}) {
			if err != nil {
				b.Fatal(err)
			}
		}
		bares = append(bares, time.Since(began))
		newest = append(newest, page(crewctl.TranscriptQuery{}, 100))
		speaker = append(speaker, page(crewctl.TranscriptQuery{Speaker: "Agent5"}, 100))
		found = append(found, page(crewctl.TranscriptQuery{Text: "of a LONG day"}, 100))
		absent = append(absent, page(crewctl.TranscriptQuery{Text: "nobody said this"}, 0))
		began = time.Now()
		if messages, leftOut, err := e.MessagesFor(ctx, leadUUID, "Agent5"); err != nil || leftOut+len(messages) != 12_500 || len(messages) < 400 {
			b.Fatal(len(messages), leftOut, err)
		}
		tail = append(tail, time.Since(began))
	}
	for name, times := range map[string][]time.Duration{
		"newest-page": newest, "speaker-page": speaker, "text-page": found, "absent-8192": absent, "wake-tail": tail,
	} {
		b.ReportMetric(float64(median(times).Microseconds()), "µs/"+name)
	}
	b.ReportMetric(median(newest).Seconds()/median(bares).Seconds(), "newest-page/bare-read-of-100")
	b.ReportMetric(float64(first.Microseconds()), "µs/first-page")
	b.ReportMetric(float64(index.Milliseconds()), "ms/index")
	b.ReportMetric(0, "ns/op")
}
