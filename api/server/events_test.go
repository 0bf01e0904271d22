package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// seqs follows the journal until it has n changes.
func seqs(t *testing.T, c *client.Client, q client.EventsQuery, n int) []uint64 {
	t.Helper()
	var got []uint64
	for ch, err := range c.Events(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, ch.Seq); len(got) == n {
			break
		}
	}
	return got
}

func TestEventsBegin(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	n := s.sup.first
	s.sup.add(t, "coder", 3)    // n+1, n+2, n+3
	s.sup.add(t, "reviewer", 3) // n+4, n+5, n+6
	s.sup.add(t, "coder", 1)    // n+7
	var all []uint64
	for seq := range n + 7 {
		all = append(all, seq+1)
	}
	for _, tc := range []struct {
		q    client.EventsQuery
		want []uint64
	}{
		{client.EventsQuery{}, all},
		{client.EventsQuery{After: int64(n) + 5}, []uint64{n + 6, n + 7}},
		{client.EventsQuery{Tail: 2}, []uint64{n + 6, n + 7}},
		{client.EventsQuery{Tail: 100}, all},
		{client.EventsQuery{Entity: "control/coder", After: int64(n)}, []uint64{n + 1, n + 2, n + 3, n + 7}},
		{client.EventsQuery{Entity: "control/coder", Tail: 2}, []uint64{n + 3, n + 7}},
		{client.EventsQuery{Entity: "control/coder", After: int64(n) + 2}, []uint64{n + 3, n + 7}},
	} {
		if diff := cmp.Diff(tc.want, seqs(t, c, tc.q, len(tc.want))); diff != "" {
			t.Errorf("%+v: %s", tc.q, diff)
		}
	}
	wait.Until(t, "those before have gone", func() bool { return s.watchers.Load() == 0 })
	next := make(chan []uint64, 1)
	go func() { next <- seqs(t, c, client.EventsQuery{After: client.FromNow}, 2) }()
	wait.Until(t, "there is a watcher", func() bool { return s.watchers.Load() == 1 })
	s.sup.add(t, "coder", 2)
	if diff := cmp.Diff([]uint64{n + 8, n + 9}, <-next); diff != "" {
		t.Errorf("from now: %s", diff)
	}
	if st, _ := c.Status(t.Context()); st.Subscribers > 1 {
		t.Errorf("%d subscribers", st.Subscribers)
	}
}

// A browser comes back with the last id that it has, and the old address.
func TestLastEventIDWins(t *testing.T) {
	s := serve(t)
	n := s.sup.first
	s.sup.add(t, "coder", 9)
	for id, first := range map[string]uint64{fmt.Sprint(n + 7): n + 8, "0": 1, "": n + 4} {
		req := s.request(t, "GET", api.Base+fmt.Sprint("/events?after=", n+3),
			map[string]string{"Authorization": "Bearer " + testToken, "Last-Event-ID": id})
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		_ = api.ReadEvents(resp.Body, func() {}, func(e api.Event) bool { got = e.ID; return e.Name != "change" })
		resp.Body.Close()
		if got != fmt.Sprint(first) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			t.Errorf("Last-Event-ID %q: begins with %s, want %d", id, got, first)
		}
	}
	for _, id := range []string{"x", "-1x", "99999999999999999999", "1 "} {
		req := s.request(t, "GET", api.Base+"/events", map[string]string{"Authorization": "Bearer " + testToken, "Last-Event-ID": id})
		if id == "1 " {
			continue // a server does not see the blank
		}
		text, _ := send(t, req, 422)
		if p := problemText(t, text); len(p.Errors) != 1 || p.Errors[0].Location != "header.Last-Event-ID" {
			t.Errorf("Last-Event-ID %q: %s", id, text)
		}
	}
	var p *api.Problem
	for _, err := range dial(t, s).Events(t.Context(), client.EventsQuery{After: int64(n) + 10}) {
		if !errors.As(err, &p) || p.Status != http.StatusGone {
			t.Errorf("beyond the end: %v", err)
		}
	}
	if p == nil {
		t.Error("beyond the end nothing is said")
	}
}

