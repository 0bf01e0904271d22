package jetstream

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

func TestSuite(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("servers=%d", n), func(t *testing.T) {
			t.Parallel()
			c := started(t, n)
			nc := c.connect(t)
			journaltest.Run(t,
				func(t *testing.T) journal.Journal { return opened(t, nc, c.create(t, nc), "") },
				journaltest.Shared(func(t *testing.T) func() journal.Journal {
					stream, dir, mirrors := c.create(t, nc), t.TempDir(), 0
					return func() journal.Journal { // each handle is a host
						mirrors++
						return opened(t, nc, stream, filepath.Join(dir, fmt.Sprintf("%d.db", mirrors)))
					}
				}))
		})
	}
}

// A server that takes only small messages gets a large batch in parts, all or none. One whose messages are too small is refused.
func TestSmallMessages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		c := started(t, n, func(o *server.Options) { o.MaxPayload = payloadMin })
		nc := c.connect(t)
		stream := c.create(t, nc)
		j := opened(t, nc, stream, "")
		big := journaltest.MadeBatch(3)
		for i := range big {
			big[i].Data = []byte(`"` + strings.Repeat("x", 3*payloadMin) + `"`)
		}
		want := uint64(0)
		for _, batch := range [][]journal.Change{big, big[:1], journaltest.MadeBatch(2), big} {
			want += uint64(len(batch))
			if last, err := j.Append(t.Context(), batch,
				journal.Expect{Entity: journal.Whole, Version: want - uint64(len(batch))}); last != want || err != nil {
				t.Fatal(last, err)
			}
		}
		again := opened(t, c.connect(t), stream, "")
		if seq, _, err := again.Head(t.Context()); seq != want || err != nil {
			t.Errorf("%d servers: a host that joins reads up to %d, %v", n, seq, err)
		}
		if err := journal.Verify(t.Context(), again); err != nil {
			t.Error(err)
		}
		if found := Scrub(t.Context(), nc, stream, j); !found[0].OK {
			t.Error(found)
		}
	}
	c := started(t, 1, func(o *server.Options) { o.MaxPayload = payloadMin - 1 })
	if _, err := Open(t.Context(), c.connect(t), Options{Stream: "T1"}); err == nil || !strings.Contains(err.Error(), "set it to 8 MiB") {
		t.Errorf("a server with small messages: %v", err)
	}
}

// Streams that cannot keep a journal are refused, each with what is wrong.
func TestRefusedStreams(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	nc := c.connect(t)
	api, err := js.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*js.StreamConfig){
		"not stored in files":           func(s *js.StreamConfig) { s.Storage = js.MemoryStorage },
		"discards old messages;":        func(s *js.StreamConfig) { s.MaxAge = time.Hour },
		"when it is full":               func(s *js.StreamConfig) { s.MaxBytes, s.Discard = 1<<20, js.DiscardOld },
		"can be deleted":                func(s *js.StreamConfig) { s.DenyPurge = false },
		"not accept atomic batches":     func(s *js.StreamConfig) { s.AllowAtomicPublish = false },
		"has no fairlead-format":        func(s *js.StreamConfig) { s.Metadata = nil },
		"a newer Fairlead wrote it":     func(s *js.StreamConfig) { s.Metadata[metaFormat] = strconv.Itoa(format + 1) },
		"cluster leave --others-lost`":  func(s *js.StreamConfig) { s.Metadata[metaFormat] = "1" },
		"acknowledges messages before ": func(s *js.StreamConfig) { s.NoAck = true },
	} {
		stream := c.create(t, nc)
		s, err := api.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		config := s.CachedInfo().Config
		config.Name += "x"
		config.Subjects = []string{subjectOf(config.Name)}
		change(&config)
		if _, err := api.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), nc, Options{Stream: config.Name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if _, err := Open(t.Context(), nc, Options{Stream: "NONE"}); !errors.Is(err, js.ErrStreamNotFound) {
		t.Errorf("no stream: %v", err)
	}
}

