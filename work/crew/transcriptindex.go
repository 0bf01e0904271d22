package crew

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

const (
	TranscriptMax     = 1 << 19 // places that are kept; what is older is found by reading the journal
	transcriptNewest  = 1 << 20 // bytes of texts at hand
	speakersOfLineMax = 64      // whom one text may quote; the rest of it is found without a speaker
	speakerBytesMax   = 256     // of a name: a document's has 64 characters at most
	TranscriptIDsMax  = 1 << 17 // sessions and speakers; a text of any other is read to know whose it is
)

// crewSide is what the engine keeps beside the crew: where the journal has what was said,
// and a bell for the hand that writes documents.
type crewSide struct {
	moved chan struct{} // has room for one: a document may have changed
	Said  Transcript
	begun bool // reading of the history has begun; only the loop uses this

	changed *atomic.Uint64 // how often a document changed
	filed   *atomic.Uint64 // so many of those the files have followed, or could not
}

func newCrewSide() crewSide {
	return crewSide{
		changed: new(atomic.Uint64), filed: new(atomic.Uint64), moved: make(chan struct{}, 1),
		Said: Transcript{making: make(chan struct{}, 1), Ids: map[string]uint32{}},
	}
}

// note takes in what was just appended, from a Seq on; before anybody is answered.
func (c *crewSide) note(changes []change.Change, seq uint64) {
	rouse := false
	for i := range changes {
		ch := &changes[i]
		if body := change.As[crew.Body](ch.Body); body != nil && body.Doc != nil {
			rouse = true
		}
		if c.Said.From == 0 {
			continue // no request needed the index yet; the first one reads what is in the journal by then
		}
		if said, is := SpokenIn(ch, seq+uint64(i)); is {
			c.Said.Note(said)
		}
	}
	if rouse {
		c.changed.Add(1)
		select {
		case c.moved <- struct{}{}:
		default:
		}
	}
}

// spoken is one change by which something was said, as the journal has it.
type Spoken struct {
	Seq     uint64
	at      time.Time
	Session string
	By      string
	kind    channel.PostKind // empty: it was said apart from any channel, by this speaker alone
	channel string
	text    string
}

// SpokenIn is what a change says that an agent, a person or the lead said.
func SpokenIn(ch *change.Change, seq uint64) (Spoken, bool) {
	switch p, t := change.As[crew.Body](ch.Body), change.As[channel.Set](ch.Body); {
	case p != nil && p.Words != nil:
		return Spoken{Seq: seq, at: ch.At, Session: p.Words.Session, By: p.Words.Speaker, text: p.Words.Text}, true
	case t != nil && t.Body.Post != nil && t.Text != "":
		channel, _ := strings.CutPrefix(ch.Entity, channel.EntityPrefix)
		return Spoken{
			Seq: seq, at: ch.At, Session: t.Session, By: t.Body.Post.By, kind: t.Body.Post.Kind, channel: channel, text: t.Text,
		}, true
	}
	return Spoken{}, false
}

// quotes says whether a text may hold passages of others: what a lead says in a channel.
func (s *Spoken) quotes() bool { return s.kind != "" && s.kind != channel.OfHuman && isUUID(s.Session) }