func TestJournalPages(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	for range 40 {
		s.sup.add(t, "coder", 50)
		s.sup.add(t, "reviewer", 10)
	}
	head := s.sup.first + 2400
	var read []uint64
	for {
		page, err := c.Journal(t.Context(), client.JournalQuery{After: uint64(len(read)), Limit: 700})
		if err != nil || page.Head != head {
			t.Fatal(page.Head, err)
		}
		for _, ch := range page.Changes {
			read = append(read, ch.Seq)
			if ch.Seq != uint64(len(read)) {
				t.Fatalf("change %d at place %d", ch.Seq, len(read))
			}
		}
		if len(page.Changes) == 0 {
			break
		}
	}
	if uint64(len(read)) != head {
		t.Errorf("%d changes of %d", len(read), head)
	}
	page, err := c.Journal(t.Context(), client.JournalQuery{Tail: 15, Entity: "control/reviewer"})
	if err != nil || len(page.Changes) != 15 || page.Changes[14].Seq != head || page.Changes[4].Seq != head-60 {
		t.Errorf("tail: %+v, %v", page, err)
	}
	page, err = c.Journal(t.Context(), client.JournalQuery{Tail: 15, Entity: "control/nobody"})
	if err != nil || page.Changes == nil || len(page.Changes) != 0 {
		t.Errorf("nobody: %+v, %v", page, err)
	}
}

// What one agent did in one night is one question, whether it did much or little among the others.
func TestJournalOfOneNight(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	evening := time.Now().Add(time.Hour) // after all that the controller has done
	n := s.sup.first
	add := func(entity string, after time.Duration, n int) {
		batch := make([]journal.Change, n)
		for i := range batch {
			batch[i] = journal.Change{
				Time: evening.Add(after), Machine: "control", Entity: entity, Row: "C2", From: "resting",
				To: "continuous", Trigger: "x", Actor: change.Actor{Kind: "human"},
			}
		}
		if _, err := s.sup.j.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	add("control/coder", -time.Second, 1) // n+1
	add("control/coder", 0, 1)            // n+2
	for range 60 {                        // to n+60,002
		add("control/reviewer", time.Minute, 1000)
	}
	add("session/coder", 2*time.Minute, 2) // n+60,003 and n+60,004
	add("control/coder", 3*time.Minute, 1) // n+60,005
	night := client.JournalQuery{Agent: "coder", Since: evening, Until: evening.Add(2 * time.Minute)}
	var read []uint64
	pages := 0
	for q := night; ; pages++ {
		page, err := c.Journal(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range page.Changes {
			read = append(read, ch.Seq)
		}
		if q.After = page.Next; page.Next == 0 {
			break
		}
	}
	if diff := cmp.Diff([]uint64{n + 2, n + 60_003, n + 60_004}, read); diff != "" || pages != 1 {
		t.Errorf("%d more pages: %s", pages, diff)
	}
	for _, c := range []struct {
		q    client.JournalQuery
		want []uint64
	}{
		{client.JournalQuery{Agent: "coder", Tail: 2, Since: night.Since, Until: night.Until}, []uint64{n + 60_003, n + 60_004}},
		{client.JournalQuery{Agent: "coder", Tail: 9, Since: night.Since, Until: night.Until}, []uint64{n + 2, n + 60_003, n + 60_004}},
		{client.JournalQuery{Until: evening.AddDate(-1, 0, 0)}, nil},
		{client.JournalQuery{Since: evening.Add(time.Hour)}, nil},
		{client.JournalQuery{After: n + 60_003, Since: evening}, []uint64{n + 60_004, n + 60_005}},
	} {
		page, err := dial(t, s).Journal(t.Context(), c.q)
		var got []uint64
		for _, ch := range page.Changes {
			got = append(got, ch.Seq)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v %s", c.q, err, diff)
		}
	}
}

// No gap and no double, whatever is cut when: the promise of this package.
func TestEventsUnderLoad(t *testing.T) {
	s := serve(t)
	const watchers = 12
	before, during := 1500, 6000
	if testsize.Race {
		before, during = 600, 2000
	}
	first := s.sup.first
	s.sup.add(t, "coder", before/3)
	s.sup.add(t, "reviewer", before-before/3)
	var all sync.WaitGroup
	for w := range watchers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			entity := []string{"", "control/coder"}[w%2]
			c := dial(t, s)
			last, n := first, 0
			for last < first+uint64(before+during) {
				budget := 1 + rnd.IntN(2000)
				for ch, err := range c.Events(t.Context(), client.EventsQuery{After: int64(last), Entity: entity}) {
					if err != nil {
						t.Errorf("watcher %d after %d: %v", w, last, err)
						return
					}
					if entity == "" && ch.Seq != last+1 || ch.Seq <= last || entity != "" && ch.Entity != entity {
						t.Errorf("watcher %d: %d (%s) after %d", w, ch.Seq, ch.Entity, last)
						return
					}
					last, n = ch.Seq, n+1
					if budget--; budget == 0 || last == first+uint64(before+during) {
						break
					}
				}
			}
			if want := before/3 + during - during/4; entity != "" && n != want {
				t.Errorf("watcher %d heard %d changes of its agent, want %d", w, n, want)
			}
		})
	}
	rnd := rand.New(rand.NewPCG(2, 2))
	coder, reviewer := during-during/4-1, during/4
	for coder+reviewer > 0 {
		n := 1 + rnd.IntN(50)
		if rnd.IntN(20) == 0 {
			n = 1025 // more than the loop keeps in memory: watchers have to read them from the journal
		}
		if n = min(n, coder); n > 0 {
			s.sup.add(t, "coder", n)
			coder -= n
		}
		if n = min(1+rnd.IntN(20), reviewer); n > 0 {
			s.sup.add(t, "reviewer", n)
			reviewer -= n
		}
	}
	s.sup.add(t, "coder", 1) // the last one is of interest to everybody
	all.Wait()
	wait.Until(t, "the last watcher is gone", func() bool { return s.watchers.Load() == 0 })
}

