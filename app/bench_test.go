package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/workspace"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fsnotify/fsnotify"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/process/driver"
	driverexec "github.com/fairlead-dev/fairlead/process/driver/exec"
)

// Durations depend on this machine and moment. The ratios to a bare system call, made alternately
// in the same run, are the cost of the engine.

// benchConfig returns the configuration of a new repository with this fairlead.yaml.
func benchConfig(b testing.TB, yaml string) *config.Config {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(yaml), 0o600); err != nil {
		b.Fatal(err)
	}
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		b.Fatal(err)
	}
	return conf
}

// benchEngine returns an engine on a real disk. edits change the configuration where the file
// cannot.
func benchEngine(b testing.TB, yaml string, edits ...func(*config.Config)) (*App, string, *journaltest.Faults) {
	b.Helper()
	conf := benchConfig(b, yaml)
	dir := conf.Dir
	for _, edit := range edits {
		edit(conf)
	}
	ctx, cancel := context.WithCancel(context.Background())
	store := filepath.Join(dir, ".fairlead") // in the repository's own folder each append would wake the watcher of dispatch folders
	if err := os.MkdirAll(store, 0o700); err != nil {
		b.Fatal(err)
	}
	j, err := sqlite.Open(ctx, filepath.Join(store, "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	appended := journaltest.Faulty(j)
	log := slog.New(newRecorded())
	files := agentstate.Watch(log)
	documents := crewdocs.Watch(filepath.Join(dir, ".fairlead", "agents"), log)
	folders, err := dispatchctl.WatchSessions(dir, log)
	if err != nil {
		b.Fatal(err)
	}
	e, err := Open(ctx, outside.Options{
		Name: "bench", Documents: documents, Sessions: folders, Config: conf, Journal: appended, Files: files, Log: log,
		Lookup: os.LookupEnv, BootID: workspace.BootID(),
		Host:    &sessions.Shims{Folder: filepath.Join(dir, "sessions"), Workspace: dir},
		Drivers: map[string]driver.Driver{"exec": driverexec.Driver{}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	<-e.Loop.Ready()
	b.Cleanup(func() {
		_ = e.Agents.Stop(ctx, human, true)
		<-e.Loop.Stopped()
		cancel()
		if err := <-ran; err != nil {
			b.Error(err)
		}
		_ = files.Close()
		_ = documents.Close()
		_ = folders.Close()
		_ = j.Close()
	})
	return e, dir, appended
}

// syncer measures the bare operation: 200 bytes written and synced.
func syncer(b *testing.B) func() time.Duration {
	file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	line := []byte(strings.Repeat("x", 200))
	return func() time.Duration {
		began := time.Now()
		if _, err := file.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
}

func median[T int64 | float64 | time.Duration](of []T) T {
	of = slices.Clone(of)
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkCommands measures durable commands of several callers at once beside bare syncs.
func BenchmarkCommands(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchCommands(b, callers) })
	}
}

func benchCommands(b *testing.B, callers int) {
	var yaml strings.Builder
	yaml.WriteString("version: 1\nagents:\n")
	for n := range callers {
		fmt.Fprintf(&yaml, "  a%d: {driver: exec, command: [\"true\"], workspace: a%d}\n", n, n)
	}
	e, _, appended := benchEngine(b, yaml.String())
	if err := e.Loop.View(context.Background(), func(*team.Team) {
		for _, m := range e.Agents.Files { // the benchmark does not measure the files
			m.Crowded = true
		}
	}); err != nil {
		b.Fatal(err)
	}
	bare := syncer(b)
	var rates, shares []float64
	var bares []time.Duration
	perRound := max(4, 256/callers)
	for b.Loop() {
		for range 10 {
			bares = append(bares, bare())
		}
		appends := appended.Appends()
		began := time.Now()
		commandsAtOnce(b, e, callers, perRound)
		rates = append(rates, float64(callers*perRound)/time.Since(began).Seconds())
		shares = append(shares, float64(callers*perRound)/float64(appended.Appends()-appends))
	}
	sync := median(bares)
	b.ReportMetric(median(rates), "commands/s")
	b.ReportMetric(median(shares), "commands/append")
	b.ReportMetric(median(rates)*sync.Seconds(), "commands/bare-sync")
	b.ReportMetric(float64(sync.Microseconds()), "µs/bare-sync")
	b.ReportMetric(0, "ns/op")
}

// commandsAtOnce makes callers give commands in parallel, each one after the other.
func commandsAtOnce(b *testing.B, e *App, callers, each int) {
	var asking sync.WaitGroup
	for n := range callers {
		asking.Go(func() {
			for range each {
				if _, err := e.Agents.Command(context.Background(), human, fmt.Sprintf("a%d", n), "pause", ""); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	asking.Wait()
}

// BenchmarkFlip measures the time from another program's write of desired_state to current_state in
// the file, beside a bare watcher that only notices such a write.
func BenchmarkFlip(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(loop.Processors())) // as the daemon does
	_, dir, _ := benchEngine(b,
		"version: 1\nagents:\n  coder: {driver: exec, command: [sleep, \"1000\"], workspace: coder, loop: fairlead}\n")
	path := filepath.Join(dir, "coder", agentstate.FileName)
	state := func() agentstate.State {
		text, err := os.ReadFile(path)
		if err != nil {
			return agentstate.State{}
		}
		s, _ := agentstate.Parse(text)
		return s
	}
	// The benchmark changes the desired state to values that need no session: an unknown one and pause.
	// The note in the file tells which; it is written after the journal.
	put := func(desired string) time.Time {
		s := state()
		s.DesiredState, s.SetBy, s.Note, s.Timestamp = desired, agentstate.SetByHuman, "flip", file.FormatTime(time.Now())
		text := s.Render()
		began := time.Now() // without the time that the other program needs before its write
		if err := os.WriteFile(path, text, 0o644); err != nil {
			b.Fatal(err)
		}
		return began
	}
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		b.Fatal(err)
	}
	defer watch.Close()
	bareDir := b.TempDir()
	if err := watch.Add(bareDir); err != nil {
		b.Fatal(err)
	}
	answers, err := fsnotify.NewWatcher() // not a loop of reads: it would take one of the processors that are measured
	if err != nil {
		b.Fatal(err)
	}
	defer answers.Close()
	if err := answers.Add(filepath.Dir(path)); err != nil {
		b.Fatal(err)
	}
	bareSync := syncer(b)
	var flips, bares, syncs []time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		if err := os.WriteFile(filepath.Join(bareDir, "file"), []byte("{}"), 0o600); err != nil {
			b.Fatal(err)
		}
		<-watch.Events
		bares = append(bares, time.Since(began))
		for len(watch.Events) > 0 {
			<-watch.Events
		}
		syncs = append(syncs, bareSync())

		desired := fmt.Sprintf("word-%d", n)
		began = put(desired)
		for late := time.After(10 * time.Second); ; {
			select {
			case ev := <-answers.Events:
				if ev.Name != path || !strings.Contains(state().Note, desired) {
					continue
				}
			case <-late:
				b.Fatalf("%+v", state())
			}
			break
		}
		flips = append(flips, time.Since(began))
	}
	b.ReportMetric(float64(median(flips).Microseconds()), "µs/flip")
	b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare-watch")
	b.ReportMetric(float64(median(syncs).Microseconds()), "µs/bare-sync")
	b.ReportMetric(median(flips).Seconds()/median(bares).Seconds(), "flip/bare-watch")
	b.ReportMetric(median(flips).Seconds()/median(syncs).Seconds(), "flip/bare-sync")
	b.ReportMetric(median(flips).Seconds()/(median(bares)+4*median(syncs)).Seconds(), "flip/(watch+4-syncs)")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDeath measures the time from SIGKILL of an agent until every watcher knows it, beside a
// bare kill and wait of a child.
func BenchmarkDeath(b *testing.B) {
	e, _, _ := benchEngine(b, "version: 1\nagents:\n  coder: {driver: exec, command: [sleep, \"1000\"], workspace: coder}\n")
	var deaths, bares []time.Duration
	ctx := context.Background()
	for b.Loop() {
		child, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := child.Kill(); err != nil {
			b.Fatal(err)
		}
		if _, err := child.Wait(); err != nil {
			b.Fatal(err)
		}
		bares = append(bares, time.Since(began))

		seq, err := e.Agents.Command(ctx, human, "coder", "run_once", "")
		if err != nil {
			b.Fatal(err)
		}
		pid := 0
		for ch, err := range e.Loop.Changes(ctx, seq, "") {
			if err != nil {
				b.Fatal(err)
			}
			if ch.Row == "S1" {
				view, err := e.Status.Agent(ctx, "coder")
				if err != nil {
					b.Fatal(err)
				}
				pid = view.Session.PID
				began = time.Now()
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					b.Fatal(err)
				}
			}
			if ch.Row == "S4" {
				deaths = append(deaths, time.Since(began))
			}
			if ch.Row == "C20" {
				break
			}
		}
	}
	b.ReportMetric(median(deaths).Seconds()*1e3, "ms/death-known")
	b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare-wait")
	b.ReportMetric(median(deaths).Seconds()/median(bares).Seconds(), "death/bare-wait")
	b.ReportMetric(0, "ns/op")
}
