package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	tryWait    = 1500 * time.Millisecond // for one answer; a stream whose leader was killed has another in less
	largeWait  = time.Second             // longer, for each MiB of a batch
	readWait   = patience                // for a message that must be there
	lookWait   = 500 * time.Millisecond  // for an answer that only makes a reader see more
	pauseFirst = 5 * time.Millisecond    // between two tries without proof; each is twice as long as the one before
	pauseMost  = 250 * time.Millisecond

	payloadMin  = 256 << 10 // of a server: the largest batch is then 541 of the 1000 parts that an atomic batch may have
	payloadLeft = 4 << 10   // of its max_payload, for the headers

	metaFormat = "fairlead-format" // in the stream's metadata

	codeWrongLast  = 10071 // and the same without a number
	codeWrongLast0 = 10164
)

// remote is the stream as its servers show it.
type remote struct {
	nc     *nats.Conn
	js     js.JetStream
	stream js.Stream
	name   string
	limit  int // bytes of a message
}

func subjectOf(stream string) string { return stream + ".batch" }

// Create makes the stream of a journal, with one copy or three. If there is one already, it is left as it is. The
// servers must have sync_interval: always, and their max_payload should be 8 MiB.
func Create(ctx context.Context, nc *nats.Conn, name string, copies int) error {
	j, err := js.New(nc)
	if err == nil {
		_, err = j.CreateStream(ctx, js.StreamConfig{
			Name: name, Subjects: []string{subjectOf(name)}, Storage: js.FileStorage, Replicas: copies,
			Retention: js.LimitsPolicy, Discard: js.DiscardNew, DenyDelete: true, DenyPurge: true, AllowAtomicPublish: true,
			MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1,
			Metadata: map[string]string{metaFormat: strconv.Itoa(format)},
		})
	}
	if err != nil && !errors.Is(err, js.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("create the journal's stream %s: %w", name, err)
	}
	return nil
}

// reach looks at the stream and refuses one that could lose what was appended.
func reach(ctx context.Context, nc *nats.Conn, name string) (*remote, error) {
	r := &remote{nc: nc, name: name, limit: int(nc.MaxPayload()) - payloadLeft}
	if nc.MaxPayload() < payloadMin {
		return nil, fmt.Errorf("the server's max_payload is %d bytes, and a journal needs %d; set it to 8 MiB", nc.MaxPayload(), payloadMin)
	}
	var err error
	if r.js, err = js.New(nc); err != nil {
		return nil, err
	}
	if r.stream, err = ask(ctx, readWait, tryWait,
		func(ctx context.Context) (js.Stream, error) { return r.js.Stream(ctx, name) }); err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	return r, fits(r.stream.CachedInfo().Config)
}

// fits says what is wrong with the settings of a stream.
func fits(c js.StreamConfig) error {
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{c.Storage != js.FileStorage, "it is not stored in files"},
		{c.Retention != js.LimitsPolicy, "its retention is not by limits"},
		{c.MaxMsgs > 0 || c.MaxMsgsPerSubject > 0 || c.MaxAge > 0 || c.AllowMsgTTL, "it discards old messages"},
		{c.MaxBytes > 0 && c.Discard != js.DiscardNew, "it discards old messages when it is full"},
		{!c.DenyDelete || !c.DenyPurge || c.AllowRollup, "its messages can be deleted"},
		{c.NoAck || c.PersistMode == js.AsyncPersistMode, "it acknowledges messages before they are on disk"},
		{c.Mirror != nil || len(c.Sources) > 0, "it copies messages of other streams"},
		{!c.AllowAtomicPublish, "it does not accept atomic batches (allow_atomic)"},
		{
			len(c.Subjects) != 1 || c.Subjects[0] != subjectOf(c.Name) || c.SubjectTransform != nil,
			"its subject is not " + subjectOf(c.Name),
		},
	} {
		if wrong.is {
			return fmt.Errorf("stream %s cannot keep a journal: %s; create it with Fairlead", c.Name, wrong.what)
		}
	}
	has, err := strconv.Atoi(c.Metadata[metaFormat])
	if err != nil || has < 1 {
		return fmt.Errorf("stream %s is not a journal of Fairlead: its metadata has no %s", c.Name, metaFormat)
	}
	if has != format {
		return &OtherFormat{has, format}
	}
	return nil
}

