package shim

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/socket"
)

// peer is one connection of a daemon.
type peer struct {
	conn  *os.File
	fence uint64
	out   chan answer   // queued answers
	grew  chan struct{} // capacity 1: the spool grew; only the newest size is sent
	over  chan struct{} // closed when the writer has ended

	mu   sync.Mutex
	size int64
	last bool // no more is accepted: the final answer was queued
}

const answersMax = 64 // a daemon that sends more orders without reading is faulty

// listen creates the socket. With the lock of the folder, it may remove an earlier shim's socket at
// that path.
func (k *keeper) listen() error {
	path, err := pickSocket(k.folder)
	if err != nil {
		return err
	}
	_ = os.Remove(path)
	l, err := socket.ListenUnix(path) // unlisten removes the path if it is still this socket's
	if err != nil {
		return fmt.Errorf("make the shim's socket: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return fmt.Errorf("make the shim's socket: %w", err)
	}
	k.mu.Lock()
	again := k.listener != nil
	k.listener, k.bound = l, info
	k.mu.Unlock()
	if again {
		go k.accept(l)
	}
	return nil
}

func (k *keeper) unlisten() {
	k.mu.Lock()
	l, bound := k.listener, k.bound
	k.listener = nil
	k.mu.Unlock()
	if l == nil {
		return
	}
	if now, err := os.Lstat(l.Name()); err == nil && os.SameFile(now, bound) {
		os.Remove(l.Name())
	}
	l.Close()
}

// serve answers on the connection of the launch and on the socket.
func (k *keeper) serve(first *os.File, fence uint64) {
	go k.converse(k.admit(first, fence, 1))
	go k.accept(k.listener)
}

func (k *keeper) accept(l *os.File) {
	for {
		c, err := socket.Accept(l)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors or memory: both pass
			time.Sleep(attachPauseMax)
			continue
		}
		uid, _, err := peerOf(c)
		p, unknown := processAt(c)
		if err != nil || unknown != nil || uid != os.Getuid() {
			c.Close()
			continue
		}
		go k.greet(c, p)
	}
}

// greet reads the first order of a connection, which must contain the daemon's epoch. peer is the process that
// connected.
func (k *keeper) greet(c *os.File, peer peerProcess) {
	from, pid := peer.origin(k.callerOf), peer.pid // before anything is read: a PID can be reused later
	peer.close()
	var o order
	_ = c.SetReadDeadline(time.Now().Add(writeTimeout))
	err := readFrame(c, frameBytesMax, &o)
	if err == nil && o.Op != "hello" {
		err = fmt.Errorf("the first order is %q: say hello", o.Op)
	}
	if err == nil && o.Fence > 0 { // epoch 0 gives no order, it asks for the present epoch
		switch {
		case from.Session != "":
			err = &NotTheDaemon{fmt.Sprintf("process %d runs in session %s: only the daemon gives a shim orders, and no agent may act as the daemon", pid, from.Session)}
		case from.Foreign != "":
			err = &NotTheDaemon{fmt.Sprintf("process %d runs in session %s of another repository: only the daemon gives a shim orders, and no agent may act as the daemon", pid, from.Foreign)}
		case from.Unseen:
			err = notIdentified(pid)
		}
	}
	if err == nil {
		err = k.obey(o.Fence)
	}
	if err != nil {
		_ = c.SetWriteDeadline(time.Now().Add(tellTimeout))
		_ = writeFrame(c, answer{ID: o.ID, Version: ownProtocol(), Fault: toFault(err)})
		c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	p := k.admit(c, o.Fence, o.ID)
	if p == nil {
		c.Close()
		return
	}
	k.converse(p)
}

// callerOf finds the session in which a process runs.
func (k *keeper) callerOf(pid int) Origin {
	hash, _, _ := strings.Cut(k.record.Mark, ".")
	return caller(pid, marksAbove, ancestry, hash+".", enclosing())
}

// obey stores a higher epoch durably, and closes older connections.
func (k *keeper) obey(fence uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case fence < k.fence:
		return &Fenced{Mine: fence, Seen: k.fence}
	case fence == k.fence:
		return nil
	case !PlausibleEpoch(k.fence, fence):
		return &NotTheDaemon{fmt.Sprintf("the epoch %d is not a daemon's: the last one was %d, and each start adds one", fence, k.fence)}
	}
	if err := raiseFence(k.folder, fence); err != nil {
		return err
	}
	k.fence = fence
	for p := range k.peers {
		if p.fence < fence {
			p.finish(answer{Event: "fenced", Fault: toFault(&Fenced{Mine: p.fence, Seen: fence})})
			delete(k.peers, p)
		}
	}
	return nil
}

