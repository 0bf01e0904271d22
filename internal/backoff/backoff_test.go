package backoff

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		first, most time.Duration
		failures    int
		want        time.Duration
	}{
		{s, 60 * s, 1, s},
		{s, 60 * s, 2, 2 * s},
		{s, 60 * s, 6, 32 * s},
		{s, 60 * s, 7, 60 * s},
		{s, 60 * s, 1 << 40, 60 * s},
		{s, 60 * s, 0, s}, // an attempt that was put off has not failed
		{0, 60 * s, 1 << 40, 0},
		{9 * s, 2 * s, 1, 2 * s},
		{s, 1<<63 - 1, 64, 1<<63 - 1},
	} {
		if got := After(c.first, c.most, c.failures); got != c.want {
			t.Errorf("from %s to %s, after %d failures: %s, want %s", c.first, c.most, c.failures, got, c.want)
		}
	}
}