// The journal of a team on one host goes into a stream, and keeps its hashes. So does a mirror into a new stream. A stream or a
// mirror of another history is refused.
func TestFill(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	nc := c.connect(t)
	old := func(batches int) (*sqlite.Journal, string) {
		path := filepath.Join(t.TempDir(), "journal.db")
		j, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		for range batches {
			if _, err := j.Append(t.Context(), journaltest.MadeBatch(7)); err != nil {
				t.Fatal(err)
			}
		}
		return j, path
	}
	from, path := old(300)
	stream := c.create(t, nc)
	var d *Damage
	if _, err := Open(t.Context(), nc, Options{Stream: stream, Mirror: path}); !errors.As(err, &d) ||
		!strings.Contains(err.Error(), "fill it from the longest mirror") {
		t.Errorf("an empty stream, and a mirror with changes: %v", err)
	}
	for range 2 { // the second time there is nothing to do
		if err := Fill(t.Context(), nc, stream, from); err != nil {
			t.Fatal(err)
		}
	}
	j, fresh := opened(t, nc, stream, path), opened(t, nc, stream, "")
	for _, h := range []*Journal{j, fresh} {
		if err := journal.Verify(t.Context(), h); err != nil {
			t.Error(err)
		}
		seq, hash, err := h.Head(t.Context())
		if _, want, _ := from.Head(t.Context()); seq != 2100 || hash != want || err != nil {
			t.Errorf("%d %s %v, want 2100 %s", seq, hash, err, want)
		}
	}
	if _, err := j.Append(t.Context(), journaltest.MadeBatch(7), journal.Expect{Entity: journal.Whole, Version: 2100}); err != nil {
		t.Fatal(err)
	}
	if found := Scrub(t.Context(), nc, stream, j); !found[0].OK {
		t.Error(found)
	}
	if found := Scrub(t.Context(), nc, stream, from); found[0].OK != true {
		t.Error("with a mirror that lags: ", found)
	}
	// A mirror that ends within a message of the new stream, and one with another history.
	again := c.create(t, nc)
	_, part := old(100)
	if err := Fill(t.Context(), nc, again, fresh); err != nil {
		t.Fatal(err)
	}
	if seq, _, err := opened(t, nc, again, part).Head(t.Context()); seq != 2107 || err != nil {
		t.Errorf("a mirror that ended within a message: %d, %v", seq, err)
	}
	other, foreign := old(0)
	if _, err := other.Append(t.Context(), []journal.Change{journaltest.Made("control/other", 3)}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), nc, Options{Stream: again, Mirror: foreign}); !errors.As(err, &d) {
		t.Errorf("a mirror of another history: %v", err)
	}
	if err := Fill(t.Context(), nc, again, other); err == nil {
		t.Error("a stream was filled from another history")
	}
	if found := Scrub(t.Context(), nc, again, other); found[0].OK {
		t.Error("another history: ", found)
	}
}

// A stream that has less than a host has read is damaged: it was made anew, or its leader has lost its end.
func TestShortStream(t *testing.T) {
	t.Parallel()
	c := started(t, 1)
	nc := c.connect(t)
	path := filepath.Join(t.TempDir(), "m.db")
	stream := c.create(t, nc)
	j := opened(t, nc, stream, path)
	for range 4 {
		if _, err := j.Append(t.Context(), journaltest.MadeBatch(2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(journal.Verify(t.Context(), j), j.Close()); err != nil {
		t.Fatal(err)
	}
	short := c.create(t, nc)
	k := opened(t, nc, short, "")
	for range 2 {
		if _, err := k.Append(t.Context(), journaltest.MadeBatch(2)); err != nil {
			t.Fatal(err)
		}
	}
	var d *Damage
	if _, err := Open(t.Context(), nc, Options{Stream: short, Mirror: path}); !errors.As(err, &d) {
		t.Errorf("a mirror with 8 changes, and a stream with 4: %v", err)
	}
}
