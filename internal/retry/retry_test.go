package retry

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPauses(t *testing.T) {
	const s = time.Second
	for what, p := range map[string]Pauses{"exact": {First: s, Most: 5 * s}, "spread": {First: s, Most: 5 * s, Spread: true}} {
		for _, round := range []string{"first", "after a reset"} {
			for i, want := range []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s} {
				got := p.Next()
				if p.Spread && (got < want/2 || got >= want) || !p.Spread && got != want {
					t.Errorf("%s, %s: pause %d is %s, want %s", what, round, i+1, got, want)
				}
			}
			p.Reset()
		}
	}
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		p := Pauses{First: time.Second, Most: time.Minute}
		began := time.Now()
		var at []time.Duration
		for p.Rest(ctx) {
			at = append(at, time.Since(began))
		}
		if want := []time.Duration{1 * time.Second, 3 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("tried after %v, want %v", at, want)
		}
		if lasted := time.Since(began); lasted != 6*time.Second {
			t.Errorf("the wait ended after %s, not with its context", lasted)
		}
	})
}
