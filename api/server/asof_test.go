package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/journal"
)

// pasts opens teams of one agent whose name is the moment.
type pasts struct {
	mu           sync.Mutex
	opened       []Moment
	ended, atOne int // at one time
	fail         error
}

func (p *pasts) open(_ context.Context, at Moment) (Backend, func() error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return nil, nil, p.fail
	}
	p.opened = append(p.opened, at)
	p.atOne = max(p.atOne, len(p.opened)-p.ended)
	f := newFake()
	f.agents["coder"].Note = fmt.Sprintf("at %d", at.Seq)
	return f, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended++
		return nil
	}, nil
}

func TestAsOf(t *testing.T) {
	s := serve(t)
	p := &pasts{}
	s.opts.Past = p.open
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n := range 20 {
		if _, err := s.fake.j.Append(t.Context(), []journal.Change{{
			Time: start.Add(time.Duration(n) * time.Second), Machine: "control", Entity: "control/coder", Row: "C1", To: "x", Trigger: "t", Actor: journal.Actor{Kind: "human", ID: "x"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ at, want string }{
		{"3", "at 3"}, {"20", "at 20"}, {"2026-01-02T03:04:07.5Z", "at 3"}, {"2026-01-02T04:04:07%2B01:00", "at 3"}, {"2030-01-02T03:04:07Z", "at 20"},
	} {
		if body, _ := s.want(t, http.StatusOK, "GET", api.Base+"/agents?at="+c.at, ""); !strings.Contains(body, `"`+c.want+`"`) {
			t.Errorf("%s: %s", c.at, body)
		}
	}
	if last := p.opened[len(p.opened)-1]; last.Seq != 20 || last.Time.Year() != 2030 {
		t.Errorf("a time after the last change: %+v", last)
	}
	if body, _ := s.want(t, http.StatusOK, "GET", api.Base+"/agents", ""); strings.Contains(body, `"at `) {
		t.Errorf("now: %s", body)
	}
	for _, c := range []struct {
		method, path string
		status       int
		words        string
	}{
		{"GET", "/agents?at=0", 422, "numbered from 1"},
		{"GET", "/agents?at=21", 422, "the journal has no change 21; they are numbered from 1, and its last one is 20"},
		{"GET", "/agents?at=18446744073709551616", 422, "is to be the sequence of a change"},
		{"GET", "/agents?at=", 422, "is to be the sequence of a change"},
		{"GET", "/agents?at=yesterday", 422, "is to be the sequence of a change"},
		{"GET", "/agents?at=2020-01-02T03:04:07Z", 422, "the journal begins at 2026-01-02T03:04:05Z"},
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
			seq := n%12 + 1
			if body, _ := s.want(t, http.StatusOK, "GET", api.Base+fmt.Sprintf("/agents?at=%d", seq), ""); !strings.Contains(body, fmt.Sprintf(`"at %d"`, seq)) {
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
	if _, err := s.fake.j.Append(t.Context(), []journal.Change{{
		Time: time.Now(), Machine: "control", Entity: "control/coder", Row: "C1", To: "x", Trigger: "t", Actor: journal.Actor{Kind: "human", ID: "x"},
	}}); err != nil {
		t.Fatal(err)
	}
	if body, _ := s.want(t, http.StatusInternalServerError, "GET", api.Base+"/agents?at=1", ""); !strings.Contains(body, "show change 1: no space") {
		t.Error(body)
	}
}