// sentPieces is a client that notes what it is given to send.
type sentPieces struct {
	http.ResponseWriter
	written [][]byte
}

func (p *sentPieces) Write(b []byte) (int, error) {
	p.written = append(p.written, b)
	return len(b), nil
}
func (p *sentPieces) Flush() {}

// A change is encoded once, however many clients watch.
func TestEventsShareOneEncoding(t *testing.T) {
	s := serve(t)
	last := s.sup.add(t, "coder", 3)
	var first [][]byte
	for range 3 {
		to := &sentPieces{ResponseWriter: httptest.NewRecorder()}
		part, err := s.engine.Loop.Since(t.Context(), last-3, "")
		if err != nil || len(part.Changes) != 3 {
			t.Fatalf("%d changes, %v", len(part.Changes), err)
		}
		watch := &watcher{s: s.Server, out: &sse{s: s.Server, w: to, rc: http.NewResponseController(to)}}
		if err := watch.tell(part.Changes); err != nil || len(to.written) != 3 {
			t.Fatalf("%d pieces, %v", len(to.written), err)
		}
		if first == nil {
			first = to.written
		}
		for i := range first {
			if &first[i][0] != &to.written[i][0] {
				t.Errorf("change %d was encoded again", i)
			}
		}
	}
}

// The client takes a broken line up again, also where the daemon is another one.
func TestEventsSurviveARestart(t *testing.T) {
	j := memory.New()
	s := serveTeam(t, j, newWorkspace(t), pair)
	c := dial(t, s)
	s.sup.add(t, "coder", 2)
	heard := make(chan uint64)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for ch, err := range c.Events(ctx, client.EventsQuery{}) {
			if err != nil {
				done <- err
				return
			}
			heard <- ch.Seq
		}
	}()
	last := uint64(0)
	until := func(head uint64) {
		t.Helper()
		for last < head {
			select {
			case got := <-heard:
				if last++; got != last {
					t.Fatalf("heard %d, want %d", got, last)
				}
			case err := <-done:
				t.Fatalf("the line ended: %v", err)
			case <-time.After(patience):
				t.Fatalf("%d was never heard", last+1)
			}
		}
	}
	until(s.sup.first + 2)
	s.stop()
	s.sup.end()
	next := serveTeam(t, j.Again(), s.dir, pair)
	until(next.sup.add(t, "coder", 1))
	until(next.sup.add(t, "coder", 2))
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after its context: %v", err)
	}
}