// admit answers a hello and subscribes the connection to events; nil if there are too many.
func (k *keeper) admit(c *os.File, fence, id uint64) *peer {
	p := &peer{conn: c, fence: fence, out: make(chan answer, answersMax), grew: make(chan struct{}, 1), over: make(chan struct{})}
	st := k.state()
	p.out <- answer{ID: id, Version: ownProtocol(), Status: &st} // before any event
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.peers) >= peersMax {
		return nil
	}
	k.peers[p] = true
	// Growth after the status was taken and before the line above has not been announced.
	p.size = k.spool.safe()
	wake(p.grew)
	if k.told != nil { // it has ended: send only the final answer
		p.finish(*k.told)
	}
	go p.write()
	return p
}

func (k *keeper) converse(p *peer) {
	defer func() {
		k.mu.Lock()
		delete(k.peers, p)
		k.mu.Unlock()
		p.close()
	}()
	for {
		var o order
		if err := readFrame(p.conn, frameBytesMax, &o); err != nil {
			return
		}
		a := answer{ID: o.ID}
		if err := k.do(p, &o, &a); err != nil {
			a.Fault = toFault(err)
		}
		if !p.send(a) {
			return
		}
	}
}

func (k *keeper) do(p *peer, o *order, a *answer) error {
	k.mu.Lock()
	if p.fence < k.fence {
		defer k.mu.Unlock()
		return &Fenced{Mine: p.fence, Seen: k.fence}
	}
	k.mu.Unlock()
	switch o.Op {
	case "status":
		st := k.status()
		a.Status = &st
		return nil
	case "growth":
		a.Size = k.guard.growth.now(k)
		return nil
	case "send":
		return k.input.send(o.Offset, o.Data, o.Label)
	case "close_input":
		k.input.shut()
		return nil
	case "interrupt":
		return k.interrupt()
	case "extend":
		return k.extend(o.EndAt)
	case "end":
		if o.Limit != "" {
			k.limitReached(o.Limit, true)
			return nil
		}
		return k.end(time.Duration(o.GraceMS) * time.Millisecond)
	}
	return fmt.Errorf("protocol %d of shims has no order %q", ownProtocol(), o.Op)
}

// publish announces the readable size to all connections. It never blocks.
func (k *keeper) publish(size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.peers {
		p.mu.Lock()
		p.size = size
		p.mu.Unlock()
		wake(p.grew)
	}
}

// tellAll sends the final answer to all connections and waits briefly for delivery.
func (k *keeper) tellAll(a answer) {
	k.mu.Lock()
	k.told = &a
	peers := make([]*peer, 0, len(k.peers))
	for p := range k.peers {
		p.finish(a)
		peers = append(peers, p)
	}
	k.mu.Unlock()
	late := time.After(tellTimeout)
	for _, p := range peers {
		select {
		case <-p.over:
		case <-late:
			return
		}
	}
}

// send queues an answer; false if the connection has ended or is not read.
func (p *peer) send(a answer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last {
		return false
	}
	select {
	case p.out <- a:
		return true
	default:
		return false
	}
}

// finish queues the final answer; after it the connection is closed.
func (p *peer) finish(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last {
		return
	}
	p.last = true
	select {
	case p.out <- a:
	default: // it does not read
	}
	close(p.out)
}

func (p *peer) close() {
	p.mu.Lock()
	if !p.last {
		p.last = true
		close(p.out)
	}
	p.mu.Unlock()
	<-p.over
}

func (p *peer) write() {
	defer close(p.over)
	defer p.conn.Close()
	for {
		a, ok := p.next()
		if !ok {
			return
		}
		_ = p.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if writeFrame(p.conn, a) != nil {
			// The daemon connects again if it is alive; queued answers are dropped.
			p.conn.Close()
			for range p.out {
			}
			return
		}
	}
}

// next waits for the next message; answers go before announcements of the spool.
func (p *peer) next() (answer, bool) {
	select {
	case a, ok := <-p.out:
		return a, ok
	default:
	}
	select {
	case a, ok := <-p.out:
		return a, ok
	case <-p.grew:
		p.mu.Lock()
		defer p.mu.Unlock()
		return answer{Event: "spool", Size: p.size}, true
	}
}
