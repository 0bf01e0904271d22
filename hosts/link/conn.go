package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	againFirst  = 250 * time.Millisecond
	againMost   = 2 * time.Second  // a host is doubted after 15; another leader is found so soon
	besideAfter = time.Second      // without an answer the next address is tried beside
	othersAfter = 4 * time.Second  // without an answer an address is given up, if there are others
	settledFrom = 30 * time.Second // a connection that lasted so long lets the wait begin anew
)

// DialOptions say how a host connects to the leader.
type DialOptions struct {
	Identity  *ca.Identity
	Addresses func() []string // for the next try, host:port; the next one is tried when one does not answer soon
	Handler   http.Handler    // requests of the leader
	Failed    func(error)     // Keep has no connection, and tries again; nil: not needed
	Log       *slog.Logger

	ping   time.Duration // 0: pingAfter
	others time.Duration // 0: othersAfter
	greet  time.Duration // 0: greetWithin
	speaks wire.Protocol // 0: that of this program
}

// Conn is a host's end: a connection for its own requests, and one for those of the leader. It ends with either.
type Conn struct {
	sender   *sender
	receiver *receiver
	pipes    [2]*pipe
	done     chan struct{}
}

// Dial connects a host to the leader. The context is for that only. The error is a Refused if the team does not take
// this host. Requests of the leader may arrive before it returns.
func Dial(ctx context.Context, o DialOptions) (*Conn, error) {
	if err := o.Identity.CheckClock(); err != nil {
		return nil, err
	}
	addresses := o.Addresses()
	if len(addresses) == 0 {
		return nil, errors.New("no address of the leader is known; join the team anew")
	}
	ctx, cancel := context.WithCancel(ctx)
	type dialled struct {
		c   *Conn
		err error
	}
	came := make(chan dialled)
	begun, ended := 0, 0
	begin := func() {
		address := addresses[begun]
		begun++
		go func() {
			c, err := dialWithin(ctx, address, len(addresses) > 1, o)
			if err != nil {
				err = fmt.Errorf("connect host %s to the leader of team %s at %s: %w", o.Identity.Name, o.Identity.Team(), address, err)
			}
			came <- dialled{c, err}
		}()
	}
	defer func() {
		for cancel(); ended < begun; ended++ {
			if late := <-came; late.c != nil {
				_ = late.c.Close() // it has no error
			}
		}
	}()
	next := time.NewTicker(besideAfter)
	defer next.Stop()
	var errs []error
	for begin(); ; {
		select {
		case one := <-came:
			ended++
			if one.err == nil || errors.As(one.err, new(*Refused)) {
				return one.c, one.err
			}
			errs = append(errs, one.err)
		case <-next.C:
			if begun == len(addresses) {
				continue
			}
			begin()
			continue
		}
		switch {
		case begun < len(addresses):
			begin()
		case ended == begun:
			slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) }) // so that Keep logs the same ones once
			return nil, errors.Join(errs...)
		}
	}
}

// dialWithin gives an address less time if there are others: a leader that is paused takes connections and says nothing, while
// another one leads.
func dialWithin(ctx context.Context, address string, others bool, o DialOptions) (*Conn, error) {
	if others {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(o.others, othersAfter))
		defer cancel()
	}
	return dial(ctx, address, o)
}

func dial(ctx context.Context, address string, o DialOptions) (*Conn, error) {
	leaders, err := open(ctx, address, toHost, o) // first, so that the host is never without one when it replaces its last
	if err != nil {
		return nil, err
	}
	own, err := open(ctx, address, toLeader, o)
	if err != nil {
		leaders.end()
		return nil, err
	}
	s, err := newSender(own, o.ping)
	if err != nil {
		leaders.end()
		return nil, err
	}
	c := &Conn{sender: s, receiver: newReceiver(o.Handler, o.ping, o.Log), pipes: [2]*pipe{own, leaders}, done: make(chan struct{})}
	go c.receiver.serve()
	c.receiver.take(leaders)
	go c.watch()
	return c, nil
}

// open makes one connection, with both proofs.
func open(ctx context.Context, address, kind string, o DialOptions) (*pipe, error) {
	id := o.Identity
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.greet, greetWithin))
	defer cancel()
	config := id.TLS(nil)
	config.NextProtos = []string{offer(kind, o.speaks)}
	raw, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, explain(err, id)
	}
	conn := raw.(*tls.Conn) // as tls.Dialer promises
	stop := context.AfterFunc(ctx, func() { conn.NetConn().Close() })
	err = prove(conn, id)
	if answer := readAnswer(conn, id.Team()); answer != nil { // a failed write may have an answer that says why
		err = answer
	}
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		conn.NetConn().Close()
		return nil, explain(err, id)
	}
	return newPipe(conn), nil
}

// explain adds to an error of a connection what to do about it.
func explain(err error, id *ca.Identity) error {
	var alert *net.OpError
	switch {
	case errors.As(err, &alert) && alert.Op == "remote error": // of TLS
		return fmt.Errorf("the leader refuses the certificate of this host, or runs another version of Fairlead; compare the clocks and the versions, else join again with an invitation: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the leader does not answer; check the address, and that no firewall blocks the connection: %w", err)
	}
	return ca.Explain(err, id.Team(), id.Now())
}

// watch ends both connections with the first that ends.
func (c *Conn) watch() {
	select {
	case <-c.pipes[0].done:
	case <-c.pipes[1].done:
	}
	_ = c.receiver.Close() // the connections may be gone
	for _, p := range c.pipes {
		p.end()
	}
	close(c.done)
}

// Client sends requests to the leader. base is how their URLs begin.
func (c *Conn) Client() (client *http.Client, base string) { return c.sender.client() }

// Done is closed when the connection is gone.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection. Requests that run are cancelled.
func (c *Conn) Close() error {
	c.pipes[0].end()
	<-c.done
	return nil
}

// Keep connects a host to the leader, again and again with a growing wait, until the context ends or the team refuses the
// host, with a Refused. up gets each connection, and must return.
func Keep(ctx context.Context, o DialOptions, up func(*Conn)) error {
	again := retry.Pauses{First: againFirst, Most: againMost, Spread: true} // hosts do not come all at once
	said := ""
	for {
		began := time.Now()
		c, err := Dial(ctx, o)
		if refused := (*Refused)(nil); errors.As(err, &refused) {
			return err
		}
		if err == nil {
			said = ""
			up(c)
			select {
			case <-c.Done():
				o.Log.Warn("the connection to the leader is gone", "team", o.Identity.Team())
			case <-ctx.Done():
			}
			_ = c.Close() // it has no error
		} else if ctx.Err() == nil {
			if o.Failed != nil {
				o.Failed(err)
			}
			if err.Error() != said {
				said = err.Error()
				o.Log.Warn("no connection to the leader; this host tries again", "error", err)
			}
		}
		if err == nil && time.Since(began) > settledFrom {
			again.Reset()
		}
		if !again.Rest(ctx) {
			return ctx.Err()
		}
	}
}
