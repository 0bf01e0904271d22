package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/socket"
)

// client is the daemon's side of one connection to a shim.
type client struct {
	conn *os.File
	size func(int64) // the spool grew

	writing sync.Mutex
	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan answer
	broken  error
}

func newClient(conn *os.File, size func(int64)) *client {
	return &client{conn: conn, size: size, next: 1, waiting: map[uint64]chan answer{}}
}

// dial connects to the socket at path and sends hello.
func dial(ctx context.Context, path string, fence uint64) (*os.File, *Status, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	conn, err := socket.ConnectUnix(path)
	if err != nil {
		return nil, nil, err
	}
	if uid, _, err := peerOf(conn); err != nil || uid != os.Getuid() {
		conn.Close()
		return nil, nil, fmt.Errorf("the socket %s is served by another user: remove it", path)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var a answer
	_ = conn.SetDeadline(time.Now().Add(attachPatience))
	err = writeFrame(conn, order{ID: 1, Op: "hello", Version: ownProtocol(), Fence: fence})
	if err == nil {
		err = readFrame(conn, frameBytesMax, &a)
	}
	if err == nil && a.Version != ownProtocol() {
		err = &OtherProtocol{Its: a.Version, Own: ownProtocol()}
	}
	if err == nil {
		err = a.Fault.err()
	}
	if err == nil && a.Status == nil {
		err = errors.New("the shim answered nonsense")
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, a.Status, nil
}

// run reads until the connection ends: with the exit, with *Fenced, or with an error.
func (c *client) run() (*Status, error) {
	st, err := c.read()
	c.mu.Lock()
	c.broken = err
	if err == nil {
		c.broken = ErrEnded
	}
	for id, ch := range c.waiting {
		close(ch)
		delete(c.waiting, id)
	}
	c.mu.Unlock()
	c.conn.Close()
	return st, err
}

func (c *client) read() (*Status, error) {
	for {
		var a answer
		if err := readFrame(c.conn, frameBytesMax, &a); err != nil {
			return nil, err
		}
		switch {
		case a.Event == "spool":
			c.size(a.Size)
		case a.Event == "exit" && a.Status != nil && a.Status.Exit != nil:
			return a.Status, nil
		case a.Event == "fenced":
			return nil, a.Fault.err()
		case a.ID != 0:
			c.mu.Lock()
			ch := c.waiting[a.ID]
			delete(c.waiting, a.ID)
			c.mu.Unlock()
			if ch != nil {
				ch <- a
			}
		}
	}
}

// errBroken means that the connection ended before the answer: the order may have been carried out.
var errBroken = errors.New("the connection to the shim broke")

func (c *client) ask(ctx context.Context, o order) (answer, error) {
	ch := make(chan answer, 1)
	c.mu.Lock()
	if c.broken != nil {
		err := c.broken
		c.mu.Unlock()
		return answer{}, brokenBy(err)
	}
	c.next++
	o.ID = c.next
	c.waiting[o.ID] = ch
	c.mu.Unlock()
	c.writing.Lock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	err := writeFrame(c.conn, o)
	c.writing.Unlock()
	if err != nil {
		c.conn.Close() // run ends and says why
	}
	select {
	case a, ok := <-ch:
		if !ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			return answer{}, brokenBy(c.broken)
		}
		return a, a.Fault.err()
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, o.ID)
		c.mu.Unlock()
		return answer{}, context.Cause(ctx)
	}
}

func brokenBy(err error) error {
	switch {
	case errors.As(err, new(*Fenced)), errors.Is(err, ErrEnded):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		return errBroken
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}
