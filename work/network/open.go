package network

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/read/view"
)

var errNoProxy = errors.New("it has no network of its own here: its server is reached at its own port")

// openPatience is how long the proxy may take to open a port: it answers at once.
const openPatience = 5 * time.Second

// opens are orders to open a port that wait for the proxy.
type opens struct {
	mu      sync.Mutex
	last    int
	waiting map[int]chan wire.Message
}

// OpenPort makes a port of a running session reachable for a person's browser, at an address on this machine's loopback. target is an
// agent, a session or a task. The error is a *table.Refusal, a *team.Unknown, or why there is no such address.
func (c *Controller) OpenPort(ctx context.Context, target string, port int) (view.OpenedPort, error) {
	var found []team.Running
	var no error
	if err := c.loop.View(ctx, func(t *team.Team) {
		found = t.RunningNamed(target)
		switch {
		case len(found) > 1:
			no = refuseOpen(target, "it has several sessions; name one of them: "+team.SessionNames(found))
		case len(found) == 0 && t.Agents[target] == nil && t.Runs[target] == nil && !strings.Contains(target, "-"):
			no = &team.Unknown{What: "agent", Name: target, Known: slices.Concat(t.Names(), t.RunIDs())}
		case len(found) == 0:
			no = refuseOpen(target, "no session of it runs")
		}
	}); err != nil || no != nil {
		return view.OpenedPort{}, cmp.Or(err, no)
	}
	session := found[0].Session.ID
	opened, err := c.open(ctx, session, port)
	if err != nil {
		return view.OpenedPort{}, refuseOpen(session, err.Error())
	}
	return view.OpenedPort{
		Agent: found[0].Agent, Session: session, Port: port,
		URL: "http://" + opened.Address + "/?fairlead=" + url.QueryEscape(opened.Secret), Address: "http://" + opened.Address + "/",
	}, nil
}

func refuseOpen(target, why string) *table.Refusal {
	return &table.Refusal{Subject: target, Event: "open_port", State: "not opened", Reason: why}
}

func (c *Controller) open(ctx context.Context, session string, port int) (*wire.Opened, error) {
	id, answer := c.opens.add()
	defer c.opens.remove(id)
	if err := c.say(wire.Message{Open: &wire.Open{ID: id, Session: session, Port: port}}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openPatience, errors.New("the proxy of the sessions does not answer"))
	defer cancel()
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, errNoProxy
		case m.Refused != nil:
			return nil, m.Refused
		}
		return m.Opened, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (o *opens) add() (id int, answer chan wire.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	answer = make(chan wire.Message, 1)
	o.waiting[o.last] = answer
	return o.last, answer
}

func (o *opens) remove(id int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
}

// answer gives a message to the caller that waits for it; false: none does.
func (o *opens) answer(id int, m wire.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer := o.waiting[id]
	delete(o.waiting, id)
	if answer == nil {
		return false
	}
	answer <- m
	return true
}

// fail ends all orders: there is no proxy any more.
func (o *opens) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, answer := range o.waiting {
		close(answer)
		delete(o.waiting, id)
	}
}
