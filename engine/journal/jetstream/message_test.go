package jetstream

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// chained gives changes the places and hashes that they have behind a change.
func chained(after uint64, before journal.Hash, changes []journal.Change) *batch {
	b := &batch{first: after + 1, before: before, hash: before, changes: changes}
	for i := range changes {
		c := &changes[i]
		c.Seq, c.Version, c.Time = after+uint64(i)+1, uint64(i)+1, c.Time.UTC()
		c.Hash = c.Sum(b.hash)
		b.hash = c.Hash
	}
	return b
}

// together decodes the messages of one batch.
func together(messages [][]byte) (b *batch, err error) {
	var t taker
	for _, m := range messages {
		if b, err = t.add(m); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func TestMessages(t *testing.T) {
	for _, limit := range []int{headMax + 1, headMax + 100, 1000, 1 << 20} {
		b := chained(41, journal.Hash{1}, journaltest.MadeBatch(20))
		b.changes[3].Data, b.changes[4].Cause = nil, 7
		b.changes[5].Trigger = strings.Repeat("t", 200)
		b.changes[6].Data, b.changes[7].Data = []byte("{ \"a\":\n\"<\u2028\" }"), []byte("\"\xff\"")
		messages := messagesOf(newID(), b, limit)
		for _, m := range messages {
			if len(m) > limit {
				t.Errorf("a message has %d bytes, more than %d", len(m), limit)
			}
		}
		if limit == headMax+1 {
			continue // more parts than a server takes, and than CheckBatch lets happen
		}
		got, err := together(messages)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.changes {
			b.changes[i].Hash = journal.Hash{} // only the last is sent
		}
		if !reflect.DeepEqual(got, b) {
			t.Errorf("limit %d: %+v, was %+v", limit, got, b)
		}
	}
}

// A message of which one bit is another is refused.
func TestFlippedMessages(t *testing.T) {
	m := messagesOf(newID(), chained(0, journal.Hash{}, journaltest.MadeBatch(3)), 1<<20)[0]
	for bit := range 8 * len(m) {
		m[bit/8] ^= 1 << (bit % 8)
		if _, err := parse(m); err == nil {
			t.Fatalf("bit %d was flipped, and the message is taken", bit)
		}
		m[bit/8] ^= 1 << (bit % 8)
	}
	for with, want := range map[string]string{`{"format":3`: "a newer Fairlead wrote it", `{"format":1`: "cluster leave --others-lost`"} {
		other := bytes.Replace(m, []byte(`{"format":2`), []byte(with), 1)
		if _, err := parse(other); !errors.As(err, new(*OtherFormat)) || !strings.Contains(err.Error(), want) {
			t.Errorf("a message that begins with %s: %v", with, err)
		}
	}
}

// A batch with changes that cannot follow one another, or with more than a batch has, is refused.
func TestImpossibleBatches(t *testing.T) {
	whole := chained(5, journal.Hash{9}, journaltest.MadeBatch(3))
	text := string(appendBatch(nil, whole))
	for name, body := range map[string]string{
		"no change":        text[:strings.IndexByte(text, '\n')],
		"another number":   strings.Replace(text, `"seq":7`, `"seq":8`, 1),
		"a local time":     strings.Replace(text, `Z","machine"`, `+01:00","machine"`, 1),
		"no hashes":        "[]" + text[strings.IndexByte(text, '\n'):],
		"a line too many":  text + "\n",
		"too many changes": text + strings.Repeat("\n{}", journal.BatchChangesMax),
	} {
		if _, err := decode(6, []byte(body)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	if _, err := decode(6, []byte(text)); err != nil {
		t.Error(err)
	}
}

// The parts of a batch are taken in their order, and none of another batch among them.
func TestParts(t *testing.T) {
	parts := messagesOf(newID(), chained(0, journal.Hash{}, journaltest.MadeBatch(9)), 1000)
	others := messagesOf(newID(), chained(0, journal.Hash{}, journaltest.MadeBatch(9)), 1000)
	if len(parts) < 3 {
		t.Fatal(len(parts))
	}
	for name, order := range map[string][][]byte{
		"a part is missing":       {parts[0], parts[2]},
		"a part comes twice":      {parts[0], parts[0]},
		"the first is missing":    {parts[1]},
		"a part of another batch": {parts[0], others[1]},
	} {
		if _, err := together(order); !errors.Is(err, errParts) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever bytes come, a message is refused or means what it would mean if it were written again.
func FuzzMessage(f *testing.F) {
	for _, n := range []int{1, 3} {
		b := chained(5, journal.Hash{9}, journaltest.MadeBatch(n))
		f.Add(messagesOf(id{1}, b, 1<<20)[0])
		f.Add(appendBatch(nil, b))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := parse(raw); err == nil {
			raw = m.body
		}
		b, err := decode(6, raw)
		if err != nil {
			return
		}
		again, err := decode(6, appendBatch(nil, b))
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Errorf("%+v became %+v, %v", b, again, err)
		}
		if !bytes.Equal(appendBatch(nil, again), appendBatch(nil, b)) {
			t.Error("the same batch is written in two ways")
		}
	})
}
