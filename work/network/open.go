package network

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

var errNoProxy = errors.New("no session here has a network of its own at present")

// openPatience is how long the proxy may take to open a port: it answers at once.
const openPatience = 5 * time.Second

// opens are orders to open a port that wait for the proxy.
type opens struct {
	mu      sync.Mutex
	last    int
	waiting map[int]chan wire.Message
}

// Open makes a port of a session reachable at an address on this machine's loopback. The secret has to be in the first request, and
// counts once.
func (c *Controller) Open(ctx context.Context, session string, port int) (*wire.Opened, error) {
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

// answer gives a message to who waits for it; false: nobody does.
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