// ask asks for so long. A question to a stream that has no leader is lost, and is not answered when there is one: so each try has
// less time, at first tryWait, then twice as long up to a limit.
func ask[T any](ctx context.Context, wait, most time.Duration, question func(context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for try := tryWait; ; try = min(2*try, most) {
		once, over := context.WithTimeout(ctx, try)
		answer, err = question(once)
		lost := once.Err() != nil && ctx.Err() == nil
		over()
		if !lost || err == nil {
			return answer, err
		}
	}
}

// state asks the stream's leader. A server that leads no longer, and does not know it, gives an old answer.
func (r *remote) state(ctx context.Context, wait time.Duration) (*js.StreamInfo, error) {
	s, err := ask(ctx, wait, tryWait, func(ctx context.Context) (js.Stream, error) { return r.js.Stream(ctx, r.name) })
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// message reads what the leader has at a place; raw is nil where it has nothing.
func (r *remote) message(ctx context.Context, place uint64, wait time.Duration) (raw []byte, err error) {
	m, err := ask(ctx, wait, wait, func(ctx context.Context) (*js.RawStreamMsg, error) { return r.stream.GetMsg(ctx, place) })
	if errors.Is(err, js.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Unproven is the error of an append of which nothing is known: it may be stored, or not, or be stored later.
type Unproven struct {
	Stream string
	Place  uint64
	Waited time.Duration
	Said   error // the last answer
}

func (u *Unproven) Error() string {
	return fmt.Sprintf("no proof came within %s that the batch is message %d of stream %s, and none that it is not (%v); see that most of its servers are reachable, then read the journal's end before trying again", u.Waited.Round(time.Millisecond), u.Place, u.Stream, u.Said)
}

func (u *Unproven) Unwrap() error { return u.Said }

// prove publishes the messages of one append behind the last one until there is proof: stored or in conflict. Any
// other outcome is an error.
func (r *remote) prove(ctx context.Context, name id, messages [][]byte, last uint64, patience time.Duration) (Step, error) {
	a := NewAttempt(name.String(), last)
	said, try := error(nil), 0
	again := retry.Pauses{First: pauseFirst, Most: pauseMost}
	began := time.Now()
	mark := began
	for step := Publish; ; {
		switch step {
		case Stored, Conflict:
			return step, nil
		case Publish:
			if try++; try > 1 {
				again.Rest(ctx)
			}
			if err := ctx.Err(); err != nil {
				return "", &Unproven{r.name, a.Place(), time.Since(began), errors.Join(err, said)}
			}
			if time.Since(began) > patience {
				return "", &Unproven{r.name, a.Place(), time.Since(began), said}
			}
			var answer Answer
			answer, said = r.publish(ctx, fmt.Sprintf("%s-%d", a.MessageID(), try), messages, last)
			now := time.Now()
			step = a.Answered(answer, now.Sub(mark))
			mark = now
		case Reconnect:
			if err := r.nc.ForceReconnect(); err != nil {
				said = errors.Join(said, err)
			}
			step = Look
		case Look:
			found, err := r.idAt(ctx, a.Place())
			if err != nil {
				said = errors.Join(said, err)
			}
			step = a.Read(found)
		}
	}
}

// idAt reads whose message is stored at a place; empty if that is not known.
func (r *remote) idAt(ctx context.Context, place uint64) (string, error) {
	raw, err := r.message(ctx, place, tryWait)
	if err != nil || raw == nil {
		return "", err
	}
	m, err := parse(raw)
	if err != nil {
		return "", &Damage{Place: place, What: err.Error()}
	}
	return m.ID.String(), nil
}

// publish is one try. A positive answer counts only if it names the place.
func (r *remote) publish(ctx context.Context, try string, messages [][]byte, last uint64) (Answer, error) {
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	ctx, cancel := context.WithTimeout(ctx, tryWait+time.Duration(size>>20)*largeWait)
	defer cancel()
	var reply *nats.Msg
	for i, data := range messages {
		m := &nats.Msg{Subject: subjectOf(r.name), Data: data, Header: nats.Header{}}
		if i == 0 {
			m.Header[js.ExpectedLastSeqHeader] = []string{strconv.FormatUint(last, 10)}
		}
		if len(messages) > 1 {
			m.Header["Nats-Batch-Id"], m.Header["Nats-Batch-Sequence"] = []string{try}, []string{strconv.Itoa(i + 1)}
		}
		var err error
		if i < len(messages)-1 {
			err = r.nc.PublishMsg(m)
		} else {
			if i > 0 {
				m.Header["Nats-Batch-Commit"] = []string{"1"}
			}
			reply, err = r.nc.RequestMsgWithContext(ctx, m)
		}
		if err != nil {
			return NoAnswer, err
		}
	}
	var said struct {
		js.PubAck
		Error *js.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &said); err != nil {
		return NoAnswer, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	switch {
	case said.Error != nil && (said.Error.ErrorCode == codeWrongLast || said.Error.ErrorCode == codeWrongLast0):
		return WrongLast, said.Error
	case said.Error != nil:
		return NoAnswer, said.Error
	case said.Stream != r.name || said.Sequence != last+uint64(len(messages)):
		return NoAnswer,
			fmt.Errorf("the server says that the batch ends at message %d of stream %q, not %d of %s", said.Sequence, said.Stream,
				last+uint64(len(messages)), r.name)
	}
	return Acknowledged, nil
}

// Damage is what a server has that cannot be, or has not and must have. Nothing of it is ever read as history.
type Damage struct {
	Place  uint64 // of the message; 0: of none
	Seq    uint64 // of the first change that is concerned, if known
	Server string // whose copy it is, if known
	What   string
	Do     string // what a person can do; the default is to repair the copy
	Err    error
}

func (d *Damage) Error() string { return d.fault() + "; " + d.advice() }

func (d *Damage) fault() string {
	text := "the journal's stream is damaged"
	if d.Place != 0 {
		text += fmt.Sprintf(" at message %d", d.Place)
	}
	if d.Seq != 0 {
		text += fmt.Sprintf(" (change %d)", d.Seq)
	}
	if d.Server != "" {
		text += " on server " + d.Server
	}
	return text + ": " + d.What
}

func (d *Damage) advice() string {
	if d.Do != "" {
		return d.Do
	}
	return "the copy on this host is correct up to there; compare all copies with it, let a server with a correct copy lead, and fetch the damaged copy again"
}

func (d *Damage) Unwrap() error { return d.Err }

// wrong makes a Damage of what a message or the mirror said.
func wrong(place, seq uint64, err error) error {
	if errors.As(err, new(*OtherFormat)) {
		return err
	}
	var broken *journal.Broken
	if errors.As(err, &broken) {
		return &Damage{Place: place, Seq: broken.Seq, What: broken.Why, Err: err}
	}
	return &Damage{Place: place, Seq: seq, What: err.Error(), Err: err}
}

// find returns the place before the batch that holds a change, and the place of its last message.
func (r *remote) find(ctx context.Context, first, last, seq uint64) (before, ends uint64, err error) {
	if seq == 0 {
		return 0, 0, nil
	}
	if last == 0 {
		return 0, 0,
			&Damage{
				Seq: 1, What: fmt.Sprintf("it is empty, and this host has %d changes", seq),
				Do: "if this is the right stream, fill it from the longest mirror that verifies",
			}
	}
	low, high := first, last // the message that holds the change is at low or behind it
	for low < high {
		mid := high - (high-low)/2
		m, err := r.one(ctx, mid)
		if err != nil {
			return 0, 0, err
		}
		if m.First <= seq {
			low = mid
		} else {
			high = mid - 1
		}
	}
	begins, ends, b, err := r.batchAt(ctx, low)
	if err != nil {
		return 0, 0, err
	}
	if b.last() < seq {
		return 0, 0, &Damage{Place: ends + 1, Seq: b.last() + 1, What: fmt.Sprintf("it is missing, and this host has %d changes", seq)}
	}
	return begins - 1, ends, nil
}

// batchAt reads the batch that a message is of, and says where its first and last messages are.
func (r *remote) batchAt(ctx context.Context, place uint64) (begins, ends uint64, b *batch, err error) {
	m, err := r.one(ctx, place)
	if err != nil {
		return 0, 0, nil, err
	}
	var t taker
	begins = place - min(place, uint64(m.Part)) + 1
	ends = begins + uint64(m.Parts) - 1
	for at := begins; at <= ends; at++ {
		raw, err := r.message(ctx, at, readWait)
		switch {
		case err != nil:
			return 0, 0, nil, fmt.Errorf("read message %d of stream %s: %w", at, r.name, err)
		case raw == nil:
			return 0, 0, nil, &Damage{Place: at, Seq: m.First, What: errMissing.Error()}
		}
		if b, err = t.add(raw); err != nil {
			return 0, 0, nil, wrong(at, m.First, err)
		}
	}
	return begins, ends, b, nil
}

// one reads a message that must be there.
func (r *remote) one(ctx context.Context, place uint64) (message, error) {
	raw, err := r.message(ctx, place, readWait)
	if err != nil {
		return message{}, fmt.Errorf("read message %d of stream %s: %w", place, r.name, err)
	}
	if raw == nil {
		return message{}, &Damage{Place: place, What: errMissing.Error()}
	}
	m, err := parse(raw)
	if err != nil {
		return message{}, wrong(place, 0, err)
	}
	return m, nil
}
