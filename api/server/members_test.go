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
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/google/go-cmp/cmp"
)

// as is a request of a caller.
func as(t *testing.T, who caller.Caller) context.Context {
	return caller.With(t.Context(), who)
}

// What an agent does for itself arrives in its name.
func TestAgentsForThemselves(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	joined, err := client.Post[api.Joined](ctx, c, "/agents/coder/ready", api.EmptyBody{})
	if want := (api.Joined{Seq: 15, HeartbeatMS: 10_000, MissedMax: channel.BeatsMissedMax}); err != nil || joined != want {
		t.Errorf("%+v, %v", joined, err)
	}
	beat := second(client.Post[api.Beaten](ctx, c, "/agents/coder/heartbeat", api.EmptyBody{}))
	list, fetch := actionsOf(ctx, c, "reviewer", time.Minute+time.Second)
	if len(list) != 1 || list[0].Turn != 4 || list[0].Messages == nil {
		t.Errorf("actions: %+v", list)
	}
	none, empty := actionsOf(ctx, c, "coder", 0)
	if len(none) > 0 || none == nil {
		t.Errorf("actions: %+v", none)
	}
	_, told := client.Post[api.Ordered](ctx, c, "/agents/coder/actions/done", api.ConfirmBody{Key: "tell_turn/reviews/coder/3"})
	_, said := speak(ctx, c, view.Speech{Channel: "reviews", Agent: "coder", Turn: 3, Text: "it is done", Complete: true})
	_, aside := speak(ctx, c, view.Speech{Channel: "reviews", Agent: "coder", Re: 7, Text: "yes", Ended: true})
	_, pass := client.Post[api.Ordered](ctx, c, "/channels/reviews/pass", api.TurnBody{Agent: "coder", Turn: 3})
	_, wait := client.Post[api.Ordered](ctx, c, "/channels/reviews/wait", api.WaitBody{Agent: "coder", Turn: 3, Why: "the tests run"})
	_, goesOn := client.Post[api.Ordered](ctx, c, "/channels/reviews/go-on", api.TurnBody{Agent: "coder", Turn: 3})
	_, left := client.Post[api.Ordered](ctx, c, "/agents/coder/leave", api.EmptyBody{})
	if err := errors.Join(beat, fetch, empty, told, said, aside, pass, wait, goesOn, left); err != nil {
		t.Error(err)
	}
	want := []string{
		`ready`, `beat`, `told "tell_turn/reviews/coder/3"`, `said turn=3 re=0 complete=true ended=false "it is done"`, `said turn=0 re=7 complete=false ended=true "yes"`,
		`pass turn=3`, `wait turn=3 "the tests run"`, `go_on turn=3`, `leave`,
	}
	if diff := cmp.Diff(want, toThePoint(s.fake.orders)); diff != "" {
		t.Error(diff)
	}
	for _, order := range s.fake.orders {
		if !strings.HasPrefix(order, "itself coder: ") {
			t.Errorf("in whose name: %s", order)
		}
	}
	var p *api.Problem
	if _, err := client.Post[api.Joined](ctx, c, "/agents/unknown/ready", api.EmptyBody{}); !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("%v", err)
	}
}

func (f *fake) polling() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

// poll begins a long poll that there is nothing for, and gives its answer later.
func (s *served) poll(ctx context.Context, t *testing.T, wait string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+api.Base+"/agents/coder/actions?wait="+wait, nil)
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
	wait := hasty.request + hasty.answer/2
	if got := <-s.poll(t.Context(), t, fmt.Sprintf("%dms", wait.Milliseconds())); !strings.HasPrefix(got, `200 {"actions":[]}`) {
		t.Error(got)
	}
}

// A long poll ends when its client goes, and gives its place back.
func TestPollOfWhoIsGone(t *testing.T) {
	s := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	for range agentPollsMax {
		s.poll(ctx, t, "60s")
	}
	wait.Until(t, "all wait", func() bool { return s.fake.polling() == agentPollsMax })
	text, h := s.want(t, 429, "GET", api.Base+"/agents/coder/actions?wait=60s", "")
	if h.Get("Retry-After") == "" || !strings.Contains(text, "of coder") {
		t.Errorf("%v %s", h, text)
	}
	s.want(t, 200, "GET", api.Base+"/agents/reviewer/actions?wait=60s", "")
	cancel()
	wait.Until(t, "no request waits for a client that has gone", func() bool { return s.fake.polling() == 0 })
	noneCounted := func() bool {
		s.polls.mu.Lock()
		defer s.polls.mu.Unlock()
		return s.polls.all == 0 && len(s.polls.of) == 0
	}
	wait.Until(t, "all places are given back", noneCounted)
	s.want(t, 200, "GET", api.Base+"/agents/coder/actions?wait=1ms", "")
	wait.Until(t, "that one, too", noneCounted)
}

// When the daemon stops, waiting polls are answered at once.
func TestPollAtTheEnd(t *testing.T) {
	s := serve(t)
	answer := s.poll(t.Context(), t, "60s")
	wait.Until(t, "it waits", func() bool { return s.fake.polling() == 1 })
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
	s := serve(b)
	c := dial(b, s)
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
		if err := second(client.Post[api.Beaten](b.Context(), c, "/agents/coder/heartbeat", api.EmptyBody{})); err != nil {
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