func TestGoodbye(t *testing.T) {
	s := serve(t)
	s.sup.begin(t, "coder", 1).say("still at work")
	for _, path := range []string{"/events?after=0", "/sessions/coder-1/output/stream"} {
		resp, err := plain.Do(s.request(t, "GET", api.Base+path, map[string]string{"Authorization": "Bearer " + testToken}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		defer func() {
			text, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(text), "event: bye\ndata: {\"reason\":\"stopping\"") {
				t.Errorf("%s ended with %v:\n%s", path, err, text)
			}
		}()
	}
	s.stop()
}

func TestTooManyStreams(t *testing.T) {
	s := serve(t)
	s.sup.begin(t, "coder", 1).say("x")
	s.streams.Add(streamsMax)
	for _, path := range []string{"/events", "/sessions/coder-1/output/stream"} {
		text, h := s.want(t, 503, "GET", api.Base+path, "")
		if p := problemText(t, text); !strings.Contains(p.Detail, "2000 streams") || h.Get("Retry-After") == "" {
			t.Errorf("%s: %v %s", path, h, text)
		}
	}
	s.streams.Add(-streamsMax)
	s.want(t, 200, "HEAD", api.Base+"/events", "")
}

// memoryAnswer is the other side of a handler, without a network: bubbles of time need that.
type memoryAnswer struct {
	mu     sync.Mutex
	header http.Header
	text   strings.Builder
	gate   chan struct{} // a write waits for it, where there is one
}

func (m *memoryAnswer) Header() http.Header { return m.header }
func (m *memoryAnswer) WriteHeader(int)     {}
func (m *memoryAnswer) Flush()              {}
func (m *memoryAnswer) Write(b []byte) (int, error) {
	if m.gate != nil {
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(b)
}

func (m *memoryAnswer) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// watchIn runs a stream in a bubble of time.
func watchIn(ctx context.Context, s *Server, path string, w http.ResponseWriter) <-chan struct{} {
	req, _ := http.NewRequestWithContext(ctx, "GET", api.Base+path, nil)
	done := make(chan struct{})
	go func() { defer close(done); s.SocketHandler().ServeHTTP(w, req) }()
	return done
}

func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		sup.begin(t, "coder", 1).say("x")
		synctest.Wait()
		s := New(Options{Engine: sup.App})
		ctx, cancel := context.WithCancel(t.Context())
		events, output := &memoryAnswer{header: http.Header{}}, &memoryAnswer{header: http.Header{}}
		one := watchIn(ctx, s, "/events", events)
		two := watchIn(ctx, s, "/sessions/coder-1/output/stream", output)
		wait.Elapse(pingEvery*3 + time.Second) // in the bubble's time: the test does not wait
		synctest.Wait()
		for _, w := range []*memoryAnswer{events, output} {
			if n := strings.Count(w.String(), ": ping\n\n"); n != 3 {
				t.Errorf("%d pings:\n%s", n, w)
			}
		}
		cancel()
		<-one
		<-two
		s.Close()
	})
}

