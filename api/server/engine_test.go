package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/google/go-cmp/cmp"
)

// real serves a team of one agent, whose processes are played.
func real(t testing.TB, j journal.Journal) *served {
	return serveTeam(t, j, newWorkspace(t), "version: 1\nagents:\n  coder: {description: Writes code, driver: exec, command: [\"true\"]}\n")
}

// From an order over one listener to its end as every watcher gets it, with a real engine.
func TestWithARealEngine(t *testing.T) {
	s := real(t, memory.New())
	playOneSession(t, s.dir, s.sup.host)
}

// BenchmarkFlip measures from an order to start over the socket until its answer, with which
// current_state has changed and is durable, beside one bare write and sync of 200 bytes, and beside net/http alone:
// a request over a socket whose handler does nothing but that write and sync.
func BenchmarkFlip(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(loop.Processors())) // as the daemon does
	j, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	s := real(b, j)
	host, c := s.sup.host, dial(b, s)
	bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	line := []byte(strings.Repeat("x", 200))
	write := func() {
		if _, err := bare.Write(line); err != nil {
			b.Error(err)
		}
		if err := bare.Sync(); err != nil {
			b.Error(err)
		}
	}
	ask := bareHTTP(b, filepath.Join(b.TempDir(), "bare"), write)
	var flips, syncs, ratios, https []float64
	for b.Loop() {
		began := time.Now()
		write()
		sync := time.Since(began).Seconds()
		began = time.Now()
		ask()
		https = append(https, time.Since(began).Seconds()/sync)

		began = time.Now()
		done, err := c.Command(b.Context(), api.Start, "coder", "")
		flip := time.Since(began).Seconds()
		if err != nil || done.Agent.CurrentState != "continuous" {
			b.Fatalf("%+v, %v", done, err)
		}
		flips, syncs, ratios = append(flips, flip*1e6), append(syncs, sync*1e6), append(ratios, flip/sync)

		actor := <-host.came
		if _, err := c.Command(b.Context(), api.Stop, "coder", ""); err != nil {
			b.Fatal(err)
		}
		actor.leave()
		wait.Until(b, "it rests", func() bool {
			why, err := c.Why(b.Context(), "coder")
			return err == nil && why.Agent.Session == nil && !why.Agent.FileBehind
		})
	}
	for name, values := range map[string][]float64{
		"µs/flip": flips, "µs/bare-sync": syncs, "flip/bare-sync": ratios,
		"http/bare-sync": https,
	} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
	b.ReportMetric(0, "ns/op")
}

// bareHTTP returns a request to a server at a socket that does one thing.
func bareHTTP(b *testing.B, path string, do func()) func() {
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		do()
		_, _ = io.WriteString(w, "{}")
	})}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	asker := &http.Client{Transport: &http.Transport{DialContext: dial}}
	return func() {
		resp, err := asker.Post("http://fairlead/", "application/json", strings.NewReader(`{"note":""}`))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func playOneSession(t *testing.T, dir string, host *stage) {
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Hold(t.Context(), "lunch"); err != nil {
		t.Fatal(err)
	}
	if view, err := c.Agents(t.Context()); err != nil || !view.Hold || len(view.Agents) != 1 {
		t.Errorf("held: %+v, %v", view, err)
	}
	if _, err := c.Unhold(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	done, err := c.Command(t.Context(), api.Once, "coder", "try it")
	if err != nil || done.Seq == 0 || done.Agent.Note != "try it" {
		t.Fatalf("%+v, %v", done, err)
	}
	actor := <-host.came
	wait.Until(t, "the badge says RUNNING", func() bool {
		why, err := c.Why(t.Context(), "coder")
		return err == nil && why.Agent.Badge == view.BadgeRunning && why.Agent.Session != nil && why.Agent.Session.PID == 4711
	})
	go func() {
		actor.say("hello\n")
		actor.leave()
	}()
	text, _, end := hear(t, c, "coder-1", client.OutputQuery{})
	if text != "hello\n" || end.Outcome != "ok" {
		t.Errorf("output %q, %+v", text, end)
	}
	var told []string
	for ch, err := range c.Events(t.Context(), client.EventsQuery{Entity: "control/coder"}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, strings.TrimSpace(ch.Row+" "+ch.To))
		if ch.Row == "C8" {
			if ch.Actor.Kind != "engine" || len(ch.Data) < 10 {
				t.Errorf("%+v", ch)
			}
			break
		}
	}
	if len(told) < 3 || cmp.Diff([]string{"C8 resting"}, told[len(told)-1:]) != "" {
		t.Errorf("told: %v", told)
	}
	read, err := client.Get[api.Facts](t.Context(), c, "/sessions/coder-1/facts", nil)
	facts := read.Facts
	if err != nil || len(facts) != 1 || facts[0].Text != "hello" {
		t.Errorf("facts: %+v, %v", facts, err)
	}
}

// The loop carries out an order whose caller has left, and fills a view that the caller must not read: the race detector
// sees it.
func TestOrderOfACallerWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		busy, ended := make(chan struct{}), make(chan error, 1)
		go func() { _ = sup.Loop.View(context.WithoutCancel(t.Context()), func(*team.Team) { <-busy }) }()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			_, shown, err := sup.Status.Order(ctx, change.Actor{Kind: "human", ID: "ann"}, "coder", "pause", "")
			if shown.Name != "" {
				t.Errorf("a caller who left was shown %s", shown.Name)
			}
			ended <- err
		}()
		synctest.Wait() // it waits in the queue
		leave()
		close(busy) // nothing orders what the caller reads and what the loop fills
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who left gets %v", err)
		}
		synctest.Wait()
		if all := sup.changes(t); len(all) == 0 {
			t.Error("the order was not carried out, so this tests nothing")
		}
	})
}
