package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// fakeProxy is the far end of the daemon's connection to the proxy.
type fakeProxy struct {
	heard chan wire.Message // to the daemon
	gone  chan struct{}

	mu   sync.Mutex
	down bool
	told []wire.Message
}

func newFakeProxy() *fakeProxy {
	return &fakeProxy{heard: make(chan wire.Message), gone: make(chan struct{})}
}

func (p *fakeProxy) dial() (outside.ProxyConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errors.New("no proxy")
	}
	p.gone = make(chan struct{})
	return &fakeProxyConn{proxy: p, gone: p.gone}, nil
}

// dies ends the proxy; rises starts it again.
func (p *fakeProxy) dies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	close(p.gone)
}

func (p *fakeProxy) rises() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// hosts are those of the rules that a session got last.
func (p *fakeProxy) hosts(session string) (hosts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.told {
		if m.Rules == nil || m.Rules.Session != session {
			continue
		}
		hosts = nil
		if !m.Rules.Keep {
			hosts = append(hosts, "open connections are closed")
		}
		for _, h := range m.Rules.Rules.Hosts {
			hosts = append(hosts, h.String())
		}
	}
	return hosts
}

type fakeProxyConn struct {
	proxy *fakeProxy
	gone  chan struct{}
}

func (c *fakeProxyConn) Send(m wire.Message, _ ...*os.File) error {
	select {
	case <-c.gone:
		return io.ErrClosedPipe
	default:
	}
	c.proxy.mu.Lock()
	c.proxy.told = append(c.proxy.told, m)
	c.proxy.mu.Unlock()
	if m.Open != nil {
		go func() {
			c.proxy.heard <- wire.Message{Opened: &wire.Opened{ID: m.Open.ID, Address: "127.0.0.1:40000", Secret: "s"}}
		}()
	}
	return nil
}

func (c *fakeProxyConn) Receive() (wire.Message, []*os.File, error) {
	select {
	case m := <-c.proxy.heard:
		return m, nil, nil
	case <-c.gone:
		return wire.Message{}, nil, io.EOF
	}
}

func (c *fakeProxyConn) Close() error {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	select {
	case <-c.gone:
	default:
		close(c.gone)
	}
	return nil
}

func registered(session string) wire.Message {
	return wire.Message{Registered: &wire.Registered{
		Session: session, Agent: "coder", Rules: network.Rules{Hosts: []network.Host{{Name: "model.example.org"}}},
	}}
}

func event(session, host string, verdict wire.Verdict) wire.Message {
	return wire.Message{Event: &wire.Event{
		Session: session, Agent: "coder", Host: host, Port: 443, Verdict: verdict, Count: 1, In: 10, Out: 5, First: time.Now(), Last: time.Now(),
	}}
}

// Q1, S14: what a session asks for in vain becomes one question. A yes for once allows the host until it was reached, one for always in
// the next session too; a no is not asked again. What was reached and refused is journaled.
func TestNetworkQuestions(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		p := newFakeProxy()
		b.proxy = p.dial
		says := func(m wire.Message) {
			t.Helper()
			select {
			case p.heard <- m:
			case <-time.After(time.Minute):
				t.Fatalf("the daemon does not take %+v", m)
			}
			b.settle()
		}
		has := func(session string, want ...string) {
			t.Helper()
			if got := p.hosts(session); !slices.Equal(got, append([]string{"model.example.org"}, want...)) {
				t.Errorf("%s may reach %v, want the model and %v", session, got, want)
			}
		}
		b.start()
		b.command("coder", "continuous")
		b.after(time.Second)
		says(registered("coder-1"))
		for range 3 {
			says(event("coder-1", "a.example.org", wire.VerdictAsk))
		}
		q := b.open1(question.Permission)
		if q.Host != "a.example.org" || !q.MayStand || q.Agent != "coder" {
			t.Errorf("the question is %+v", q)
		}
		b.answer(q.ID, view.QuestionAnswer{Allow: true})
		has("coder-1", "a.example.org")
		if is, err := b.engine.Questions.QuestionByID(t.Context(), q.ID); err != nil || is.State != "told" {
			t.Errorf("the answer is %+v, %v", is, err)
		}
		says(event("coder-1", "a.example.org", wire.VerdictAllowed))
		has("coder-1") // it was for once

		says(event("coder-1", "a.example.org", wire.VerdictAsk))
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{Allow: true, Scope: "always"})
		has("coder-1", "a.example.org")
		says(event("coder-1", "a.example.org", wire.VerdictAllowed))
		has("coder-1", "a.example.org")

		says(event("coder-1", "b.example.org", wire.VerdictAsk))
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{})
		says(event("coder-1", "b.example.org", wire.VerdictAsk))
		b.noneOpen()

		// While there is no proxy an answer waits. The one that comes next gets it, and those before.
		says(event("coder-1", "c.example.org", wire.VerdictAsk))
		p.dies()
		b.after(time.Second)
		waits := b.open1(question.Permission).ID
		b.answer(waits, view.QuestionAnswer{Allow: true, Scope: "session"})
		if is, err := b.engine.Questions.QuestionByID(t.Context(), waits); err != nil || is.State != "answered" {
			t.Errorf("without a proxy the answer is %+v, %v", is, err)
		}
		p.rises()
		b.after(2 * time.Second)
		says(registered("coder-1"))
		has("coder-1", "a.example.org", "c.example.org")

		// It can be taken back.
		for _, saved := range b.replayed().Questions.List() {
			if saved.Key == "a.example.org" {
				if _, err := b.engine.Questions.RevokeSavedAnswer(t.Context(), human, saved.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.settle()
		has("coder-1", "c.example.org")

		opened, err := b.engine.Network.OpenPort(t.Context(), "coder", 3000)
		if err != nil || opened.URL != "http://127.0.0.1:40000/?fairlead=s" || opened.Session != "coder-1" {
			t.Errorf("a port is opened as %+v, %v", opened, err)
		}
		for i := range 40 { // more than a person reads
			says(event("coder-1", fmt.Sprintf("n%d.example.org", i), wire.VerdictAsk))
		}
		if open, err := b.engine.Questions.Questions(t.Context()); err != nil || len(open) != 16 {
			t.Errorf("%d questions are open, %v", len(open), err)
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		contacts := b.replayed().Agents["coder"].Contacts
		of := func(host string) team.Contact {
			i := slices.IndexFunc(contacts, func(c team.Contact) bool { return c.Host == host })
			if i < 0 {
				t.Fatalf("no contact %s in %+v", host, contacts)
			}
			return contacts[i]
		}
		if c := of("a.example.org"); c.Reached != 2 || c.Refused != 4 || c.In != 60 {
			t.Errorf("the contact is %+v", c)
		}
		if c := of("b.example.org"); c.Reached != 0 || c.Refused != 2 {
			t.Errorf("the contact is %+v", c)
		}
	})
}