// isUUID tells a lead session from others: it is named as documents name it.
func isUUID(session string) bool {
	const shape = "00000000-0000-0000-0000-000000000000"
	if len(session) != len(shape) {
		return false
	}
	for i := range len(shape) {
		c := session[i]
		if shape[i] == '-' && c != '-' || shape[i] == '0' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Speakers returns all possible speakers in a text, including those that have left the crew.
func (s *Spoken) Speakers() []string {
	all := []string{s.By}
	if s.quotes() && strings.Contains(s.text, "]:") {
		for _, passage := range crew.Speakers(s.text, s.By, func(string) bool { return true }) {
			if len(passage.Speaker) <= speakerBytesMax && len(all) < speakersOfLineMax && !slices.Contains(all, passage.Speaker) {
				all = append(all, passage.Speaker)
			}
		}
	}
	return all
}

// Transcript is an index of where the journal holds what was said. The first query reads the past,
// once; every append from then on updates it.
type Transcript struct {
	Mu     sync.Mutex
	Ids    map[string]uint32 // sessions and speakers by number
	Places []place           // in order
	From   uint64            // appends are noted from this Seq on, which the loop sets; 0: no query came yet
	Below  uint64            // what is older than this may be missing: there was too much
	Made   bool              // all that is older than from is in it, too
	Newest []Spoken
	Bytes  int // of them

	making chan struct{} // has room for the one who reads the past
}

// place is one change by which something was said, or one more speaker of it.
type place struct {
	Seq              uint64
	session, Speaker uint32
}

// Note adds one message to the index.
func (t *Transcript) Note(said Spoken) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Places = t.add(t.Places, &said)
	if len(t.Places) > TranscriptMax {
		half := len(t.Places) / 2
		for half < len(t.Places) && t.Places[half].Seq == t.Places[half-1].Seq {
			half++
		}
		t.Below = t.Places[half-1].Seq
		t.Places = slices.Clone(t.Places[half:])
	}
	t.Newest = append(t.Newest, said)
	t.Bytes += len(said.text)
	for t.Bytes > transcriptNewest {
		t.Bytes -= len(t.Newest[0].text)
		t.Newest[0] = Spoken{}
		t.Newest = t.Newest[1:]
	}
}

func (t *Transcript) add(places []place, said *Spoken) []place {
	session := t.Id(said.Session)
	for _, speaker := range said.Speakers() {
		places = append(places, place{Seq: said.Seq, session: session, Speaker: t.Id(speaker)})
	}
	return places
}

// id is the number of a session or of a speaker; anybody: there are too many.
func (t *Transcript) Id(word string) uint32 {
	id, ok := t.Ids[word]
	if !ok && len(t.Ids) < TranscriptIDsMax {
		id = uint32(len(t.Ids)) + 1
		t.Ids[strings.Clone(word)] = id
	}
	return id
}

const Anybody = 0 // matches any speaker

// wanted are the places of a query in its direction, so many at most, and whether there are more
// beyond them. Several of one Seq are one.
func (t *Transcript) wanted(q *TranscriptQuery, after, until uint64, most int) (seqs []uint64, more bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	session, speaker := t.Ids[q.Session], t.Ids[q.Speaker]
	if (q.Session != "" && session == Anybody || q.Speaker != "" && speaker == Anybody) && len(t.Ids) < TranscriptIDsMax {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(t.Places, after+1, placeAt)
	end, _ := slices.BinarySearchFunc(t.Places, until+1, placeAt)
	take := func(p place) bool {
		if q.Session != "" && p.session != session && p.session != Anybody ||
			q.Speaker != "" && p.Speaker != speaker && p.Speaker != Anybody ||
			len(seqs) > 0 && seqs[len(seqs)-1] == p.Seq {
			return true
		}
		if more = len(seqs) >= most; !more {
			seqs = append(seqs, p.Seq)
		}
		return !more
	}
	if q.After != 0 {
		for i := first; i < end && take(t.Places[i]); i++ {
		}
		return seqs, more
	}
	for i := end; i > first && take(t.Places[i-1]); i-- {
	}
	return seqs, more
}

func placeAt(p place, seq uint64) int { return cmp.Compare(p.Seq, seq) }

// atHand gives the texts that need not be read, and the Seqs of the others.
func (t *Transcript) atHand(seqs []uint64) (said []Spoken, rest []uint64) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, seq := range seqs {
		at, is := slices.BinarySearchFunc(t.Newest, seq, func(s Spoken, seq uint64) int { return cmp.Compare(s.Seq, seq) })
		if is {
			said = append(said, t.Newest[at])
		} else {
			rest = append(rest, seq)
		}
	}
	return said, rest
}

func (t *Transcript) isMade() bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.Made
}

