package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// pasts opens teams as they were, and counts.
type pasts struct {
	now          *supervisor
	mu           sync.Mutex
	opened       []Moment
	ended, atOne int // at one time
	fail         error
}

func (p *pasts) open(ctx context.Context, at Moment) (*app.App, func() error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return nil, nil, p.fail
	}
	then, _, err := journal.Until(ctx, p.now.j, at.Seq)
	if err != nil {
		return nil, nil, err
	}
	opts := p.now.opts
	opts.Journal, opts.At = then, at.Time
	e, err := app.OpenReadOnly(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	ran := make(chan error, 1)
	go func() { ran <- e.RunReads(reading) }()
	p.opened = append(p.opened, at)
	p.atOne = max(p.atOne, len(p.opened)-p.ended)
	return e, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended++
		stop()
		return <-ran
	}, nil
}

func TestAsOf(t *testing.T) {
	s := serve(t)
	p := &pasts{now: s.sup}
	s.opts.Past = p.open
	first, noted := s.sup.first, map[uint64]string{} // what coder's note was at each change
	for n := range uint64(20) {
		noted[first+n+1] = fmt.Sprintf("note %d.", n)
		if seq, err := s.sup.Agents.Command(t.Context(), change.Actor{Kind: "human", ID: "ann"}, "coder", "pause", noted[first+n+1]); err != nil ||
			seq != first+n+1 {
			t.Fatal(seq, err)
		}
	}
	times := map[uint64]time.Time{}
	for c, err := range s.sup.j.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		times[c.Seq] = c.Time
	}
	last := first + 20
	iso := func(at time.Time) string { return url.QueryEscape(at.Format(time.RFC3339Nano)) }
	for _, c := range []struct{ at, want string }{
		{fmt.Sprint(first + 3), noted[first+3]},
		{fmt.Sprint(last), noted[last]},
		{iso(times[first+3]), noted[first+3]},
		{iso(times[first+4].Add(-1)), noted[first+3]},
		{iso(times[first+3].In(time.FixedZone("", 3600))), noted[first+3]},
		{iso(times[last].AddDate(4, 0, 0)), noted[last]},
	} {
		if body, _ := s.want(t, http.StatusOK, "GET", api.Base+"/agents?at="+c.at, ""); !strings.Contains(body, `"`+c.want+`"`) {
			t.Errorf("%s: %s", c.at, body)
		}
	}
	if at := p.opened[len(p.opened)-1]; at.Seq != last || !at.Time.Equal(times[last].AddDate(4, 0, 0)) {
		t.Errorf("a time after the last change: %+v", at)
	}
	if body, _ := s.want(t, http.StatusOK, "GET", api.Base+"/agents", ""); !strings.Contains(body, noted[last]) {
		t.Errorf("now: %s", body)
	}
	for _, c := range []struct {
		method, path string
		status       int
		words        string
	}{
		{"GET", "/agents?at=0", 422, "numbered from 1"},
		{
			"GET", fmt.Sprint("/agents?at=", last+1), 422,
			fmt.Sprintf("the journal has no change %d; they are numbered from 1, and its last one is %d", last+1, last),
		},
		{"GET", "/agents?at=18446744073709551616", 422, "is to be the sequence of a change"},
		{"GET", "/agents?at=", 422, "is to be the sequence of a change"},
		{"GET", "/agents?at=yesterday", 422, "is to be the sequence of a change"},
		{"GET", "/agents?at=1999-01-02T03:04:07Z", 422, "the journal begins at " + times[1].Format(time.DateOnly)},
		{"GET", "/agents?at=3&at=4", 422, "give at once"},
		{"GET", "/agents?at=3&more=4", 422, "more"},
		{"GET", "/status?at=3", 422, "cannot be shown as of an earlier moment"},
		{"GET", "/events?at=3", 422, "cannot be shown as of an earlier moment"},
		{"POST", "/hold?at=3", 422, "the past cannot be changed"},
		{"POST", "/agents/coder/start?at=3", 422, "the past cannot be changed"},
	} {
		if body, _ := s.want(t, c.status, c.method, api.Base+c.path, ""); !strings.Contains(body, c.words) {
			t.Errorf("%s %s: %s", c.method, c.path, body)
		}
	}

	// Many ask at the same time: few moments are open, and each answer is of its own.
	var asking sync.WaitGroup
	for n := range 60 {
		asking.Go(func() {
			seq := first + uint64(n)%12 + 1
			if body, _ := s.want(t, http.StatusOK, "GET", api.Base+fmt.Sprintf("/agents?at=%d", seq), ""); !strings.Contains(body,
				`"`+noted[seq]+`"`) {
				t.Errorf("%d: %s", seq, body)
			}
		})
	}
	asking.Wait()
	s.stop()
	if p.ended != len(p.opened) {
		t.Errorf("%d were opened, and %d were ended", len(p.opened), p.ended)
	}
}

func TestAsOfWithoutPast(t *testing.T) {
	s := serve(t)
	if body, _ := s.want(t, http.StatusNotFound, "GET", api.Base+"/agents?at=3", ""); !strings.Contains(body, "shows no earlier moments") {
		t.Error(body)
	}
	s.opts.Past = (&pasts{fail: fmt.Errorf("no space")}).open
	if body, _ := s.want(t, http.StatusInternalServerError, "GET", api.Base+"/agents?at=1", ""); !strings.Contains(body,
		"show change 1: no space") {
		t.Error(body)
	}
}
