package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// full is a server that loses its store when it is set full, and cannot have it again before there is room.
type full struct {
	lost, full atomic.Bool
	tries      atomic.Int64
}

func (f *full) Storeless() bool { return f.lost.Load() }

func (f *full) Damage() error { return nil }

func (f *full) Revive(context.Context) error {
	f.tries.Add(1)
	if f.full.Load() {
		return errors.New("no space")
	}
	f.lost.Store(false)
	return nil
}

// A server that gave up its store has it again seconds after there is room. One that gives it up each time is restarted once a minute at
// most.
func TestGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		s := &Replica{o: Options{Log: slog.New(slog.NewTextHandler(&said, nil))}}
		ctx, end := context.WithCancel(t.Context())
		server, ended := &full{}, make(chan struct{})
		go func() { defer close(ended); s.guard(ctx, server) }()
		see := func(after time.Duration) { wait.Elapse(after); synctest.Wait() }

		see(time.Minute)
		if server.tries.Load() != 0 || s.Fault() != "" {
			t.Errorf("a sound server was restarted %d times: %s", server.tries.Load(), s.Fault())
		}
		server.lost.Store(true)
		server.full.Store(true)
		see(12 * time.Second)
		if server.tries.Load() == 0 || !strings.Contains(s.Fault(), "no space") || strings.Count(said.String(), "level=ERROR") != 2 {
			t.Errorf("%d; %s; %s", server.tries.Load(), s.Fault(), &said)
		}
		server.full.Store(false)
		see(20 * time.Second)
		if server.lost.Load() || s.Fault() != "" || strings.Count(said.String(), "has its store again") != 1 {
			t.Errorf("it is not restarted: %s; %s", s.Fault(), &said)
		}

		before := server.tries.Load()
		for range 600 { // it gives its store up each time
			server.lost.Store(true)
			see(time.Second)
		}
		if n := server.tries.Load() - before; n < 5 || n > 15 {
			t.Errorf("it was restarted %d times in ten minutes", n)
		}
		see(reviveMost + storeEvery)
		see(reviveSound + storeEvery)
		before = server.tries.Load()
		server.lost.Store(true)
		see(3 * storeEvery)
		if server.tries.Load() == before {
			t.Error("after it was sound for long it waits for what was before")
		}
		end()
		<-ended
	})
}
