package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

func TestUntil(t *testing.T) {
	ctx, j := t.Context(), New()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n := range 10 {
		_, err := j.Append(ctx,
			[]journal.Change{{
				Time: start.Add(time.Duration(n/2) * time.Second), Machine: "m", Entity: "m/a", Row: "C1", To: "x",
				Trigger: fmt.Sprint("t", n), Actor: change.Actor{Kind: "human", ID: "x"},
			}})
		if err != nil {
			t.Fatal(err)
		}
	}
	then, last, err := journal.Until(ctx, j, 4)
	if err != nil || last.Seq != 4 || last.Trigger != "t3" {
		t.Fatalf("%+v, %v", last, err)
	}
	for _, c := range []struct {
		q     journal.Query
		first uint64
		count int
	}{
		{journal.Query{}, 1, 4},
		{journal.Query{After: 2}, 3, 2},
		{journal.Query{After: 1, Until: 3}, 2, 2},
		{journal.Query{Until: 9}, 1, 4},
		{journal.Query{After: 4}, 0, 0},
	} {
		var first uint64
		count := 0
		for ch, err := range then.Read(ctx, c.q) {
			if err != nil {
				t.Fatal(err)
			}
			if count++; first == 0 {
				first = ch.Seq
			}
		}
		if first != c.first || count != c.count {
			t.Errorf("%+v: %d changes from %d", c.q, count, first)
		}
	}
	if seq, hash, err := then.Head(ctx); seq != 4 || hash != last.Hash || err != nil {
		t.Errorf("head %d, %v", seq, err)
	}
	if _, err := then.Append(ctx, []journal.Change{{}}); !errors.Is(err, journal.ErrPast) {
		t.Errorf("appended: %v", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := 0
	for ch := range then.Watch(watching, journal.Query{}) {
		if seen++; ch.Seq == 4 {
			stop()
		}
	}
	if seen != 4 {
		t.Errorf("watched %d", seen)
	}
	if err := j.SaveSnapshot(ctx, journal.Snapshot{Seq: 5, Hash: hashOf(t, j, 5), Format: "f", Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := then.Latest(ctx); ok || err != nil {
		t.Errorf("a later snapshot: %v, %v", ok, err)
	}
	if later, _, err := journal.Until(ctx, j, 6); err != nil {
		t.Error(err)
	} else if s, ok, err := later.Latest(ctx); !ok || s.Seq != 5 || err != nil {
		t.Errorf("an earlier snapshot: %+v, %v, %v", s, ok, err)
	}
	for _, seq := range []uint64{0, 11, 1 << 62} {
		if _, _, err := journal.Until(ctx, j, seq); err == nil {
			t.Errorf("there is a change %d", seq)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  uint64
	}{{-time.Second, 0}, {0, 2}, {time.Second - 1, 2}, {time.Second, 4}, {time.Hour, 10}} {
		if seq, err := journal.LastAt(ctx, j, start.Add(c.after)); seq != c.want || err != nil {
			t.Errorf("%s after the start: %d, %v, want %d", c.after, seq, err, c.want)
		}
	}
}

func hashOf(t *testing.T, j *Journal, seq uint64) journal.Hash {
	_, last, err := journal.Until(t.Context(), j, seq)
	if err != nil {
		t.Fatal(err)
	}
	return last.Hash
}
