package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	wordsOfLead       = "presence/words" // what is said in lead sessions, apart from channels
	transcriptMax     = 1 << 19          // places that are kept; what is older is found by reading the journal
	transcriptNewest  = 1 << 20          // bytes of texts at hand
	speakersOfLineMax = 64               // whom one text may quote; the rest of it is found without a speaker
	speakerBytesMax   = 256              // of a name: a document's has 64 characters at most
	transcriptIDsMax  = 1 << 17          // sessions and speakers; a text of any other is read to know whose it is
)

// crewSide is what the engine keeps beside the crew: where what was said stands in the journal,
// and a bell for the hand that writes documents.
type crewSide struct {
	moved chan struct{} // has room for one: a document may have changed
	said  transcript
	begun bool // somebody has begun to read the past; the loop's own

	changed *atomic.Uint64 // how often a document changed
	filed   *atomic.Uint64 // so many of those the files have followed, or could not
}

func newCrewSide() crewSide {
	return crewSide{changed: new(atomic.Uint64), filed: new(atomic.Uint64), moved: make(chan struct{}, 1), said: transcript{making: make(chan struct{}, 1), ids: map[string]uint32{}}}
}

// note takes in what was just appended, from a Seq on; before anybody is answered.
func (c *crewSide) note(changes []team.Change, seq uint64) {
	rouse := false
	for i := range changes {
		ch := &changes[i]
		rouse = rouse || ch.Body.Presence != nil && ch.Body.Presence.Doc != nil
		if said, is := spokenIn(ch, seq+uint64(i)); is {
			c.said.note(said)
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

// spoken is one change by which something was said, as it stands in the journal.
type spoken struct {
	seq     uint64
	at      time.Time
	session string
	by      string
	kind    channel.PostKind // empty: it was said apart from any channel, by this speaker alone
	channel string
	text    string
}

func spokenIn(ch *team.Change, seq uint64) (spoken, bool) {
	switch p, t := ch.Body.Presence, ch.Body.Turn; {
	case p != nil && p.Words != nil:
		return spoken{seq: seq, at: ch.At, session: p.Words.Session, by: p.Words.Speaker, text: p.Words.Text}, true
	case t != nil && t.Body.Post != nil && t.Text != "":
		channel, _ := strings.CutPrefix(ch.Entity, channelPrefix)
		return spoken{
			seq: seq, at: ch.At, session: t.Session, by: t.Body.Post.By, kind: t.Body.Post.Kind, channel: channel, text: t.Text,
		}, true
	}
	return spoken{}, false
}

// quotes says whether a text may hold passages of others: what a lead says in a channel.
func (s *spoken) quotes() bool { return s.kind != "" && s.kind != channel.OfHuman && isUUID(s.session) }

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

// speakers are all that may have spoken in a text, whoever is of the team by then.
func (s *spoken) speakers() []string {
	all := []string{s.by}
	if s.quotes() && strings.Contains(s.text, "]:") {
		for _, passage := range crew.Speakers(s.text, s.by, func(string) bool { return true }) {
			if len(passage.Speaker) <= speakerBytesMax && len(all) < speakersOfLineMax && !slices.Contains(all, passage.Speaker) {
				all = append(all, passage.Speaker)
			}
		}
	}
	return all
}

// transcript says where in the journal everything stands that was said. Its past is read once,
// when somebody asks for it; it is kept up with every append from the start on.
type transcript struct {
	mu     sync.Mutex
	ids    map[string]uint32 // sessions and speakers by number
	places []place           // in order
	from   uint64            // appends are noted from this Seq on; 0: there was none yet
	below  uint64            // what is older than this may be missing: there was too much
	made   bool              // all that is older than from is in it, too
	newest []spoken
	bytes  int // of them

	making chan struct{} // has room for the one who reads the past
}

// place is one change by which something was said, or one more speaker of it.
type place struct {
	seq              uint64
	session, speaker uint32
}

func (t *transcript) note(said spoken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from == 0 {
		t.from = said.seq
	}
	t.places = t.add(t.places, &said)
	if len(t.places) > transcriptMax {
		half := len(t.places) / 2
		for half < len(t.places) && t.places[half].seq == t.places[half-1].seq {
			half++
		}
		t.below = t.places[half-1].seq
		t.places = slices.Clone(t.places[half:])
	}
	t.newest = append(t.newest, said)
	t.bytes += len(said.text)
	for t.bytes > transcriptNewest {
		t.bytes -= len(t.newest[0].text)
		t.newest[0] = spoken{}
		t.newest = t.newest[1:]
	}
}

func (t *transcript) add(places []place, said *spoken) []place {
	session := t.id(said.session)
	for _, speaker := range said.speakers() {
		places = append(places, place{seq: said.seq, session: session, speaker: t.id(speaker)})
	}
	return places
}

// id is the number of a session or of a speaker; anybody: there are too many.
func (t *transcript) id(word string) uint32 {
	id, ok := t.ids[word]
	if !ok && len(t.ids) < transcriptIDsMax {
		id = uint32(len(t.ids)) + 1
		t.ids[strings.Clone(word)] = id
	}
	return id
}

const anybody = 0 // a place of it may be of whoever is looked for

// wanted are the places of a query in its direction, so many at most, and whether there are more
// beyond them. Several of one Seq are one.
func (t *transcript) wanted(q *TranscriptQuery, after, until uint64, most int) (seqs []uint64, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	session, speaker := t.ids[q.Session], t.ids[q.Speaker]
	if (q.Session != "" && session == anybody || q.Speaker != "" && speaker == anybody) && len(t.ids) < transcriptIDsMax {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(t.places, after+1, placeAt)
	end, _ := slices.BinarySearchFunc(t.places, until+1, placeAt)
	take := func(p place) bool {
		if q.Session != "" && p.session != session && p.session != anybody || q.Speaker != "" && p.speaker != speaker && p.speaker != anybody ||
			len(seqs) > 0 && seqs[len(seqs)-1] == p.seq {
			return true
		}
		if more = len(seqs) >= most; !more {
			seqs = append(seqs, p.seq)
		}
		return !more
	}
	if q.After != 0 {
		for i := first; i < end && take(t.places[i]); i++ {
		}
		return seqs, more
	}
	for i := end; i > first && take(t.places[i-1]); i-- {
	}
	return seqs, more
}

func placeAt(p place, seq uint64) int { return cmp.Compare(p.seq, seq) }

// atHand gives the texts that need not be read, and the Seqs of the others.
func (t *transcript) atHand(seqs []uint64) (said []spoken, rest []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, seq := range seqs {
		at, is := slices.BinarySearchFunc(t.newest, seq, func(s spoken, seq uint64) int { return cmp.Compare(s.seq, seq) })
		if is {
			said = append(said, t.newest[at])
		} else {
			rest = append(rest, seq)
		}
	}
	return said, rest
}

func (t *transcript) isMade() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made
}

// makeTranscript reads the past, once.
func (e *Engine) makeTranscript(ctx context.Context) error {
	t := &e.crew.said
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
	if err := e.View(ctx, func(*team.Team) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.from == 0 {
			t.from = e.Head() + 1
		}
		until = t.from - 1
		for entity := range e.Entities() {
			if entity == wordsOfLead || strings.HasPrefix(entity, channelPrefix) {
				entities = append(entities, entity)
			}
		}
	}); err != nil {
		return err
	}
	var past []spoken
	for _, entity := range entities {
		if until == 0 {
			break
		}
		for rec, err := range e.Journal().Read(ctx, journal.Query{Until: until, Entity: entity}) {
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
	slices.SortFunc(past, func(a, b spoken) int { return cmp.Compare(a.seq, b.seq) })
	t.begin(past)
	return nil
}

// placeOnly is what was said without what need not be kept of it.
func (s *spoken) placeOnly() spoken {
	if !s.quotes() {
		s.text = ""
	}
	return *s
}

// begin puts the past before what was noted since.
func (t *transcript) begin(past []spoken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = true
	if t.below > 0 {
		return // there was too much already: what is older than that is missing, whatever it is
	}
	var places []place
	for i := range past {
		places = t.add(places, &past[i])
	}
	if over := len(places) + len(t.places) - transcriptMax; over > 0 {
		over = min(over, len(places))
		for over < len(places) && places[over].seq == places[over-1].seq {
			over++
		}
		t.below = places[over-1].seq
		places = places[over:]
	}
	t.places = append(slices.Clone(places), t.places...)
}

// spokenOf reads what a change says, where it says anything.
func spokenOf(rec journal.Change) (spoken, bool, error) {
	if rec.Entity != wordsOfLead && !bytes.Contains(rec.Data, []byte(`"post":{`)) {
		return spoken{}, false, nil // an agent only moved, which is most of what happens in a channel
	}
	ch := team.Change{Entity: rec.Entity, At: rec.Time}
	if err := json.Unmarshal(rec.Data, &ch.Body); err != nil {
		return spoken{}, false, fmt.Errorf("read change %d of %s: %w", rec.Seq, rec.Entity, err)
	}
	said, is := spokenIn(&ch, rec.Seq)
	return said, is, nil
}

// spokenAt reads what was said by single changes. They come back in the order that they are in
// the journal.
func (e *Engine) spokenAt(ctx context.Context, seqs []uint64) ([]spoken, error) {
	seqs = slices.Clone(seqs)
	slices.Sort(seqs)
	said, rest := e.crew.said.atHand(seqs)
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n]-rest[n-1] <= readGapMax {
			n++
		}
		wanted := rest[:n]
		rest = rest[n:]
		for rec, err := range e.Journal().Read(ctx, journal.Query{After: wanted[0] - 1, Until: wanted[n-1]}) {
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
	slices.SortFunc(said, func(a, b spoken) int { return cmp.Compare(a.seq, b.seq) })
	return said, nil
}

// makeTranscriptBeside has the past read for the next question; it runs in the loop.
func (e *Engine) makeTranscriptBeside() {
	if e.crew.begun {
		return
	}
	e.crew.begun = true
	e.Go(func(ctx context.Context) {
		if err := e.makeTranscript(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, loop.ErrClosed) {
			e.log.Warn("what was said could not be read; it is tried again when somebody asks for it", "error", err)
		}
	})
}
