package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// as is a request of a caller.
func as(t *testing.T, who caller.Caller) context.Context {
	return caller.With(t.Context(), who)
}

// polling is how many requests wait for actions of an agent.
func (s *served) polling(agent string) int {
	s.polls.mu.Lock()
	defer s.polls.mu.Unlock()
	return s.polls.of[agent]
}

// poll begins a long poll that there is nothing for, and gives its answer later.
func (s *served) poll(ctx context.Context, t *testing.T, wait string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+api.Base+"/agents/pilot/actions?wait="+wait, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	answer := make(chan string, 1)
	go func() {
		resp, err := plain.Do(req)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		answer <- fmt.Sprint(resp.StatusCode, " ", string(text), err)
	}()
	return answer
}

// A long poll outlives what a request may take to be sent, and then says that there is nothing.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	s := serveHasty(t)
	if _, err := s.sup.Channels.AgentReady(t.Context(), "pilot"); err != nil {
		t.Fatal(err)
	}
	longer := hasty.request + hasty.answer/2
	// A busy machine may be too slow to send a request within the server's short time; then it is sent again.
	wait.Until(t, "the poll is answered", func() bool {
		got := <-s.poll(t.Context(), t, fmt.Sprintf("%dms", longer.Milliseconds()))
		return strings.HasPrefix(got, `200 {"actions":[]}`)
	})
}

// A long poll ends when its client goes, and gives its place back.
func TestPollOfWhoIsGone(t *testing.T) {
	s, c := serveGuests(t)
	if _, err := c.Channels.Say(t.Context(), "reviews", "hello", ""); err != nil { // scout has the turn
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range agentPollsMax {
		s.poll(ctx, t, "60s")
	}
	wait.Until(t, "all wait", func() bool { return s.polling("pilot") == agentPollsMax })
	text, h := s.want(t, 429, "GET", api.Base+"/agents/pilot/actions?wait=60s", "")
	if h.Get("Retry-After") == "" || !strings.Contains(text, "of pilot") {
		t.Errorf("%v %s", h, text)
	}
	s.want(t, 200, "GET", api.Base+"/agents/scout/actions?wait=60s", "")
	cancel()
	wait.Until(t, "no request waits for a client that has gone", func() bool { return s.polling("pilot") == 0 })
	noneCounted := func() bool {
		s.polls.mu.Lock()
		defer s.polls.mu.Unlock()
		return s.polls.all == 0 && len(s.polls.of) == 0
	}
	wait.Until(t, "all places are given back", noneCounted)
	s.want(t, 200, "GET", api.Base+"/agents/pilot/actions?wait=1ms", "")
	wait.Until(t, "that one, too", noneCounted)
}

// When the daemon stops, waiting polls are answered at once.
func TestPollAtTheEnd(t *testing.T) {
	s, _ := serveGuests(t)
	answer := s.poll(t.Context(), t, "60s")
	wait.Until(t, "it waits", func() bool { return s.polling("pilot") == 1 })
	s.stop()
	if got := <-answer; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, loop.ErrClosed.Error()) {
		t.Error(got)
	}
}

// Polls beyond the limit are refused, for any agent.
func TestPollsOfAll(t *testing.T) {
	var p polls
	for i := range pollsMax {
		if err := p.enter(fmt.Sprint("agent-", i)); err != nil {
			t.Fatal(i, err)
		}
	}
	var full *api.Problem
	if err := p.enter("one-more"); !errors.As(err, &full) || full.Status != 503 || len(p.of) != pollsMax {
		t.Errorf("%v, %d names", err, len(p.of))
	}
	p.leave("agent-0")
	if err := p.enter("one-more"); err != nil {
		t.Error(err)
	}
}

// BenchmarkHeartbeat measures a heartbeat over the socket beside a bare server of the standard
// library that reads the same request and says the same, over a socket of its own, in one run.
func BenchmarkHeartbeat(b *testing.B) {
	s, c := serveGuests(b)
	l, err := net.Listen("unix", filepath.Join(filepath.Dir(socketOf(b, s)), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the baseline discards the body
		_, _ = io.WriteString(w, `{"heartbeat_ms":10000}`)
	})}
	defer bare.Close()
	go func() { _ = bare.Serve(l) }() // it ends with the benchmark
	other := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", l.Addr().String())
	}}}
	defer other.CloseIdleConnections()
	var beats, bares []float64
	for b.Loop() {
		began := time.Now()
		resp, err := other.Post("http://bare/", "application/json", strings.NewReader("{}"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		between := time.Now()
		if err := second(client.Post[api.Beaten](b.Context(), c, "/agents/pilot/heartbeat", api.EmptyBody{})); err != nil {
			b.Fatal(err)
		}
		bares, beats = append(bares, between.Sub(began).Seconds()*1e6), append(beats, time.Since(between).Seconds()*1e6)
	}
	slices.Sort(beats)
	slices.Sort(bares)
	half := len(beats) / 2
	b.ReportMetric(beats[half], "µs/beat")
	b.ReportMetric(beats[half]/bares[half], "beat/bare")
	b.ReportMetric(0, "ns/op")
}
