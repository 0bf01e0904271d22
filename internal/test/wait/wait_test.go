package wait

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// failing records the first failure of a test, and stops its goroutine as Fatalf does.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// failure runs a wait that must fail, and returns its message.
func failure(t *testing.T, wait func(t testing.TB)) (said string) {
	f := &failing{TB: t}
	defer func() {
		if recover() != f {
			said = ""
			return
		}
		said = f.said
	}()
	wait(f)
	return ""
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		Until(t, "three calls", func() bool { calls++; return calls == 3 })
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
		began := time.Now()
		said := failure(t, func(t testing.TB) {
			Value(t, "ten", func() (int, error) { return 3, nil }, func(n int) bool { return n == 10 })
		})
		if said != "waited 2m0s and it did not happen: ten; last seen: 3" || time.Since(began) < Patience {
			t.Errorf("%q after %v", said, time.Since(began))
		}
		said = failure(t, func(t testing.TB) {
			Value(t, "ten", func() (int, error) { return 0, errors.New("no file") }, func(int) bool { return true })
		})
		if said != "waiting for ten: no file" {
			t.Errorf("%q", said)
		}
	})
}

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int, 1)
		c <- 7
		if got := For(t, "a number", c); got != 7 {
			t.Errorf("got %d", got)
		}
		if said := failure(t, func(t testing.TB) { For(t, "another number", c) }); said != "waited 2m0s: another number" {
			t.Errorf("%q", said)
		}
	})
}

func TestElapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Elapse(time.Hour)
		if passed := time.Since(began); passed != time.Hour {
			t.Errorf("%v passed", passed)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("outside of a bubble it does not panic")
		}
	}()
	Elapse(time.Nanosecond)
}
