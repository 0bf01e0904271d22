package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/machine/turn"
)

// as is a request of a caller.
func as(t *testing.T, who *caller) context.Context {
	return context.WithValue(t.Context(), callerKey{}, who)
}

// What an agent does for itself arrives in its name.
func TestAgentsForThemselves(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	joined, err := c.AgentReady(ctx, "coder")
	if want := (Joined{Seq: 15, HeartbeatMS: 10_000, MissedMax: turn.BeatsMissedMax}); err != nil || joined != want {
		t.Errorf("%+v, %v", joined, err)
	}
	beat := c.AgentBeat(ctx, "coder")
	list, fetch := c.AgentErrands(ctx, "reviewer", time.Minute+time.Second)
	if len(list) != 1 || list[0].Turn != 4 || list[0].Messages == nil {
		t.Errorf("errands: %+v", list)
	}
	none, empty := c.AgentErrands(ctx, "coder", 0)
	if len(none) > 0 || none == nil {
		t.Errorf("errands: %+v", none)
	}
	_, told := c.AgentTold(ctx, "coder", "tell_turn/reviews/coder/3")
	_, said := c.AgentSaid(ctx, engine.Speech{Channel: "reviews", Agent: "coder", Turn: 3, Text: "it is done", Complete: true})
	_, aside := c.AgentSaid(ctx, engine.Speech{Channel: "reviews", Agent: "coder", Re: 7, Text: "yes", Ended: true})
	_, pass := c.AgentPass(ctx, "reviews", "coder", 3)
	_, wait := c.AgentWait(ctx, "reviews", "coder", 3, "the tests run")
	_, goesOn := c.AgentGoesOn(ctx, "reviews", "coder", 3)
	_, left := c.AgentLeft(ctx, "coder")
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
	var p *Problem
	if _, err := c.AgentReady(ctx, "nobody"); !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("%v", err)
	}
}

func (f *fake) polling() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

// poll begins a long poll that there is nothing for, and gives its answer later.
func (s *served) poll(t *testing.T, ctx context.Context, wait string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+Base+"/agents/coder/errands?wait="+wait, nil)
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
	s := serveHasty(t)
	wait := hasty.request + hasty.answer/2
	if got := <-s.poll(t, t.Context(), fmt.Sprintf("%dms", wait.Milliseconds())); !strings.HasPrefix(got, `200 {"errands":[]}`) {
		t.Error(got)
	}
}

// A long poll ends when its client goes, and gives its place back.
func TestPollOfWhoIsGone(t *testing.T) {
	s := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	for range agentPollsMax {
		s.poll(t, ctx, "60s")
	}
	eventually(t, "all wait", func() bool { return s.fake.polling() == agentPollsMax })
	text, h := s.want(t, 429, "GET", Base+"/agents/coder/errands?wait=60s", "")
	if h.Get("Retry-After") == "" || !strings.Contains(text, "of coder") {
		t.Errorf("%v %s", h, text)
	}
	s.want(t, 200, "GET", Base+"/agents/reviewer/errands?wait=60s", "")
	cancel()
	eventually(t, "nobody waits for who is gone", func() bool { return s.fake.polling() == 0 })
	s.want(t, 200, "GET", Base+"/agents/coder/errands?wait=1ms", "")
	s.polls.mu.Lock()
	defer s.polls.mu.Unlock()
	if s.polls.all != 0 || len(s.polls.of) != 0 {
		t.Errorf("%d polls are counted, %v", s.polls.all, s.polls.of)
	}
}

// When the daemon goes, whoever waits is told so at once.
func TestPollAtTheEnd(t *testing.T) {
	s := serve(t)
	answer := s.poll(t, t.Context(), "60s")
	eventually(t, "it waits", func() bool { return s.fake.polling() == 1 })
	s.stop()
	if got := <-answer; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, engine.ErrClosed.Error()) {
		t.Error(got)
	}
}

// More polls than are served are told so, whoever they are of.
func TestPollsOfAll(t *testing.T) {
	var p polls
	for i := range pollsMax {
		if err := p.enter(fmt.Sprint("agent-", i)); err != nil {
			t.Fatal(i, err)
		}
	}
	var full *Problem
	if err := p.enter("one-more"); !errors.As(err, &full) || full.Status != 503 || len(p.of) != pollsMax {
		t.Errorf("%v, %d names", err, len(p.of))
	}
	p.leave("agent-0")
	if err := p.enter("one-more"); err != nil {
		t.Error(err)
	}
}

// BenchmarkHeartbeat is a heartbeat over the socket, beside the cheapest question there is.
func BenchmarkHeartbeat(b *testing.B) {
	s := serve(b)
	c := dial(b, s)
	var beats, asks time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := c.Machines(b.Context()); err != nil {
			b.Fatal(err)
		}
		asked := time.Now()
		if err := c.AgentBeat(b.Context(), "coder"); err != nil {
			b.Fatal(err)
		}
		asks, beats = asks+asked.Sub(began), beats+time.Since(asked)
	}
	b.ReportMetric(float64(beats)/float64(asks), "beat/ask")
	b.ReportMetric(float64(beats.Microseconds())/float64(b.N), "µs/beat")
}