// A client that reads slowly gets each change all the same: what is no longer in memory comes from the journal.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup := superviseStill(t, memory.New(), pair)
		s := New(Options{Engine: sup.App})
		ctx, cancel := context.WithCancel(t.Context())
		w := &memoryAnswer{header: http.Header{}, gate: make(chan struct{})}
		done := watchIn(ctx, s, "/events", w)
		for range 3 { // retry, id, and the first change, which is stuck
			w.gate <- struct{}{}
			sup.add(t, "coder", 1)
			synctest.Wait()
		}
		for range 5 {
			sup.add(t, "coder", 1000)
		}
		synctest.Wait()
		close(w.gate)
		synctest.Wait()
		cancel()
		<-done
		heard := sup.first
		_ = api.ReadEvents(strings.NewReader(w.String()), func() {}, func(e api.Event) bool {
			if e.Name == "change" {
				if heard++; e.ID != strconv.FormatUint(heard, 10) {
					t.Errorf("%s, want %d", e.ID, heard)
				}
			}
			return true
		})
		if want := sup.head(t); heard != want {
			t.Errorf("it ends with %d, and the journal with %d", heard, want)
		}
		s.Close()
	})
}

// An answer to a poll ends with the first changes, or without any: a proxy that holds back what it could stream passes on
// what has ended.
func TestPolls(t *testing.T) {
	t.Parallel()
	s := serve(t)
	n := s.sup.first
	s.sup.add(t, "coder", 3)
	events := func(s *served, path string) string {
		text, h := send(t, s.request(t, "GET", api.Base+path, map[string]string{"Authorization": "Bearer " + testToken}), 200)
		if h.Get("X-Accel-Buffering") != "no" {
			t.Error("nginx is not told to pass the stream on")
		}
		return text
	}
	if text := events(s, fmt.Sprintf("/events?after=%d&poll=true", n+1)); !strings.Contains(text, fmt.Sprintf("id: %d\n", n+2)) ||
		!strings.Contains(text, fmt.Sprintf("id: %d\n", n+3)) || strings.Contains(text, fmt.Sprintf("id: %d\nevent", n+1)) {
		t.Errorf("what has been is answered with %s", text)
	}
	next := make(chan string, 1)
	go func() { next <- events(s, fmt.Sprintf("/events?after=%d&poll=true", n+3)) }()
	wait.Until(t, "there is a watcher", func() bool { return s.watchers.Load() == 1 })
	s.sup.add(t, "coder", 1)
	if text := <-next; !strings.Contains(text, fmt.Sprintf("id: %d\n", n+4)) {
		t.Errorf("the next change is answered with %s", text)
	}
	wait.Until(t, "no watcher is left", func() bool { return s.watchers.Load() == 0 })
	coder := s.sup.begin(t, "coder", 1)
	coder.say("hello")
	if text := events(s, "/sessions/coder-1/output/stream?poll=true"); !strings.Contains(text, `"text":"hello"`) ||
		strings.Contains(text, "event: bye") {
		t.Errorf("an output that goes on is answered with %s", text)
	}
	hasty := serveHasty(t) // answers soon, too, if there is nothing
	hasty.sup.begin(t, "coder", 1).say("hello")
	var idle sync.WaitGroup
	for _, path := range []string{
		fmt.Sprintf("/events?after=%d&poll=true&entity=control/reviewer", hasty.sup.head(t)),
		"/sessions/coder-1/output/stream?from=5&poll=true",
	} {
		idle.Go(func() {
			if text := events(hasty, path); strings.Contains(text, "event:") || !strings.HasSuffix(text, ": ping\n\n") {
				t.Errorf("%s without news is answered with %s", path, text)
			}
		})
	}
	idle.Wait()
	s.sup.over(t, coder)
	if text := events(s, "/sessions/coder-1/output/stream?from=5&poll=true"); !strings.Contains(text, "event: end") {
		t.Errorf("the end is answered with %s", text)
	}
}
