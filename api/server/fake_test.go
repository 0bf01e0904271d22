package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"

	"github.com/fairlead-dev/fairlead/loop"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/controller/status"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/memory"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// fake is an engine that has no agents, only answers.
type fake struct {
	dispatchctl.Orders

	j *memory.Journal

	mu       sync.Mutex
	bell     chan struct{} // closed when anything changed
	agents   map[string]*view.AgentView
	sessions map[string]*fakeSession
	orders   []string
	closed   bool
	lag      int   // the next so many live batches end with ErrLagged
	fail     error // every question fails so
	bug      bool
	waiting  int // polls for actions
	team     []view.DocumentView
	folders  []view.FolderView
}

type fakeSession struct {
	said    []byte
	open    bool
	begun   bool
	still   bool // its output has no more bytes although it is open: no process follows it yet
	outcome string
	why     string
}

func newFake() *fake {
	f := &fake{Orders: dispatchctl.NewOrders(&config.Config{}), j: memory.New(), bell: make(chan struct{}), agents: map[string]*view.AgentView{}, sessions: map[string]*fakeSession{}}
	for _, name := range []string{"coder", "reviewer"} {
		f.agents[name] = &view.AgentView{Name: name, Driver: "script", CurrentState: "pause", DesiredState: "pause", Badge: view.BadgeIdle, Turn: map[string]string{}}
	}
	return f
}

// changed must be called with mu held.
func (f *fake) changed() {
	close(f.bell)
	f.bell = make(chan struct{})
}

func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.changed()
}

var testTime = time.Date(2026, 11, 21, 9, 30, 0, 123456789, time.UTC)

