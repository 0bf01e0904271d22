package server

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// hear follows a session to its end and puts the pieces together.
func hear(t *testing.T, c *client.Client, session string, q client.OutputQuery) (text string, first int64, end api.Ended) {
	t.Helper()
	at := int64(-1)
	for h, err := range c.Output(t.Context(), session, q) {
		switch {
		case err != nil:
			t.Fatal(err)
		case h.End != nil:
			end = *h.End
			continue
		case at >= 0 && h.Offset != at:
			t.Fatalf("a piece begins at %d, want %d", h.Offset, at)
		case h.End != nil || h.Output.End <= h.Offset || h.Output.End-h.Offset > outputBytesMax:
			t.Fatalf("a piece from %d to %d", h.Offset, h.Output.End)
		case !utf8.ValidString(h.Text):
			t.Fatalf("text that is none: %q", h.Text)
		}
		if at < 0 {
			first = h.Offset
		}
		at = h.Output.End
		text += h.Text
	}
	return text, first, end
}

func TestOutputIsFollowed(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	gate := make(chan struct{})
	host := s.sup.host
	host.direct(func() { host.starts = func() error { <-gate; return nil } })
	if _, err := c.Command(t.Context(), api.Once, "coder", ""); err != nil { // opened, not begun
		t.Fatal(err)
	}
	go func() {
		if got, err := c.RawOutput(t.Context(), "coder-1", 0, 0); err != nil || !got.Open || len(got.Bytes) != 0 {
			t.Errorf("not begun, raw: %+v, %v", got, err)
		}
		close(gate)
		p := host.acts(t, "coder-1")
		p.say("grüße, ")
		p.say("a torn character: \xe2")
		p.say("\x82")
		p.say("\xac, one that stays torn: \xf0\x9f")
		p.leave()
	}()
	text, first, end := hear(t, c, "coder-1", client.OutputQuery{})
	if want := "grüße, a torn character: €, one that stays torn: \uFFFD"; text != want || first != 0 {
		t.Errorf("from %d: %q, want %q", first, text, want)
	}
	if end != (api.Ended{Outcome: "ok"}) {
		t.Errorf("the end: %+v", end)
	}
	if text, first, _ := hear(t, c, "coder-1", client.OutputQuery{From: 9}); first != 9 || !strings.HasPrefix(text, "a torn") {
		t.Errorf("from 9: %d %q", first, text)
	}
	if text, _, end := hear(t, c, "coder-1", client.OutputQuery{From: 5000}); text != "" || end.Outcome != "ok" {
		t.Errorf("beyond the end: %q %+v", text, end)
	}
	host.direct(func() { host.starts = func() error { return &spawn.CannotStart{Why: "no such program"} } })
	if _, err := c.Command(t.Context(), api.Once, "coder", ""); err != nil {
		t.Fatal(err)
	}
	if text, _, end := hear(t, c, "coder-2", client.OutputQuery{}); text != "" ||
		end != (api.Ended{Outcome: "cannot_start", Why: "no such program"}) {
		t.Errorf("never begun: %q %+v", text, end)
	}
	if got, err := c.RawOutput(t.Context(), "coder-2", 0, 0); err != nil || got.Open || len(got.Bytes) != 0 {
		t.Errorf("never begun, raw: %+v, %v", got, err)
	}
}

// An incomplete character is held back, and a session that is silent, or that no process follows yet,
// has not ended.
func TestOutputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		p := sup.begin(t, "coder", 1)
		synctest.Wait() // the controller follows it
		sup.host.direct(func() { sup.host.read = func(io.ReadCloser) io.ReadCloser { return http.NoBody } })
		s := New(Options{Engine: sup.App})
		w := &memoryAnswer{header: http.Header{}}
		done := watchIn(t.Context(), s, "/sessions/coder-1/output/stream", w)
		said := func(want ...string) {
			t.Helper()
			wait.Elapse(time.Second)
			synctest.Wait()
			var got []string
			for line := range strings.Lines(w.String()) {
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					got = append(got, strings.TrimSpace(data))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
		p.say("5 \xe2")
		said()
		sup.host.direct(func() { sup.host.read = nil })
		said(`{"offset":0,"end":2,"text":"5 "}`)
		p.say("\x82")
		said(`{"offset":0,"end":2,"text":"5 "}`)
		p.say("\xac")
		said(`{"offset":0,"end":2,"text":"5 "}`, `{"offset":2,"end":5,"text":"€"}`)
		p.say("!")
		said(`{"offset":0,"end":2,"text":"5 "}`, `{"offset":2,"end":5,"text":"€"}`, `{"offset":5,"end":6,"text":"!"}`)
		p.leave()
		<-done
		said(`{"offset":0,"end":2,"text":"5 "}`, `{"offset":2,"end":5,"text":"€"}`, `{"offset":5,"end":6,"text":"!"}`,
			`{"outcome":"ok","why":""}`)
		s.Close()
	})
}