// makeTranscript reads the past, once.
func (c *Controller) MakeTranscript(ctx context.Context) error {
	t := &c.CrewState.Said
	if t.isMade() {
		return nil
	}
	select {
	case t.making <- struct{}{}:
		defer func() { <-t.making }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.isMade() {
		return nil
	}
	var until uint64
	var entities []string
	if err := c.loop.View(ctx, func(*team.Team) {
		t.Mu.Lock()
		defer t.Mu.Unlock()
		if t.From == 0 {
			t.From = c.loop.Head() + 1
		}
		until = t.From - 1
		for entity := range c.loop.Entities() {
			if entity == crew.WordsEntity || strings.HasPrefix(entity, channel.EntityPrefix) {
				entities = append(entities, entity)
			}
		}
	}); err != nil {
		return err
	}
	var past []Spoken
	for _, entity := range entities {
		if until == 0 {
			break
		}
		for rec, err := range c.loop.Journal().Read(ctx, journal.Query{Until: until, Entity: entity}) {
			if err != nil {
				return fmt.Errorf("read what was said: %w", err)
			}
			said, is, err := spokenOf(rec)
			if err != nil {
				return err
			}
			if is {
				past = append(past, said.placeOnly())
			}
		}
	}
	slices.SortFunc(past, func(a, b Spoken) int { return cmp.Compare(a.Seq, b.Seq) })
	t.Begin(past)
	return nil
}

// placeOnly is what was said without what need not be kept of it.
func (s *Spoken) placeOnly() Spoken {
	if !s.quotes() {
		s.text = ""
	}
	return *s
}

// begin puts the past before what was noted since.
func (t *Transcript) Begin(past []Spoken) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Made = true
	if t.Below > 0 {
		return // there was too much already: what is older than that is missing, whatever it is
	}
	var places []place
	for i := range past {
		places = t.add(places, &past[i])
	}
	if over := len(places) + len(t.Places) - TranscriptMax; over > 0 {
		over = min(over, len(places))
		for over < len(places) && places[over].Seq == places[over-1].Seq {
			over++
		}
		t.Below = places[over-1].Seq
		places = places[over:]
	}
	t.Places = append(slices.Clone(places), t.Places...)
}

// spokenOf reads what a change says, where it says anything.
func spokenOf(rec journal.Change) (Spoken, bool, error) {
	if rec.Entity != crew.WordsEntity && !bytes.Contains(rec.Data, []byte(`"post":{`)) {
		return Spoken{}, false, nil // an agent only moved, which is most of what happens in a channel
	}
	ch := change.Change{Entity: rec.Entity, At: rec.Time}
	var err error
	if ch.Body, err = team.BodyOf(rec.Data); err != nil {
		return Spoken{}, false, fmt.Errorf("read change %d of %s: %w", rec.Seq, rec.Entity, err)
	}
	said, is := SpokenIn(&ch, rec.Seq)
	return said, is, nil
}

// spokenAt reads what was said by single changes. They come back in the order that they are in
// the journal.
func (c *Controller) spokenAt(ctx context.Context, seqs []uint64) ([]Spoken, error) {
	seqs = slices.Clone(seqs)
	slices.Sort(seqs)
	said, rest := c.CrewState.Said.atHand(seqs)
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n]-rest[n-1] <= journal.ReadGapMax {
			n++
		}
		wanted := rest[:n]
		rest = rest[n:]
		for rec, err := range c.loop.Journal().Read(ctx, journal.Query{After: wanted[0] - 1, Until: wanted[n-1]}) {
			if err != nil {
				return nil, fmt.Errorf("read what was said: %w", err)
			}
			if _, is := slices.BinarySearch(wanted, rec.Seq); !is {
				continue
			}
			one, is, err := spokenOf(rec)
			if err != nil {
				return nil, err
			}
			if is {
				said = append(said, one)
			}
		}
	}
	slices.SortFunc(said, func(a, b Spoken) int { return cmp.Compare(a.Seq, b.Seq) })
	return said, nil
}

// makeTranscriptBeside has the past read for the next question; it runs in the loop.
func (c *Controller) makeTranscriptBeside() {
	if c.CrewState.begun {
		return
	}
	c.CrewState.begun = true
	c.loop.Go(func(ctx context.Context) {
		if err := c.MakeTranscript(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, loop.ErrClosed) {
			c.log.Warn("what was said could not be read; it is read again at the next request", "error", err)
		}
	})
}
