package network

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// byProxy is the author of what the proxy reports.
var byProxy = change.Actor{Kind: "system", ID: "proxy"}

// Controller watches the proxy.
type Controller struct {
	loop *loop.Loop
	log  *slog.Logger
	dial func() (outside.ProxyConn, error)

	work chan struct{} // capacity 1: answers may be there to deliver

	mu    sync.Mutex
	conn  outside.ProxyConn // nil: there is no proxy, or it cannot be reached
	opens opens

	ending, over chan struct{} // Watch has to end; Watch has ended

	// Only the goroutine of Watch uses these.
	served map[string]*served  // the sessions that the proxy serves
	once   map[string][]string // hosts that each session may reach once more
	folds  map[string]*fold    // by session

	tooMany map[string]bool // sessions of which it was said that they ask for too many hosts
}

// served is a session that the proxy serves.
type served struct {
	agent   string
	rules   network.Rules // with which it was started
	granted []string      // hosts that it has got besides
}

// New makes the controller.
func New(l *loop.Loop, opts outside.Options) *Controller {
	return &Controller{
		loop: l, log: opts.Log, dial: opts.Proxy, work: make(chan struct{}, 1), opens: opens{waiting: map[int]chan wire.Message{}},
		ending: make(chan struct{}), over: make(chan struct{}),
		served: map[string]*served{}, once: map[string][]string{}, folds: map[string]*fold{}, tooMany: map[string]bool{},
	}
}

// Hooks are what the controller does in the loop.
func (c *Controller) Hooks() loop.Hooks {
	return loop.Hooks{
		OnBatch: func(changes []change.Change, _ uint64, _ *loop.Touched) {
			if slices.ContainsFunc(changes, func(ch change.Change) bool { return change.As[question.Body](ch.Body) != nil }) {
				c.wake()
			}
		},
		Drain: func() <-chan struct{} {
			close(c.ending)
			return c.over
		},
	}
}

func (c *Controller) wake() {
	select {
	case c.work <- struct{}{}:
	default: // it looks at all of them
	}
}

const (
	hostAsksMax         = 16                                 // open questions about hosts of one agent: more than a person reads; the attempts are journaled
	dialFirst, dialMost = 50 * time.Millisecond, time.Second // a proxy is there as soon as its first session is
	foldEvery           = time.Minute                        // a host that is known is journaled this often at most
)

// Watch serves the proxy until the loop drains. Without a proxy it waits for one.
func (c *Controller) Watch(ctx context.Context) {
	defer close(c.over)
	if c.dial == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.ending:
		case <-ctx.Done():
		}
		cancel()
	}()
	for again := (retry.Pauses{First: dialFirst, Most: dialMost}); ; {
		if c.loop.Until(ctx, anySession) != nil {
			return
		}
		if conn, err := c.dial(); err == nil {
			again.Reset()
			c.serve(ctx, conn)
		}
		if !again.Rest(ctx) {
			return
		}
	}
}

// anySession reports whether a session runs.
func anySession(t *team.Team) bool {
	for _, a := range t.Agents {
		if len(a.Sessions()) > 0 {
			return true
		}
	}
	return false
}

// serve reads what the proxy says until it ends.
func (c *Controller) serve(ctx context.Context, conn outside.ProxyConn) {
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	heard, over := make(chan wire.Message), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			m, files, err := conn.Receive()
			for _, f := range files {
				f.Close() // it sends none
			}
			if err != nil {
				over <- err
				return
			}
			select {
			case heard <- m:
			case <-ctx.Done():
				over <- ctx.Err()
				return
			}
		}
	}()
	fold := time.NewTicker(foldEvery)
	defer func() {
		cancel()
		fold.Stop()
		c.mu.Lock()
		c.conn = nil
		c.mu.Unlock()
		_ = conn.Close() // it is over in any case
		c.opens.fail()
		clear(c.served)
	}()
	for {
		select {
		case m := <-heard:
			c.take(ctx, m)
		case <-fold.C:
			c.journalFolds(ctx, "")
		case <-c.work:
			c.deliver(ctx)
		case err := <-over:
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				c.log.Warn("the connection to the proxy of the sessions ended; Fairlead connects again", "error", err)
			}
			c.journalFolds(c.loop.Context(), "")
			return
		case <-ctx.Done(): // the loop serves until Watch ends
			c.journalFolds(c.loop.Context(), "")
			return
		}
	}
}

// take handles one message.
func (c *Controller) take(ctx context.Context, m wire.Message) {
	switch {
	case m.Registered != nil:
		for _, note := range m.Registered.Notes {
			c.log.Warn("a part of a session's network does not work", "agent", m.Registered.Agent, "session", m.Registered.Session, "why", note)
		}
		c.served[m.Registered.Session] = &served{agent: m.Registered.Agent, rules: m.Registered.Rules}
		c.deliver(ctx)
	case m.Event != nil:
		c.happened(ctx, *m.Event)
	case m.Opened != nil:
		c.opens.answer(m.Opened.ID, m)
	case m.Refused != nil:
		if !c.opens.answer(m.Refused.ID, m) {
			c.log.Warn("the proxy of the sessions refused an order", "why", m.Refused.Text)
		}
	}
}

