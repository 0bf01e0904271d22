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
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/fairlead-dev/fairlead/internal/clip"
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

const (
	wordBytesMax  = 64 // of a folded word in the index: longer ones are hashes and encoded data; their beginning is enough
	prefixRuneMin = 3  // a shorter beginning would match a large part of the index
)

// token is a word of a text: a run of letters and digits, or a single character of a script
// without spaces.
type token struct {
	start, end int    // bytes in the text
	folded     string // at most wordBytesMax
	single     bool   // a character of a script without spaces
}

// unspaced are scripts in which a word is not what is between spaces, or in which suffixes are
// written with it.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
	unicode.Bopomofo, unicode.Yi, unicode.Tibetan,
}

// folding are scripts whose accents are dropped. In others, marks make another letter.
var folding = []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic}

func isUnspaced(r rune) bool { return r >= 0xe00 && unicode.In(r, unspaced...) }

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}

// tokens splits a text and calls each for every token in order, until it returns false. The tokens
// do not overlap.
func tokens(text string, each func(token) bool) {
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case isUnspaced(r):
			end := i + size
			for end < len(text) { // combining marks belong to their letter
				mark, n := utf8.DecodeRuneInString(text[end:])
				if !unicode.Is(unicode.M, mark) {
					break
				}
				end += n
			}
			if !each(token{start: i, end: end, folded: fold(text[i:end]), single: true}) {
				return
			}
			i = end
		case isWord(r):
			end := i + size
			for end < len(text) {
				r, n := rune(text[end]), 1
				if r >= utf8.RuneSelf {
					r, n = utf8.DecodeRuneInString(text[end:])
				}
				if !isWord(r) || isUnspaced(r) {
					break
				}
				end += n
			}
			if folded := fold(text[i:end]); folded != "" && !each(token{start: i, end: end, folded: folded}) {
				return
			}
			i = end
		default:
			i += size
		}
	}
}

// fold makes the form in which a word is compared.
func fold(word string) string {
	if ascii(word) {
		return strings.ToLower(word[:min(len(word), wordBytesMax)])
	}
	var b strings.Builder
	for _, r := range norm.NFKC.String(clip.To(word, 4*wordBytesMax)) {
		if unicode.In(r, folding...) {
			for _, part := range norm.NFD.String(string(r)) {
				r = part // the letter; its marks follow
				break
			}
		}
		if unicode.Is(unicode.Mn, r) && b.Len() > 0 && lastIsFolding(b.String()) {
			continue
		}
		r = unicode.ToLower(r)
		if r == 'ς' {
			r = 'σ'
		}
		if !isWord(r) { // some forms become several characters, with a space or a point in between
			continue
		}
		if b.Len()+utf8.RuneLen(r) > wordBytesMax {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

func lastIsFolding(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.In(r, folding...)
}

// parts are the parts of a word that is written in camel case, with their place in it: retry and
// Upload in retryUpload, HTTP and Server in HTTPServer.
func parts(word string, each func(start, end int)) {
	start, n := 0, 0
	emit := func(end int) {
		if end > start {
			each(start, end)
			n++
		}
		start = end
	}
	var before rune
	for i, r := range word {
		next, _ := utf8.DecodeRuneInString(word[i+utf8.RuneLen(r):])
		switch {
		case i == 0:
		case unicode.IsUpper(r) && !unicode.IsUpper(before), unicode.IsUpper(r) && unicode.IsLower(next):
			emit(i)
		}
		before = r
	}
	if n > 0 {
		emit(len(word))
	}
}

// hasCase reports whether a word can have parts: it has an upper-case letter after the first one.
func hasCase(word string) bool {
	for i := range len(word) {
		if c := word[i]; c >= utf8.RuneSelf || i > 0 && 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

// Pairs of words that follow each other are in the index too, as one of pairCodes codes: a phrase of common words is then looked for in
// few passages. With fewer codes more passages are read in vain; with more, the index is larger. A code is a character of
// the private planes, which no text has as a word.
const (
	pairCodes = 1 << 16
	pairFirst = 0xf0000
)

// pairCode is the code of two words that follow each other. Of the second word only the beginning counts, because a
// query may have only that.
func pairCode(first, second string) rune {
	const offset, prime = 2166136261, 16777619 // FNV-1a: it must stay the same from one version to the next
	sum := uint32(offset)
	for i := range len(first) {
		sum = (sum ^ uint32(first[i])) * prime
	}
	sum = (sum ^ ' ') * prime
	runes := 0
	for i := range second {
		if runes++; runes > prefixRuneMin {
			second = second[:i]
			break
		}
	}
	for i := range len(second) {
		sum = (sum ^ uint32(second[i])) * prime
	}
	return pairFirst + rune((sum^sum>>16)%pairCodes)
}

// hasPairCode reports whether the index has a code for two tokens: characters of scripts without spaces have their pairs as they are.
func hasPairCode(a, b token) bool { return !a.single || !b.single }

// termList collects the entries of a text in the FTS5 table, each once, joined by spaces.
type termList struct {
	words map[string]struct{}
	pairs [pairCodes / 64]uint64
	buf   []byte
}

// of returns the entries of a text. They are valid until the next call.
func (l *termList) of(text string) []byte {
	if l.words == nil {
		l.words = map[string]struct{}{}
	}
	clear(l.words)
	clear(l.pairs[:])
	l.buf = l.buf[:0]
	add := func(term string) {
		if _, known := l.words[term]; known || term == "" {
			return
		}
		l.words[term] = struct{}{}
		l.buf = append(append(l.buf, term...), ' ')
	}
	var before token
	tokens(text, func(t token) bool {
		add(t.folded)
		switch {
		case t.single:
			if before.single && before.end == t.start {
				add(before.folded + t.folded)
			}
		case hasCase(text[t.start:t.end]):
			parts(text[t.start:t.end], func(start, end int) { add(fold(text[t.start+start : t.start+end])) })
		}
		if before.folded != "" && hasPairCode(before, t) {
			code := pairCode(before.folded, t.folded)
			if bit := uint64(1) << (code % 64); l.pairs[(code-pairFirst)/64]&bit == 0 {
				l.pairs[(code-pairFirst)/64] |= bit
				l.buf = append(utf8.AppendRune(l.buf, code), ' ')
			}
		}
		before = t
		return true
	})
	return l.buf
}
