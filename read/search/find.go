package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	LimitDefault = 20
	LimitMax     = 100
	timeMax      = 2 * time.Second // of a search: then it answers with what it has found
	scanMax      = 50_000          // passages of which the text is read: a phrase of common words may be in none of them

	snippetRunes = 240 // of a result: two or three lines
	snippetLead  = 60  // of them before the first match
	matchesMax   = 64  // of a result
)

// Query is a search.
type Query struct {
	Text   string
	Kinds  []string  // only these; empty: all
	Agent  string    // only of this agent; empty: of all
	Since  time.Time // only what is not older; zero: all
	Limit  int       // results; 0: LimitDefault
	Before int64     // Next of the page before; 0: the newest
}

// Found is one passage that has all words.
type Found struct {
	Place
	Time    time.Time
	At      int64    // the Seq of the change; of output, the offset of the line with the first match
	Snippet string   // a part of the text, in one line
	Matches [][2]int // in the snippet: first character and the one after the last, counted in characters
}

// Page is an answer.
type Page struct {
	Found   []Found
	Next    int64         // for the next page; 0: this was the last one
	Stopped string        // why the search ended before it had seen everything; empty: it did not
	Took    time.Duration //
	Position
}

// BadQuery is a query that is refused, with a reason for people.
type BadQuery struct{ Why string }

func (b *BadQuery) Error() string { return b.Why }

