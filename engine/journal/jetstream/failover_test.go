package jetstream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// Hosts append while the server that leads is taken away, and comes back, again and again. Each append that was acknowledged
// is there once, in the order of its writer, and all hosts have one chain.
func TestLeaderLost(t *testing.T) {
	t.Parallel()
	const hosts, writers = 2, 2
	c := started(t, 3)
	first := c.connect(t)
	stream := c.create(t, first)
	var stop atomic.Bool
	var acked [hosts * writers]atomic.Int64
	var work sync.WaitGroup
	var all []*Journal
	for h := range hosts {
		j := opened(t, c.connect(t), stream, "")
		all = append(all, j)
		for w := range writers {
			me := h*writers + w
			work.Go(func() {
				for n := int64(0); !stop.Load(); n++ {
					one := journaltest.Made(fmt.Sprintf("control/w%d", me), 0)
					one.Data = fmt.Appendf(nil, "%d", n)
					if _, err := j.Append(t.Context(), []journal.Change{one}); err != nil {
						t.Errorf("writer %d: %v", me, err)
						return
					}
					acked[me].Store(n + 1)
				}
			})
		}
	}
	progress := func(what string) {
		var from [len(acked)]int64
		for i := range acked {
			from[i] = acked[i].Load()
		}
		wait.Until(t, what, func() bool {
			for i := range acked {
				if acked[i].Load() < from[i]+3 {
					return t.Failed()
				}
			}
			return true
		})
	}
	for range testsize.Pick(1, 6, 50) {
		progress("all writers append")
		at := c.leader(t, stream)
		c.stop(at)
		progress("all writers append without the server that led")
		c.start(t, at)
		c.current(t, first, stream)
	}
	stop.Store(true)
	work.Wait()
	all = append(all, opened(t, first, stream, ""))
	end := journal.Hash{}
	for _, j := range all {
		if err := journal.Verify(t.Context(), j); err != nil {
			t.Error(err)
		}
		_, hash, err := j.Head(t.Context())
		if err != nil || !end.IsZero() && hash != end {
			t.Errorf("a host ends with %s, another with %s, %v", hash, end, err)
		}
		end = hash
	}
	for me := range acked {
		n := int64(0)
		for ch, err := range all[hosts].Read(t.Context(), journal.Query{Entity: fmt.Sprintf("control/w%d", me)}) {
			if err != nil {
				t.Fatal(err)
			}
			if string(ch.Data) != fmt.Sprint(n) {
				t.Fatalf("writer %d: its change %d says %s", me, n, ch.Data)
			}
			n++
		}
		if n != acked[me].Load() {
			t.Errorf("writer %d: %d changes are stored, %d were acknowledged", me, n, acked[me].Load())
		}
	}
}

// Without most of the servers no append is acknowledged, and its caller learns that in time. What was appended can be read. When the
// servers are back, so are appends.
func TestMostServersLost(t *testing.T) {
	t.Parallel()
	c := started(t, 3)
	nc := c.connect(t)
	stream := c.create(t, nc)
	j, err := Open(t.Context(), nc, Options{Stream: stream, Mirror: filepath.Join(t.TempDir(), "m.db"), Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(1)); err != nil {
		t.Fatal(err)
	}
	c.stop(0)
	c.stop(1)
	if last, err := j.Append(t.Context(), journaltest.MadeBatch(1)); !errors.As(err, new(*Unproven)) {
		t.Fatalf("an append with one server of three: %d, %v", last, err)
	}
	n := 0
	for _, err := range j.Read(t.Context(), journal.Query{}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("%d changes are read, want 1", n)
	}
	c.start(t, 0)
	c.start(t, 1)
	wait.Until(t, "appends are acknowledged again", func() bool {
		_, err := j.Append(t.Context(), journaltest.MadeBatch(1), journal.Expect{Entity: "control/other", Version: 0})
		return err == nil
	})
	if err := journal.Verify(t.Context(), j); err != nil {
		t.Error(err)
	}
}

// A question to a stream without a leader is lost. It is asked again, and the answer comes soon after there is a leader.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		question := func(ctx context.Context) (int, error) {
			asked++
			if time.Since(began) < 7*time.Second {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return asked, nil
		}
		if n, err := ask(t.Context(), readWait, tryWait, question); err != nil || n != 6 || time.Since(began) != 5*tryWait {
			t.Errorf("answer %d after %v, %v", n, time.Since(began), err)
		}
		began = time.Now()
		if _, err := ask(t.Context(), 2*tryWait, tryWait, question); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(began) != 2*tryWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		no := errors.New("no")
		began = time.Now()
		if _, err := ask(t.Context(), readWait, tryWait, func(context.Context) (int, error) { return 0, no }); !errors.Is(err, no) ||
			time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A host that takes over has nearly all of the stream. It mirrors the rest without a consumer.
func TestNear(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	nc := c.connect(t)
	stream := c.create(t, nc)
	j := opened(t, nc, stream, "")
	for range 3 {
		if _, err := j.Append(t.Context(), []journal.Change{journaltest.Made("control/x", 0)}); err != nil {
			t.Fatal(err)
		}
	}
	mirror, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "mirror.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	f := &follower{remote: j.remote, mirror: mirror, versions: map[string]uint64{}}
	f.near(t.Context(), 3)
	if _, hash, err := j.Head(t.Context()); err != nil || f.mirrored != (position{3, 3, hash}) {
		t.Errorf("the mirror ends at %+v, want %s, %v", f.mirrored, hash, err)
	}

	// It stores a change, and no consumer brings that back. A reader mirrors it itself, instead of waiting for the servers.
	one := journaltest.Made("control/x", 0)
	if _, err := j.Append(t.Context(), []journal.Change{one}); err != nil {
		t.Fatal(err)
	}
	var stored []journal.Change
	for ch, err := range j.Read(t.Context(), journal.Query{After: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, ch)
	}
	f.own = []pending{{position{4, 4, stored[0].Hash}, stored}}
	f.end = f.own[0].position
	f.closed, f.wanted = make(chan struct{}), make(chan struct{}, 1)
	if err := f.ready(t.Context(), 0); err != nil || f.mirrored.seq != 4 {
		t.Errorf("the mirror ends at %+v, %v", f.mirrored, err)
	}
}
