package jetstream

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// line is the network between one host and the servers. A test may cut it, and change what is sent.
type line struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	tries [][]byte // ids of the messages that were sent
	send  func(b []byte, conn net.Conn) (int, error)
}

func (l *line) Dial(network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.New("the network is down")
	}
	conn, err := net.DialTimeout(network, address, wait.Patience)
	if err == nil {
		l.conns = append(l.conns, conn)
		conn = wire{conn, l}
	}
	return conn, err
}

func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for _, c := range l.conns {
			c.Close()
		}
	}
}

type wire struct {
	net.Conn
	line *line
}

var lastHeader = []byte("Nats-Expected-Last-Sequence: ")

// Write looks for messages of the journal. They are small in these tests, and come in one piece.
func (w wire) Write(b []byte) (int, error) {
	w.line.mu.Lock()
	send := w.line.send
	if at := bytes.Index(b, lastHeader); at >= 0 {
		body := b[at+bytes.Index(b[at:], []byte("\r\n\r\n"))+4:]
		w.line.tries = append(w.line.tries, bytes.Clone(body[1:1+len(id{})]))
	} else {
		send = nil
	}
	w.line.mu.Unlock()
	if send != nil {
		return send(b, w.Conn)
	}
	return w.Conn.Write(b)
}

// once lets one message be treated otherwise.
func (l *line) once(send func(b []byte, conn net.Conn) (int, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries = nil
	l.send = func(b []byte, conn net.Conn) (int, error) {
		l.mu.Lock()
		l.send = nil
		l.mu.Unlock()
		return send(b, conn)
	}
}

// Answers that are lost, and one that is wrong: each append is stored once, under one id, and its caller learns that.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	l := &line{}
	nc := c.connect(t, nats.SetCustomDialer(l))
	stream := c.create(t, nc)
	j := opened(t, nc, stream, "")
	for n, tt := range []struct {
		name  string
		tries int
		send  func(b []byte, conn net.Conn) (int, error)
	}{
		{"all is well", 1, func(b []byte, conn net.Conn) (int, error) { return conn.Write(b) }},
		{"the answer is lost", 1, func(b []byte, conn net.Conn) (int, error) {
			defer conn.Close()
			return conn.Write(b)
		}},
		{"the message is lost", 2, func(b []byte, conn net.Conn) (int, error) {
			conn.Close()
			return len(b), nil
		}},
		{"another end is claimed, though there is no other writer", 2, func(b []byte, conn net.Conn) (int, error) {
			at := bytes.Index(b, lastHeader) + len(lastHeader)
			b = bytes.Clone(b)
			b[at] = '9' // an answer 10071, as a server gives that is cut off from its peers
			return conn.Write(b)
		}},
		{"and again all is well", 1, func(b []byte, conn net.Conn) (int, error) { return conn.Write(b) }},
	} {
		l.once(tt.send)
		last, err := j.Append(t.Context(), journaltest.MadeBatch(2), journal.Expect{Entity: journal.Whole, Version: uint64(2 * n)})
		if err != nil || last != uint64(2*n+2) {
			t.Errorf("%s: %d, %v", tt.name, last, err)
		}
		l.mu.Lock()
		tries := l.tries
		l.mu.Unlock()
		if len(tries) != tt.tries || !bytes.Equal(tries[0], tries[len(tries)-1]) {
			t.Errorf("%s: %d tries with the ids %x, want %d with one id", tt.name, len(tries), tries, tt.tries)
		}
	}
	if err := journal.Verify(t.Context(), opened(t, nc, stream, "")); err != nil {
		t.Error(err)
	}
}

// Without its network a host reads what it has and says as of when. An append has no proof then, and says so. When the network is
// back, the host goes on.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	l := &line{}
	there, here := c.connect(t), c.connect(t, nats.SetCustomDialer(l))
	stream := c.create(t, there)
	other := opened(t, there, stream, "")
	j, err := Open(t.Context(), here, Options{Stream: stream, Mirror: filepath.Join(t.TempDir(), "m.db"), Patience: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(3)); err != nil {
		t.Fatal(err)
	}
	if seq, _, err := j.Head(t.Context()); seq != 3 || err != nil {
		t.Fatal(seq, err)
	}
	_, before := j.AsOf()
	l.set(true)
	wait.Until(t, "the connection is lost", func() bool { return !here.IsConnected() })
	if last, err := other.Append(t.Context(), journaltest.MadeBatch(2)); last != 5 || err != nil {
		t.Fatal(last, err)
	}
	if seq, _, err := j.Head(t.Context()); seq != 3 || err != nil {
		t.Errorf("without the network the end is %d, %v, want 3", seq, err)
	}
	if seq, at := j.AsOf(); seq != 3 || at.After(time.Now()) || before.IsZero() {
		t.Errorf("as of %d %v", seq, at)
	}
	var none *Unproven
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(1)); !errors.As(err, &none) ||
		!strings.Contains(err.Error(), "no proof came within") {
		t.Errorf("an append without the network: %v", err)
	}
	l.set(false)
	wait.Until(t, "the mirror has what came meanwhile", func() bool { seq, _ := j.AsOf(); return seq >= 5 })
	// What was sent without proof may have arrived: it is read, and counts once.
	last, err := j.Append(t.Context(), journaltest.MadeBatch(1))
	if err != nil || last < 6 || last > 7 {
		t.Errorf("with the network again: %d, %v", last, err)
	}
	if _, at := j.AsOf(); !at.After(before) {
		t.Errorf("as of %v, and %v before", at, before)
	}
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
}

