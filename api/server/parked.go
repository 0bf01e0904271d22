package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api/caller"
)

// If a thousand watchers wait for the same change, waking a goroutine for each costs more than the writes. So while a
// watcher waits, it is parked: the feed itself writes to its connection, past net/http, and never waits for a slow
// client. The watcher's own goroutine writes the rest of such a chunk, and everything else.

// direct is the connection of an HTTP/1.1 answer in chunks, all of whose bytes so far were flushed.
type direct struct {
	net.Conn
	raw   syscall.RawConn
	write func(fd uintptr) bool // writes chunk; made once, not for each chunk
	chunk []byte
	wrote int
}

func newDirect(c net.Conn, raw syscall.RawConn) *direct {
	d := &direct{Conn: c, raw: raw}
	d.write = func(fd uintptr) bool {
		for {
			var err error
			if d.wrote, err = syscall.Write(int(fd), d.chunk); !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	}
	return d
}

type directKey struct{}

// withDirect keeps the connection for directOf, if it is a plain one.
func withDirect(ctx context.Context, c net.Conn) context.Context {
	plain := c
	for {
		switch outer := plain.(type) {
		case *counted:
			plain = outer.Conn
			continue
		case *caller.Conn:
			plain = outer.Conn
			continue
		case *net.TCPConn, *net.UnixConn:
			if raw, err := plain.(syscall.Conn).SyscallConn(); err == nil {
				return context.WithValue(ctx, directKey{}, newDirect(c, raw))
			}
		}
		return ctx
	}
}

// directOf returns the connection of a request; nil: only net/http may write to it.
func directOf(r *http.Request) *direct {
	d, _ := r.Context().Value(directKey{}).(*direct)
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return nil
	}
	return d
}

// try writes as much as the connection takes at once. An error is left for the next write that may wait.
func (d *direct) try(b []byte) (n int) {
	d.chunk, d.wrote = b, 0
	_ = d.raw.Write(d.write)
	d.chunk = nil
	return max(0, d.wrote)
}

// parked is a watcher that the feed writes for, with what writing needs beside it: the feed goes through a thousand.
type parked struct {
	to      *direct
	watcher *watcher
}

// park lets the feed write for a watcher until unpark. It reports false if the watcher has to wait for the bell instead.
func (f *feed) park(t *watcher) bool {
	if t.out.direct == nil || t.entity != "" || t.poll || t.out.endless() != nil {
		return false
	}
	f.parking.Lock()
	defer f.parking.Unlock()
	if f.closed || t.place != f.wrote {
		return false
	}
	f.parked = append(f.parked, parked{t.out.direct, t})
	t.spot = len(f.parked)
	return true
}

// unpark ends it, and returns what the watcher has to write first.
func (f *feed) unpark(t *watcher) (rest []byte) {
	f.parking.Lock()
	defer f.parking.Unlock()
	f.remove(t)
	rest, t.rest = t.rest, nil
	return rest
}

// write writes for the parked watchers until the feed has ended.
func (f *feed) write() {
	for {
		frames, bell, err := f.since(f.wrote)
		switch {
		case len(frames) > 0:
			f.deliver(frames)
		case err == nil:
			<-bell
		default:
			f.parking.Lock()
			for len(f.parked) > 0 {
				f.release(f.parked[0].watcher)
			}
			f.wrote = f.newest()
			f.closed = !errors.Is(err, errLagged)
			f.parking.Unlock()
			if f.closed {
				return
			}
		}
	}
}

// deliver writes the same chunk to every parked watcher.
func (f *feed) deliver(frames []frame) {
	size := 0
	for _, fr := range frames {
		size += len(fr.wire)
	}
	chunk := fmt.Appendf(make([]byte, 0, size+20), "%x\r\n", size)
	for _, fr := range frames {
		chunk = append(chunk, fr.wire...)
	}
	chunk = append(chunk, "\r\n"...)
	f.parking.Lock()
	defer f.parking.Unlock()
	f.wrote = frames[len(frames)-1].seq
	for i := len(f.parked) - 1; i >= 0; i-- { // from the end: the last one takes the place of one that is released
		if n := f.parked[i].to.try(chunk); n < len(chunk) {
			t := f.parked[i].watcher
			t.rest = chunk[n:]
			f.release(t)
		}
	}
}

// remove ends that the feed writes for a watcher, which has all that was written. parking must be held.
func (f *feed) remove(t *watcher) {
	if t.spot == 0 {
		return
	}
	last := len(f.parked) - 1
	f.parked[t.spot-1] = f.parked[last]
	f.parked[t.spot-1].watcher.spot = t.spot
	f.parked[last] = parked{}
	f.parked = f.parked[:last]
	t.spot, t.place = 0, f.wrote
}

// release wakes a watcher, which then writes for itself. parking must be held.
func (f *feed) release(t *watcher) {
	f.remove(t)
	select {
	case t.wake <- struct{}{}:
	default: // it is awake
	}
}

// endless removes the deadline of the last write: the feed's writes do not wait.
func (o *sse) endless() error { return o.rc.SetWriteDeadline(time.Time{}) }

// complete writes the rest of a chunk that the feed began.
func (o *sse) complete(rest []byte) error {
	if len(rest) == 0 {
		return nil
	}
	if err := o.direct.SetWriteDeadline(time.Now().Add(o.s.waits.piece)); err != nil {
		return errCut
	}
	_, err := o.direct.Write(rest)
	return o.cutOff(err)
}
