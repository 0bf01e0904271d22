package journal

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Limits that every backend keeps. At a limit Append refuses and says so.
const (
	BatchChangesMax = 1000     // changes in a batch: the limit of an atomic batch in JetStream
	BatchBytesMax   = 64 << 20 // data of one batch together: it is held in memory and synced in one go
	// data of one change: one agent's output must not make the history unreadable; also JetStream's usual message
	DataBytesMax     = 1 << 20
	EntityBytesMax   = 128      // MACHINE/NAME: names are for people, and become subjects and file names
	WordBytesMax     = 256      // machine, row, from, to, trigger, actor's kind and id, each: they are words, not texts
	SnapshotBytesMax = 64 << 20 // a snapshot is read whole into memory at each start
	SnapshotsKept    = 3        // the newest and two to fall back on where it is damaged or of an unknown format
)

// timeMin and timeMax bound what 64 bits of nanoseconds can say (1677 to 2262).
var timeMin, timeMax = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// ErrClosed is what every method gives after Close, and what Watch ends with when
// the journal is closed under it.
var ErrClosed = errors.New("the journal is closed: open it again to go on")

// ErrGone is what Append gives where the file was taken away, or another put in its place,
// while it was open: what is written then is kept nowhere.
var ErrGone = errors.New("the journal's file was taken away while it was in use, and what it held with it")

// Refused is the answer to a batch or snapshot that no backend takes. Nothing was stored;
// the same again will be refused again.
type Refused struct {
	What string // what it is about: "change 3 (control/coder)", "batch", "snapshot"
	Why  string // the limit, and what to do instead
}

func (r *Refused) Error() string { return "append to journal: " + r.What + ": " + r.Why }

// Check returns a *Refused if one of the changes exceeds a limit, and marks them as checked if none does: Append
// does not check a marked change again. A caller with several decisions in one batch so learns which one is refused.
func Check(changes []Change) error {
	for i := range changes {
		if why := faultOf(&changes[i]); why != "" {
			return &Refused{fmt.Sprintf("change %d (%q)", i, shown(changes[i].Entity)), why}
		}
	}
	for i := range changes {
		changes[i].checked = true
	}
	return nil
}

// CheckBatch returns a *Refused if a batch or its expectations exceed a limit. A backend calls it before
// anything else. An empty batch is allowed: it stores nothing, and Append then only checks the
// expectations. Data is not parsed: the caller has just encoded it, and parsing would add a tenth to
// the cost of an event.
func CheckBatch(batch []Change, expect []Expect) error {
	if len(batch) > BatchChangesMax {
		return &Refused{
			"batch",
			fmt.Sprintf("%d changes, more than %d: split it where its parts make sense alone", len(batch), BatchChangesMax),
		}
	}
	if len(expect) > BatchChangesMax {
		return &Refused{
			"batch",
			fmt.Sprintf("%d expectations, more than %d: expect only what the decision rests on", len(expect), BatchChangesMax),
		}
	}
	total := 0
	for i := range batch {
		if !batch[i].checked {
			if why := faultOf(&batch[i]); why != "" {
				return &Refused{fmt.Sprintf("change %d (%q)", i, shown(batch[i].Entity)), why}
			}
		}
		total += len(batch[i].Data)
	}
	if total > BatchBytesMax {
		return &Refused{"batch", fmt.Sprintf("%d bytes of data, more than %d: split it", total, BatchBytesMax)}
	}
	for _, e := range expect {
		if e.Entity == Whole {
			continue
		}
		if why := faultOfEntity(e.Entity); why != "" {
			return &Refused{fmt.Sprintf("expectation (%q)", shown(e.Entity)), why}
		}
	}
	return nil
}

// CheckSnapshot gives a *Refused where a snapshot breaks a limit. Whether it
// belongs to this history is for the backend to say.
func CheckSnapshot(s *Snapshot) error {
	switch {
	case s.Seq == 0:
		return &Refused{"snapshot", "seq 0: there is no state before the first change to keep"}
	case len(s.Data) > SnapshotBytesMax:
		return &Refused{"snapshot", fmt.Sprintf("%d bytes, more than %d: keep less in it", len(s.Data), SnapshotBytesMax)}
	}
	if why := faultOfWord("format", s.Format); why != "" {
		return &Refused{"snapshot", why}
	}
	return nil
}

func faultOf(c *Change) string {
	if why := faultOfEntity(c.Entity); why != "" {
		return why
	}
	words := [...]struct{ name, text string }{
		{"machine", c.Machine},
		{"row", c.Row},
		{"from", c.From},
		{"to", c.To},
		{"trigger", c.Trigger},
		{"actor.kind", c.Actor.Kind},
		{"actor.id", c.Actor.ID},
	}
	for _, w := range words {
		if why := faultOfWord(w.name, w.text); why != "" {
			return why
		}
	}
	switch {
	case c.Time.IsZero():
		return "no time: the appender gives the time, the journal never asks a clock"
	case c.Time.Before(timeMin) || c.Time.After(timeMax):
		return fmt.Sprintf("time %s does not fit: it must lie between 1677 and 2262", c.Time.Format(time.RFC3339))
	case len(c.Data) > DataBytesMax:
		return fmt.Sprintf("data has %d bytes, more than %d: keep big things in a file and put its name and hash here", len(c.Data),
			DataBytesMax)
	}
	return ""
}

// faultOfEntity wants KIND/NAME, or KIND/NAME/PART for a part of a thing: a lower-case word,
// and names of letters, digits, dot, minus and underscore that start with no dot or minus.
// Such a name is safe as a subject, a file name and in a log.
func faultOfEntity(s string) string {
	const want = "want KIND/NAME, as in control/coder, or KIND/NAME/PART, as in run/f8c1/build: a-z, then names of letters, digits, . - _"
	if s == "" {
		return "no entity: " + want
	}
	if len(s) > EntityBytesMax {
		return fmt.Sprintf("entity has %d bytes, more than %d", len(s), EntityBytesMax)
	}
	slash, parts := -1, 0
	for i := range len(s) {
		b := s[i]
		lower, alnum := b >= 'a' && b <= 'z', b >= '0' && b <= '9' || b >= 'A' && b <= 'Z'
		switch {
		case lower, alnum && slash >= 0:
		case b == '/' && i > slash+1 && parts < 2:
			slash, parts = i, parts+1
		case slash < 0 && i > 0 && (b == '_' || b == '-'):
		case slash >= 0 && (b == '_' || i > slash+1 && (b == '.' || b == '-')):
		default:
			return fmt.Sprintf("entity %q has %q at byte %d: %s", shown(s), b, i, want)
		}
	}
	if slash < 0 || slash == len(s)-1 {
		return fmt.Sprintf("entity %q: %s", shown(s), want)
	}
	return ""
}

func faultOfWord(name, s string) string {
	if len(s) > WordBytesMax {
		return fmt.Sprintf("%s has %d bytes, more than %d: long texts go into data", name, len(s), WordBytesMax)
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return fmt.Sprintf("%s has a control character at byte %d: such texts go into data", name, i)
		}
	}
	if !utf8.ValidString(s) {
		return name + " is not UTF-8: such texts go into data, encoded"
	}
	return ""
}

// shown keeps a hostile name from filling an error.
func shown(entity string) string { return clip.Text(entity, 40) } // enough to recognise it

// ForeignSnapshot is the refusal of a snapshot whose hash is not that of its Seq here.
func ForeignSnapshot(seq uint64) error {
	return &Refused{"snapshot", fmt.Sprintf("its hash is not that of change %d here: it belongs to another history", seq)}
}