// Writers append equal batches at the same place. One gets the answer that it was stored, the others that it was not, and there is one
// history.
func TestEqualBatches(t *testing.T) {
	t.Parallel()
	const writers = 3
	c := started(t, 1)
	stream := ""
	var hosts [writers]*Journal
	for i := range hosts {
		nc := c.connect(t)
		if i == 0 {
			stream = c.create(t, nc)
		}
		hosts[i] = opened(t, nc, stream, "")
	}
	for round := range uint64(testsize.Pick(30, 200, 1000)) {
		var work sync.WaitGroup
		var errs [writers]error
		for i, j := range hosts {
			work.Go(func() {
				_, errs[i] = j.Append(t.Context(), journaltest.MadeBatch(1), journal.Expect{Entity: journal.Whole, Version: round})
			})
		}
		work.Wait()
		stored := 0
		for _, err := range errs {
			var conflict *journal.Conflict
			if err == nil {
				stored++
			} else if !errors.As(err, &conflict) {
				t.Fatal(err)
			}
		}
		if stored != 1 {
			t.Fatalf("round %d: %d of %d equal batches were stored: %v", round, stored, writers, errs)
		}
		for _, j := range hosts {
			if seq, _, err := j.Head(t.Context()); err != nil || seq != round+1 {
				t.Fatalf("round %d: a host ends at %d, %v", round, seq, err)
			}
		}
	}
	var first journal.Hash
	for i, j := range hosts {
		_, hash, err := j.Head(t.Context())
		if err = errors.Join(err, journal.Verify(t.Context(), j)); err != nil {
			t.Error(err)
		}
		if i == 0 {
			first = hash
		} else if hash != first {
			t.Error("the hosts have different histories")
		}
	}
}

// A caller that leaves before its append is on its way has stored nothing.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	l := &line{}
	nc := c.connect(t, nats.SetCustomDialer(l))
	j := opened(t, nc, c.create(t, nc), "")
	held, release := make(chan struct{}), make(chan struct{})
	l.once(func(b []byte, conn net.Conn) (int, error) {
		close(held)
		<-release
		return conn.Write(b)
	})
	first := make(chan error, 1)
	go func() {
		_, err := j.Append(t.Context(), journaltest.MadeBatch(1))
		first <- err
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, journaltest.MadeBatch(1))
		second <- err
	}()
	wait.Until(t, "the second append waits", func() bool {
		j.writer.queue.mu.Lock()
		defer j.writer.queue.mu.Unlock()
		return len(j.writer.queue.waiting) == 1
	})
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "may be stored") {
		t.Errorf("the caller that left: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if seq, _, err := j.Head(t.Context()); seq != 1 || err != nil {
		t.Errorf("%d changes are stored, %v", seq, err)
	}
}

// Another program writes to the stream what is no continuation of the history. No host takes it, and no append follows it.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	nc := c.connect(t)
	for name, forge := range map[string]func(end position) []byte{
		"no message":     func(position) []byte { return []byte("hello") },
		"a later format": func(position) []byte { return []byte(`{"format":3}` + "\n") },
		"another content": func(end position) []byte {
			b := chained(end.seq, end.hash, journaltest.MadeBatch(2))
			b.changes[0].Data = []byte(`"other"`)
			return messagesOf(newID(), b, payload)[0]
		},
		"another version": func(end position) []byte {
			b := chained(end.seq, end.hash, journaltest.MadeBatch(2)) // its versions begin at 1 again
			return messagesOf(newID(), b, payload)[0]
		},
		"a gap": func(end position) []byte {
			return messagesOf(newID(), chained(end.seq+1, end.hash, []journal.Change{journaltest.Made("control/new", 1)}), payload)[0]
		},
		"another history": func(end position) []byte {
			return messagesOf(newID(), chained(end.seq, journal.Hash{1}, []journal.Change{journaltest.Made("control/new", 1)}), payload)[0]
		},
		"the same again": func(end position) []byte {
			b := chained(0, journal.Hash{}, journaltest.MadeBatch(3))
			b.hash = end.hash
			for i := range b.changes {
				b.changes[i].Version = 1
			}
			return messagesOf(newID(), b, payload)[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			stream := c.create(t, nc)
			var reports atomic.Int64
			j, err := Open(t.Context(), nc,
				Options{Stream: stream, Mirror: filepath.Join(t.TempDir(), "m.db"), Report: func(error) { reports.Add(1) }})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if _, err := j.Append(t.Context(), journaltest.MadeBatch(3)); err != nil {
				t.Fatal(err)
			}
			if err := nc.Publish(subjectOf(stream), forge(j.end)); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "the message is reported", func() bool { return reports.Load() > 0 || j.mirroredTo(2) })
			if err := j.Damaged(); !errors.As(err, new(*Damage)) && !errors.As(err, new(*OtherFormat)) {
				t.Fatalf("reported: %v", err)
			}
			if last, err := j.Append(t.Context(), journaltest.MadeBatch(1)); err == nil {
				t.Errorf("an append behind it is stored as %d", last)
			}
			if seq, _, err := j.Head(t.Context()); seq != 3 || err != nil {
				t.Errorf("the mirror ends at %d, %v", seq, err)
			}
			if err := journal.Verify(t.Context(), j); err != nil {
				t.Error(err)
			}
			if found := Scrub(t.Context(), nc, stream, j.mirror); found[0].OK || found[0].Do == "" {
				t.Errorf("the comparison: %+v", found)
			}
		})
	}
}

// mirroredTo says whether the mirror has a message.
func (j *Journal) mirroredTo(place uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mirrored.place >= place
}