// hostOf is the host as people write it. Its two ports of the web are one host: an answer is for both.
func hostOf(e wire.Event) string {
	if network.IsWeb(e.Port) {
		return network.Host{Name: e.Host}.String()
	}
	return network.Host{Name: e.Host, Port: e.Port}.String()
}

// happened asks a person about a host, uses up an answer for once, and folds the event.
func (c *Controller) happened(ctx context.Context, e wire.Event) {
	host := hostOf(e)
	switch at := slices.Index(c.once[e.Session], host); {
	case e.Verdict == wire.VerdictAsk:
		c.ask(ctx, e.Agent, e.Session, host)
	case e.Verdict == wire.VerdictAllowed && at >= 0:
		c.once[e.Session] = slices.Delete(c.once[e.Session], at, at+1)
		c.grant(ctx, e.Session)
	}
	f := c.folds[e.Session]
	if f == nil {
		f = &fold{agent: e.Agent}
		c.folds[e.Session] = f
	}
	if f.add(host, e) {
		c.journalFolds(ctx, e.Session)
	}
}

// ask asks a person whether a session may reach a host, unless that is open or was answered.
func (c *Controller) ask(ctx context.Context, agent, session, host string) {
	var ask question.Ask
	due := false
	open := 0
	if c.loop.View(ctx, func(t *team.Team) {
		ask, due = t.Questions.ReachHost(agent, session, host)
		for _, q := range t.Questions.Open(agent) {
			if q.Host != "" {
				open++
			}
		}
	}) != nil || !due {
		return
	}
	if open >= hostAsksMax {
		if !c.tooMany[session] {
			c.tooMany[session] = true
			c.log.Warn("a session asks for many hosts; no more questions about them until some are answered", "agent", agent, "session", session)
		}
		return
	}
	// A session of no agent, which runs a task's own commands, asks no person: what it may reach is in the configuration.
	if _, err := c.loop.Submit(ctx, byProxy, "", ask); err != nil && ctx.Err() == nil {
		c.log.Info("no person was asked about a host", "session", session, "host", host, "why", err)
	}
}

// deliver gives each session what answers allow to it, and records which answers are there.
func (c *Controller) deliver(ctx context.Context) {
	var due []question.Question
	if c.loop.View(ctx, func(t *team.Team) {
		for _, q := range t.Questions.Undelivered("") {
			if q.Host != "" {
				due = append(due, *q)
			}
		}
	}) != nil {
		return
	}
	for _, q := range due {
		once := q.Allow && q.By != question.ByRule && q.Scope == question.Once
		if once && c.served[q.Session] != nil && !slices.Contains(c.once[q.Session], q.Host) {
			c.once[q.Session] = append(c.once[q.Session], q.Host)
		}
	}
	for session := range c.served {
		if !c.grant(ctx, session) {
			return
		}
	}
	for _, q := range due {
		if c.served[q.Session] == nil {
			continue // until the proxy serves it again, or the session ends
		}
		if _, err := c.loop.Submit(ctx, byProxy, "", question.Hand{ID: q.ID}); err != nil && !errors.As(err, new(*table.Refusal)) {
			return // the loop ends; the answer is delivered again
		}
	}
}

// grant gives a session its rules, with the hosts that answers allow beside those that it was started with. Connections that are open go
// on. False: there is no proxy any more.
func (c *Controller) grant(ctx context.Context, session string) bool {
	s := c.served[session]
	if s == nil {
		return true
	}
	hosts := slices.Clone(c.once[session])
	if c.loop.View(ctx, func(t *team.Team) { hosts = append(hosts, t.Questions.HostsGranted(s.agent, session)...) }) != nil {
		return false
	}
	slices.Sort(hosts)
	if hosts = slices.Compact(hosts); slices.Equal(hosts, s.granted) {
		return true
	}
	rules := s.rules
	rules.Hosts = slices.Clone(rules.Hosts)
	for _, host := range hosts {
		if h, err := network.ParseHost(host); err == nil {
			h.Named = false // a person said yes to a public name; a private one has to be in fairlead.yaml
			rules.Hosts = append(rules.Hosts, h)
		}
	}
	if c.say(wire.Message{Rules: &wire.Rules{Session: session, Rules: rules, Keep: true}}) != nil {
		return false
	}
	s.granted = hosts
	return true
}

func (c *Controller) say(m wire.Message) error {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return errNoProxy
	}
	return conn.Send(m)
}