// Find searches the index.
func (x *Index) Find(ctx context.Context, q Query) (page Page, err error) {
	began := time.Now()
	words, err := parse(q.Text)
	if err != nil {
		return page, &BadQuery{err.Error()}
	}
	for _, kind := range q.Kinds {
		if !slices.Contains(Kinds, kind) {
			return page, &BadQuery{fmt.Sprintf("%q is no kind; there are: %s", kind, strings.Join(Kinds, ", "))}
		}
	}
	q.Limit = cmp.Or(min(max(q.Limit, 0), LimitMax), LimitDefault)
	limited, cancel := context.WithTimeout(ctx, timeMax)
	defer cancel()
	err = x.using(func() error {
		if page.Position, err = position(limited, x.read); err != nil {
			return err
		}
		return x.find(limited, q, words, &page)
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil { // whatever SQLite calls it
		page.Stopped, err = fmt.Sprintf("the search took %s; add a word, or search a shorter time", timeMax), nil
	}
	page.Took = time.Since(began)
	return page, err
}

// find reads passages, the newest first.
func (x *Index) find(ctx context.Context, q Query, words query, page *Page) error {
	var filters []string
	if len(q.Kinds) > 0 {
		filters = append(filters, anyOf(q.Kinds, kindTerm))
	}
	if q.Agent != "" {
		filters = append(filters, quoted(agentTerm(q.Agent)))
	}
	first, since := int64(0), msOf(q.Since)
	if since > 0 {
		var least sql.NullInt64
		if err := x.read.QueryRowContext(ctx, "SELECT min(id) FROM passage WHERE time >= ?", since).Scan(&least); err != nil {
			return err
		}
		if !least.Valid {
			return nil
		}
		first = least.Int64
	}
	oldest, newest, err := shards(ctx, x.read)
	if err != nil {
		return err
	}
	s := finder{
		x: x, q: q, words: words, match: words.match(filters...), since: since, first: first,
		before: cmp.Or(max(q.Before, 0), math.MaxInt64), page: page,
	}
	if all := words.terms(); len(all)+len(filters) > 1 {
		s.rare = append(filters, slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
	}
	for n := min(newest, (s.before-1)/shardPassages); n >= max(oldest, first/shardPassages) && !s.full; n-- {
		if err := s.shard(ctx, n); err != nil {
			page.Next = s.last // if the time was up, the next search goes on there
			return err
		}
	}
	return nil
}

// finder is one search on its way through the shards.
type finder struct {
	x     *Index
	q     Query
	words query
	match string   // for FTS5
	rare  []string // terms that a shard probably does not have
	since int64    // ms

	first, before int64 // ids to search

	unpack  unpacker
	scanned int
	last    int64 // the id that was looked at last
	page    *Page
	full    bool // the page is, or a limit is reached
}

// shard searches one shard.
func (s *finder) shard(ctx context.Context, n int64) error {
	name := wordsTable(n)
	if has, err := s.mayHave(ctx, name); err != nil || !has {
		return err
	}
	//nolint:gosec // the name of the table is made of a number
	text := `SELECT p.id, p.time, p.at, p.text, p.lines, e.kind, e.entity, e.part, e.agent
		FROM ` + name + ` w JOIN passage p ON p.id = w.rowid JOIN place e ON e.id = p.place
		WHERE ` + name + ` MATCH ? AND w.rowid >= ? AND w.rowid < ? ORDER BY w.rowid DESC`
	rows, err := s.x.read.QueryContext(ctx, text, s.match, s.first, s.before)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() && !s.full {
		if err := s.take(rows); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// mayHave looks for the longest word and for the filters alone. FTS5 collects all words with a prefix
// before it looks whether the other words are there at all; in most shards, a rare word is not.
func (s *finder) mayHave(ctx context.Context, name string) (bool, error) {
	for _, term := range s.rare {
		var id int64
		err := s.x.read.QueryRowContext(ctx, "SELECT rowid FROM "+name+" WHERE "+name+" MATCH ? LIMIT 1", term).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// take looks at a passage that has the words.
func (s *finder) take(rows *sql.Rows) error {
	var f Found
	var id, at int64
	var text, lines sql.RawBytes
	if err := rows.Scan(&id, &at, &f.At, &text, &lines, &f.Kind, &f.Entity, &f.Part, &f.Agent); err != nil {
		return err
	}
	s.last = id
	switch {
	case len(s.page.Found) >= s.q.Limit:
		s.page.Next, s.full = id+1, true
		return nil
	case s.scanned >= scanMax:
		s.page.Stopped = fmt.Sprintf("the search has read %d passages; add a word, or search a shorter time", scanMax)
		s.page.Next, s.full = id+1, true
		return nil
	case at < s.since:
		return nil
	}
	s.scanned++
	f.Time = timeOf(at)
	whole, err := s.unpack.text(text)
	if err != nil {
		return err
	}
	if !s.words.possible(whole) {
		return nil
	}
	spans := s.words.find(whole, matchesMax)
	if spans == nil {
		return nil // the words of a phrase are there, but not the phrase
	}
	var from int
	f.Snippet, f.Matches, from = snippet(whole, sorted(spans), len(s.words))
	if f.Kind == Output {
		if f.At, err = lineAt(lines, f.At, from); err != nil {
			return err
		}
	}
	s.page.Found = append(s.page.Found, f)
	return nil
}

// snippet is the part of a text that has most phrases of a query close together, the matches in it,
// and where the first of them is in the text.
func snippet(text string, spans []span, phrases int) (part string, matches [][2]int, at int) {
	best, most := 0, 0
	for i := range spans {
		seen := map[int]bool{}
		for k := i; k < len(spans) && spans[k].end-spans[i].start <= snippetRunes-snippetLead; k++ {
			seen[spans[k].phrase] = true
		}
		if len(seen) > most {
			best, most = i, len(seen)
		}
		if most == phrases {
			break
		}
	}
	at = spans[best].start
	from := at
	for n := 0; from > 0 && n < snippetLead; n++ {
		if text[from-1] == '\n' {
			break // begin with a line, if one begins here
		}
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	var b strings.Builder
	runes := 0
	if from > 0 && text[from-1] != '\n' {
		b.WriteString("… ")
		runes = 2
	}
	end, i, blank := from, best, true
	for i > 0 && spans[i-1].start >= from {
		i--
	}
	open := -1
	for end < len(text) && runes < snippetRunes {
		for i < len(spans) && spans[i].end <= end {
			if open >= 0 {
				matches = append(matches, [2]int{open, runes})
				open = -1
			}
			i++
		}
		if i < len(spans) && open < 0 && spans[i].start <= end && end < spans[i].end {
			open = runes
		}
		r, size := utf8.DecodeRuneInString(text[end:])
		end += size
		if r == '\n' || r == '\t' || r == '\r' || r == ' ' {
			if !blank {
				b.WriteByte(' ')
				runes++
			}
			blank = true
			continue
		}
		blank = false
		b.WriteRune(r)
		runes++
	}
	if open >= 0 {
		matches = append(matches, [2]int{open, runes})
	}
	if end < len(text) {
		b.WriteString(" …")
	}
	return b.String(), matches, at
}
