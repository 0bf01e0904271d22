package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// Option adds to what Run checks.
type Option func(*suite)

// Shared says that several handles may be open on one store, as several processes
// do: place gives the opener of a new, empty store. Handles closed by the suite may
// be opened again and must find what was appended.
func Shared(place func(t *testing.T) (open func() journal.Journal)) Option {
	return func(s *suite) { s.place = place }
}

type suite struct {
	open   func(t *testing.T) journal.Journal
	place  func(t *testing.T) func() journal.Journal
	within time.Duration
}

// Run checks a backend. open gives a new, empty journal each time; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) journal.Journal, options ...Option) {
	t.Helper()
	s := &suite{open: open, within: 5 * time.Second}
	for _, o := range options {
		o(s)
	}
	tests := []struct {
		name string
		run  func(*testing.T, journal.Journal)
	}{
		{"Empty", testEmpty},
		{"EveryFieldComesBack", testFields},
		{"SeqsAreConsecutive", testConsecutive},
		{"BatchesAreAtomic", testAtomic},
		{"Expectations", testExpect},
		{"ExpectationsUnderContention", testContention},
		{"EmptyBatch", testEmptyBatch},
		{"CallerMayReuseItsBatch", testAlias},
		{"Queries", testQueries},
		{"Streams", testStreams},
		{"AppendWhileReading", testAppendWhileReading},
		{"ReadIsRestartable", testRestartable},
		{"Chain", testChain},
		{"Snapshots", testSnapshots},
		{"SnapshotsOfAnotherHistory", testForeignSnapshots},
		{"LimitsAccepted", testLimitsAccepted},
		{"LimitsRefused", testLimitsRefused},
		{"Cancelled", testCancelled},
		{"Closed", testClosed},
		{"Many", testMany},
		{"WatchSeesEachOnce", testWatch},
		{"WatchResumes", testWatchResumes},
		{"WatchOneStream", testWatchStream},
		{"WatchUntil", testWatchUntil},
		{"WatchEndsWithContext", testWatchCancel},
		{"WatchEndsWithClose", testWatchClose},
		{"WatchersAreMany", testWatchMany},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := open(t)
			t.Cleanup(func() {
				if err := j.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			tt.run(t, j)
		})
	}
	if s.place != nil {
		t.Run("Reopened", s.testReopened)
		t.Run("TwoHandlesContend", s.testTwoHandles)
		t.Run("WatchAcrossHandles", s.testWatchAcross)
		t.Run("SnapshotsAcrossHandles", s.testSnapshotsAcross)
	}
}

// start is the time of the first made-up change; each later one is a microsecond on.
var start = time.Date(2026, 11, 20, 9, 30, 0, 123456789, time.UTC)

// Made gives the n-th made-up change of an entity, all fields filled. It is what the
// suite appends, and serves other tests that need some history.
func Made(entity string, n int) journal.Change {
	return journal.Change{
		Time:    start.Add(time.Duration(n) * time.Microsecond),
		Machine: "control",
		Entity:  entity,
		Row:     fmt.Sprintf("C%d", n%22+1),
		From:    []string{"resting", "continuous", "run_once"}[n%3],
		To:      []string{"continuous", "run_once", "resting"}[n%3],
		Trigger: "session_ended",
		Actor:   change.Actor{Kind: "human", ID: "julian"},
		Data:    fmt.Appendf(nil, `{"n":%d,"note":"as the human wanted, and no sooner","ok":true}`, n),
	}
}

// MadeBatch gives n made-up changes, spread over some entities.
func MadeBatch(n int) []journal.Change {
	batch := make([]journal.Change, n)
	for i := range batch {
		batch[i] = Made(fmt.Sprintf("control/agent-%d", i%8), i)
	}
	return batch
}

func mustAppend(t testing.TB, j journal.Journal, batch ...journal.Change) uint64 {
	t.Helper()
	last, err := j.Append(t.Context(), batch)
	if err != nil {
		t.Fatalf("append of %d: %v", len(batch), err)
	}
	return last
}

// collect reads to the end and fails the test at an error.
func collect(t testing.TB, seq iter.Seq2[journal.Change, error]) []journal.Change {
	t.Helper()
	var got []journal.Change
	for c, err := range seq {
		if err != nil {
			t.Fatalf("after %d changes: %v", len(got), err)
		}
		got = append(got, c)
	}
	return got
}

// firstError reads to the first error and tells when something comes after it.
func firstError(t testing.TB, seq iter.Seq2[journal.Change, error]) (n int, first error) {
	t.Helper()
	for _, err := range seq {
		switch {
		case first != nil:
			t.Fatalf("something was yielded after the error %v", first)
		case err != nil:
			first = err
		default:
			n++
		}
	}
	return n, first
}

func seqsOf(changes []journal.Change) []uint64 {
	seqs := make([]uint64, len(changes))
	for i := range changes {
		seqs[i] = changes[i].Seq
	}
	return seqs
}

// same compares a change with what was appended: all but what the store gives.
func same(got, put journal.Change) error {
	switch {
	case !got.Time.Equal(put.Time):
		return fmt.Errorf("change %d: time %s, was %s", got.Seq, got.Time, put.Time)
	case got.Time.Location() != time.UTC:
		return fmt.Errorf("change %d: time in %s, want UTC", got.Seq, got.Time.Location())
	case !bytes.Equal(got.Data, put.Data):
		return fmt.Errorf("change %d: data %.80q, was %.80q", got.Seq, got.Data, put.Data)
	case got.Machine != put.Machine || got.Entity != put.Entity || got.Row != put.Row || got.From != put.From || got.To != put.To ||
		got.Trigger != put.Trigger || got.Actor != put.Actor || got.Cause != put.Cause:
		return fmt.Errorf("change %d: %+v, was %+v", got.Seq, got, put)
	}
	return nil
}

func mustVerify(t testing.TB, j journal.Journal) {
	t.Helper()
	if err := journal.Verify(context.WithoutCancel(t.Context()), j); err != nil {
		t.Error(err)
	}
}

func isConflict(err error) *journal.Conflict {
	var c *journal.Conflict
	if errors.As(err, &c) {
		return c
	}
	return nil
}

func isRefused(err error) bool {
	var r *journal.Refused
	return errors.As(err, &r)
}