// A line of 20 MiB passes byte for byte, and none of it is held in one piece for a page.
func TestOutputLongLine(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := dial(t, s)
	rnd := rand.New(rand.NewPCG(3, 3))
	line := make([]byte, 20<<20)
	for i := range line {
		line[i] = byte(rnd.Uint32())
		if line[i] == '\n' {
			line[i] = 0
		}
	}
	p := s.sup.begin(t, "coder", 1)
	p.say(string(line))
	var got []byte
	for open := true; open; {
		part, err := c.RawOutput(t.Context(), "coder-1", int64(len(got)), 7<<20)
		if err != nil || part.Offset != int64(len(got)) {
			t.Fatal(part.Offset, err)
		}
		if got = append(got, part.Bytes...); len(part.Bytes) == 0 {
			s.sup.over(t, p)
		}
		open = part.Open
	}
	if !bytes.Equal(got, line) {
		t.Errorf("%d bytes came, not the %d that were said", len(got), len(line))
	}
	text, first, end := hear(t, c, "coder-1", client.OutputQuery{Tail: 100 << 10})
	// It begins early enough. That it does not begin much earlier is TestNearEnd's: a busy machine takes longer than a probe waits.
	if end.Outcome != "ok" || first > int64(len(line))-(100<<10)+3 || text == "" {
		t.Errorf("the tail begins at %d of %d: %+v", first, len(line), end)
	}
}

func TestNearEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a busy machine takes longer than a probe waits
		sup := superviseStill(t, memory.New(), pair)
		s := New(Options{Engine: sup.App})
		defer s.Close()
		for i, size := range []int64{0, 1, 500, 70_000, 65_536, 300_000, 5_000_000} {
			p := sup.begin(t, "coder", i+1)
			p.say(strings.Repeat("x", int(size)))
			for _, open := range []bool{true, false} {
				if !open {
					sup.over(t, p)
				}
				for _, tail := range []int64{1, 1000, 128 << 10, 1 << 30} {
					at := s.nearEnd(t.Context(), p.session, tail)
					if spare := max(tail/4, probeExact) + 1; at > max(0, size-tail) || at < size-tail-spare {
						t.Errorf("open %v, %d bytes, tail %d: begins at %d", open, size, tail, at)
					}
				}
			}
		}
	})
}

// A reader gets at most 20 messages per second, each of limited size.
func TestOutputIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		p := sup.begin(t, "coder", 1)
		p.say("x")
		s := New(Options{Engine: sup.App})
		ctx, cancel := context.WithCancel(t.Context())
		w := &memoryAnswer{header: http.Header{}}
		done := watchIn(ctx, s, "/sessions/coder-1/output/stream", w)
		for range 2000 { // two seconds of chatter
			wait.Elapse(time.Millisecond)
			p.say("chatter ")
		}
		synctest.Wait()
		if n := strings.Count(w.String(), "event: output"); n > 42 || n < 30 {
			t.Errorf("%d messages in two seconds", n)
		}
		p.say(strings.Repeat("long ", 100_000))
		wait.Elapse(time.Second)
		synctest.Wait()
		for piece := range strings.SplitSeq(w.String(), "\n\n") {
			if len(piece) > outputBytesMax+200 {
				t.Errorf("a piece of %d bytes", len(piece))
			}
		}
		cancel()
		<-done
		s.Close()
	})
}

// Output that has ended is not slowed down as live output is.
func TestEndedOutputIsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		p := sup.begin(t, "coder", 1)
		p.say(strings.Repeat("a long output ", 500_000))
		p.leave()
		synctest.Wait()
		s := New(Options{Engine: sup.App})
		w := &memoryAnswer{header: http.Header{}}
		began := time.Now()
		<-watchIn(t.Context(), s, "/sessions/coder-1/output/stream", w)
		if !strings.Contains(w.String(), "event: end") || time.Since(began) > outputEvery {
			t.Errorf("%d bytes in %v", len(w.String()), time.Since(began))
		}
		s.Close()
	})
}