// add appends n changes of an entity.
func (f *fake) add(t testing.TB, entity string, n int) uint64 {
	t.Helper()
	batch := make([]journal.Change, n)
	for i := range batch {
		batch[i] = journal.Change{
			Time: testTime, Machine: "control", Entity: entity, Row: "C2", From: "resting", To: "continuous", Trigger: "commanded",
			Actor: journal.Actor{Kind: "human", ID: "sam"}, Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"big":12345678901234567890,"html":"<b>&</b>"}`, i)),
		}
	}
	last, err := f.j.Append(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	f.do(func() {})
	return last
}

func (f *fake) answer() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bug {
		panic("a bug, on purpose")
	}
	if f.closed {
		return loop.ErrClosed
	}
	return f.fail
}

func (f *fake) Team(context.Context) (view.TeamView, error) {
	if err := f.answer(); err != nil {
		return view.TeamView{}, err
	}
	view := view.TeamView{Team: "demo"}
	for _, name := range []string{"coder", "reviewer"} {
		view.Agents = append(view.Agents, *f.agents[name])
	}
	return view, nil
}

func (f *fake) Agent(_ context.Context, name string) (view.AgentView, error) {
	if err := f.answer(); err != nil {
		return view.AgentView{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.agents[name]
	if a == nil {
		return view.AgentView{}, &team.Unknown{What: "agent", Name: name, Known: []string{"coder", "reviewer"}}
	}
	return *a, nil
}

func (f *fake) Why(ctx context.Context, name string) (view.WhyView, error) {
	a, err := f.Agent(ctx, name)
	return view.WhyView{Agent: a, Verdict: a.Name + " is IDLE"}, err
}

func (f *fake) Order(ctx context.Context, by seam.Actor, agent, desired, note string) (uint64, view.AgentView, error) {
	seq, err := f.command(ctx, by, agent, desired, note)
	if err != nil {
		return 0, view.AgentView{}, err
	}
	view, err := f.Agent(ctx, agent)
	return seq, view, err
}

func (f *fake) command(ctx context.Context, by seam.Actor, agent, desired, note string) (uint64, error) {
	if _, err := f.Agent(ctx, agent); err != nil {
		return 0, err
	}
	if note == "refuse" {
		return 0, &machine.Refusal{Subject: agent, Event: "run_once", State: "held", Row: "X8", Reason: "the team is held", Takes: []string{"pause"}}
	}
	if note == "hang" {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	f.do(func() {
		f.agents[agent].DesiredState, f.agents[agent].Note = desired, note
		f.orders = append(f.orders, fmt.Sprintf("%s %s: %s %s %q", by.Kind, by.ID, agent, desired, note))
	})
	return 7, nil
}

func (f *fake) Hold(_ context.Context, by seam.Actor, on bool, note string) (uint64, error) {
	if err := f.answer(); err != nil {
		return 0, err
	}
	f.do(func() { f.orders = append(f.orders, fmt.Sprintf("%s %s: hold %v %q", by.Kind, by.ID, on, note)) })
	return 8, nil
}

func (f *fake) Stop(_ context.Context, by seam.Actor, now bool) error {
	if err := f.answer(); err != nil {
		return err
	}
	f.do(func() { f.orders = append(f.orders, fmt.Sprintf("%s %s: stop now=%v", by.Kind, by.ID, now)) })
	return nil
}

func (f *fake) Status(ctx context.Context) (status.Status, error) {
	if err := f.answer(); err != nil {
		return status.Status{}, err
	}
	head, _, err := f.j.Head(ctx)
	return status.Status{StartedAt: testTime, Head: head}, err
}

func (f *fake) Journal() journal.Journal { return f.j }

func (f *fake) Changes(ctx context.Context, after uint64, entity string) iter.Seq2[journal.Change, error] {
	return func(yield func(journal.Change, error) bool) {
		for {
			f.mu.Lock()
			bell, closed := f.bell, f.closed
			lagged := f.lag > 0
			if lagged {
				f.lag--
			}
			f.mu.Unlock()
			if closed {
				yield(journal.Change{}, loop.ErrClosed)
				return
			}
			for c, err := range f.j.Read(ctx, journal.Query{After: after, Entity: entity}) {
				if ctx.Err() != nil || !yield(c, err) || err != nil {
					return
				}
				after = c.Seq
			}
			if lagged {
				yield(journal.Change{}, loop.ErrLagged)
				return
			}
			select {
			case <-bell:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fake) Session(_ context.Context, id string) (sessions.SessionInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return sessions.SessionInfo{}, loop.ErrClosed
	}
	s := f.sessions[id]
	if s == nil {
		return sessions.SessionInfo{}, &team.Unknown{What: "session", Name: id}
	}
	return sessions.SessionInfo{Agent: "coder", Open: s.open, Outcome: s.outcome, Why: s.why}, nil
}

func (f *fake) Output(ctx context.Context, id string, offset int64) (io.ReadCloser, sessions.SessionInfo, error) {
	info, err := f.Session(ctx, id)
	if err != nil {
		return nil, info, err
	}
	if !f.sessions[id].hasBegun(f) {
		return nil, info, fmt.Errorf("open the spool: %w", fs.ErrNotExist)
	}
	return &fakeReader{f: f, s: f.sessions[id], ctx: ctx, at: offset, gone: make(chan struct{})}, info, nil
}

func (s *fakeSession) hasBegun(f *fake) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.begun
}

type fakeReader struct {
	f    *fake
	s    *fakeSession
	ctx  context.Context
	at   int64
	once sync.Once
	gone chan struct{}
}

func (r *fakeReader) Read(b []byte) (int, error) {
	for {
		r.f.mu.Lock()
		bell, open := r.f.bell, r.s.open && !r.s.still
		n := 0
		if r.at < int64(len(r.s.said)) {
			n = copy(b, r.s.said[r.at:])
			r.at += int64(n)
		}
		r.f.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case !open:
			return 0, io.EOF
		}
		select {
		case <-bell:
		case <-r.gone:
			return 0, fs.ErrClosed
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

func (r *fakeReader) Close() error {
	r.once.Do(func() { close(r.gone) })
	return nil
}

func (f *fake) say(id, text string) {
	f.do(func() {
		s := f.sessions[id]
		if s == nil {
			s = &fakeSession{open: true}
			f.sessions[id] = s
		}
		s.begun = true
		s.said = append(s.said, text...)
	})
}

func (f *fake) endSession(id, outcome string) {
	f.do(func() { f.sessions[id].open, f.sessions[id].outcome = false, outcome })
}

func (f *fake) Facts(ctx context.Context, id string, from int64, tail int, _ time.Duration) ([]driver.Fact, error) {
	if _, err := f.Session(ctx, id); err != nil {
		return nil, err
	}
	facts := []driver.Fact{
		{Kind: driver.Said, Offset: 6, Text: "hello"},
		{Kind: driver.UsageReported, Offset: 20, Usage: driver.Usage{InputTokens: 3, OutputTokens: 4, CostUSD: 0.5}},
		{Kind: driver.Stopped, Offset: 30, Stop: driver.Stop{OK: true, Reason: "completed"}},
	}
	if from >= 0 {
		facts = slices.DeleteFunc(facts, func(f driver.Fact) bool { return f.Offset <= from })
		return facts[:min(len(facts), tail)], nil
	}
	return facts[max(0, len(facts)-tail):], nil
}

const testToken = "tok-0123456789abcdef"

// served is a server at work on real listeners.
type served struct {
	*Server
	fake *fake
	url  string // of the TCP side
	dir  string // a workspace for clients to dial
	stop func()
	logs *lockedText
}

type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func serve(t testing.TB) *served { return serveFake(t, newFake()) }

// want asks over TCP with the token, and wants a status.
func (s *served) want(t testing.TB, status int, method, path, body string) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return send(t, req, status)
}

var plain = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func send(t testing.TB, req *http.Request, status int) (string, http.Header) {
	t.Helper()
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", req.Method, req.URL, resp.StatusCode, status, text)
	}
	return string(text), resp.Header
}

func listenAny(t testing.TB) net.Listener {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// patience is a bound for the hopeless case, on machines with much other work.
const patience = 2 * time.Minute
