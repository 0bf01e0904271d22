// Package wait is the only place in which a test waits for time.
//
// A test waits for a condition (Until, For) and not for a duration: on a loaded machine a duration
// is too short, on a fast one too long. Code that needs time itself runs on the clock of a synctest
// bubble (Elapse). The rest are programs of the tests that are slow on purpose, and interruptions
// at an arbitrary moment. They use Pause, and no test result may depend on its length.
//
// The one promise: a test that waits here fails with the name of what it waited for. tidy_test.go
// refuses time.Sleep, tickers, timers and short calls of time.After everywhere else in tests.
package wait

import (
	"testing"
	"time"
)

// Patience bounds every wait for a condition. Only a test that fails waits this long.
const Patience = 2 * time.Minute

// The interval between two checks doubles from lookFirst to lookMost: a condition that holds soon
// is noticed soon, and a long wait costs little. It is also lookRest times as long as the check took,
// for checks that start programs or read the process table.
const (
	lookFirst = time.Millisecond
	lookMost  = 32 * time.Millisecond
	lookRest  = 4
)

// Until waits until ok returns true. After Patience it fails the test with what. It calls ok in the
// test's own goroutine.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Poll(ok) {
		t.Fatalf("waited %v: %s", Patience, what)
	}
}

// Value is Until for a condition on a value that look reads. It returns the value. If the test
// fails, it shows the last value. An error of look fails the test at once.
func Value[V any](t testing.TB, what string, look func() (V, error), ok func(V) bool) V {
	t.Helper()
	var last V
	if !Poll(func() bool {
		var err error
		if last, err = look(); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		return ok(last)
	}) {
		t.Fatalf("waited %v and it did not happen: %s; last seen: %+v", Patience, what, last)
	}
	return last
}

// Poll is Until for callers that report a failure themselves. It returns false after Patience.
func Poll(ok func() bool) bool {
	late, every := time.Now().Add(Patience), lookFirst
	for {
		began := time.Now()
		if ok() {
			return true
		}
		now := time.Now()
		if now.After(late) {
			return false
		}
		<-time.After(max(every, min(lookRest*now.Sub(began), time.Second)))
		every = min(2*every, lookMost)
	}
}

// For receives from c, and fails the test if nothing arrives within Patience. A closed channel gives
// the zero value.
func For[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited %v: %s", Patience, what)
		panic("unreachable")
	}
}

// Elapse lets d pass on the clock of a synctest bubble, which takes no real time. Outside of a bubble
// it panics: real time that passes proves nothing.
func Elapse(d time.Duration) {
	if !InBubble() {
		panic("wait.Elapse outside of a synctest bubble; wait for a condition with wait.Until")
	}
	<-time.After(d)
}

// InBubble reports whether the caller runs on the clock of a synctest bubble. Such a clock starts in
// the year 2000.
func InBubble() bool { return time.Now().Year() < 2020 }

// After is time.After for a program of the tests that waits for the first of several events.
func After(d time.Duration) <-chan time.Time { return time.After(d) }

// Pause lets real time pass in a program of the tests that is slow on purpose, in a benchmark, or
// before an interruption at an arbitrary moment. A test must hold for every length of the pause.
func Pause(d time.Duration) { <-time.After(d) }
