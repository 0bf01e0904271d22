package search

import (
	"bytes"
	"compress/flate"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"
)

// PassageBytes is how much consecutive output becomes one passage. A longer message is one passage
// too, up to PassageBytesMax; the rest of it is another one.
const (
	PassageBytes    = 2 << 10
	PassageBytesMax = 16 << 10
)

// Kinds of places.
const (
	Output   = "output"   // what an agent's program wrote
	Channel  = "channel"  // a message in a channel
	Crew     = "crew"     // what was said in a lead session
	Question = "question" // what an agent asked, and the answer
	Run      = "run"      // a run and its steps
	Task     = "task"     // a task: its text, comments, findings
	Dispatch = "dispatch" // a conversation of a dispatch
	History  = "history"  // a change of an agent or of the team
)

// Kinds are all kinds, in the order in which they are listed.
var Kinds = []string{Output, Channel, Crew, Question, Run, Task, Dispatch, History}

// Place is where something was said, done, asked or changed.
type Place struct {
	Kind   string
	Entity string // the session, the channel, the speaker, the question, the run, the task, or the agent
	Part   string // the step of a run, or the part of a task; empty: all of it
	Agent  string // the agent concerned; empty: none
}

// Passage is a text of one place.
type Passage struct {
	Place
	Time  time.Time
	At    int64 // the Seq of the change; of output, the offset of its first byte; FromFile
	Text  string
	Lines []Line // where the lines of output begin; none: all of it is at At
}

// FromFile is the At of a passage whose text is in a file that may change: see Batch.Replace.
const FromFile = -1

// Line is the start of a line.
type Line struct {
	Text int   // in the text of the passage
	At   int64 // in the output
}

// packLines writes the lines as differences.
func (p *Passage) packLines() []byte {
	b := []byte{}
	text, at := 0, p.At
	for _, l := range p.Lines {
		b = binary.AppendVarint(b, int64(l.Text-text))
		b = binary.AppendVarint(b, l.At-at)
		text, at = l.Text, l.At
	}
	return b
}

var errPassage = errors.New("a passage of the index is damaged")

// lineAt is the offset of the line that holds a byte of the text.
func lineAt(packed []byte, at int64, where int) (int64, error) {
	text, found := int64(0), at
	for len(packed) > 0 {
		d, n := binary.Varint(packed)
		if n <= 0 {
			return 0, errPassage
		}
		o, m := binary.Varint(packed[n:])
		if m <= 0 {
			return 0, errPassage
		}
		packed = packed[n+m:]
		if text += d; text > int64(where) {
			break
		}
		at += o
		found = at
	}
	return found, nil
}

// wordList is what the writer keeps from one passage to the next. One goroutine uses it.
type wordList struct {
	places map[Place]int64
	list   termList
	packed bytes.Buffer
	flate  *flate.Writer
}

const placesKept = 1 << 14 // ids of places that are remembered

func (w *wordList) forget() { w.places = nil }

// place returns the id of a place, and makes it.
func (w *wordList) place(tx *sql.Tx, p Place) (id int64, err error) {
	if id, ok := w.places[p]; ok {
		return id, nil
	}
	args := []any{p.Kind, p.Entity, p.Part, p.Agent}
	if _, err := tx.Exec("INSERT OR IGNORE INTO place (kind, entity, part, agent) VALUES (?, ?, ?, ?)", args...); err != nil {
		return 0, err
	}
	if err := tx.QueryRow("SELECT id FROM place WHERE kind = ? AND entity = ? AND part = ? AND agent = ?", args...).Scan(&id); err != nil {
		return 0, err
	}
	if w.places == nil || len(w.places) >= placesKept {
		w.places = map[Place]int64{}
	}
	w.places[p] = id
	return id, nil
}

// terms are the entries of a passage for the FTS5 table.
func (w *wordList) terms(p *Passage) string {
	b := append(append(w.list.of(p.Text), kindTerm(p.Kind)...), ' ')
	if p.Agent != "" {
		b = append(b, agentTerm(p.Agent)...)
	}
	return string(b)
}

// pack compresses a text.
func (w *wordList) pack(text string) ([]byte, error) {
	w.packed.Reset()
	if w.flate == nil {
		var err error
		if w.flate, err = flate.NewWriter(&w.packed, flate.BestSpeed); err != nil {
			return nil, err
		}
	} else {
		w.flate.Reset(&w.packed)
	}
	if _, err := w.flate.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := w.flate.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(w.packed.Bytes()), nil
}

// unpacker reads texts again.
type unpacker struct {
	in  bytes.Reader
	out io.ReadCloser
}

func (u *unpacker) text(packed []byte) (string, error) {
	u.in.Reset(packed)
	if u.out == nil {
		u.out = flate.NewReader(&u.in)
	} else if err := u.out.(flate.Resetter).Reset(&u.in, nil); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(u.out, 2*PassageBytesMax))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPassage, err)
	}
	return string(text), nil
}

// sorted sorts spans by place.
func sorted(all []span) []span {
	sort.Slice(all, func(i, k int) bool { return all[i].start < all[k].start })
	return all
}
