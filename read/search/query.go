package search

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	QueryBytesMax = 400 // of a query: a sentence or two
	queryWordsMax = 32  // of a query; each costs a look-up
)

// phrase is a sequence of tokens that must follow each other.
type phrase struct {
	words  []token
	prefix bool // the last word may go on
}

// query is what is searched: every phrase must occur in a passage.
type query []phrase

// parse reads plain words and "quoted phrases". Words that are written together, as in retry_upload
// or foo.go, are a phrase. A missing closing quote is added. The error is for people.
func parse(text string) (query, error) {
	if len(text) > QueryBytesMax {
		return nil, fmt.Errorf("the query has %d bytes; at most %d are possible", len(text), QueryBytesMax)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the query is not valid UTF-8")
	}
	var q query
	words := 0
	add := func(part string, quoted bool) {
		var p phrase
		tokens(part, func(t token) bool { p.words = append(p.words, t); return true })
		if len(p.words) == 0 {
			return
		}
		words += len(p.words)
		last := p.words[len(p.words)-1]
		p.prefix = !quoted && !last.single && utf8.RuneCountInString(last.folded) >= prefixRuneMin
		q = append(q, p)
	}
	for n, piece := range strings.Split(straight(text), `"`) {
		if n%2 == 1 {
			add(piece, true)
			continue
		}
		for _, word := range strings.Fields(piece) {
			add(word, false)
		}
	}
	switch {
	case words == 0:
		return nil, errors.New("nothing to search: type at least one letter or digit")
	case words > queryWordsMax:
		return nil, fmt.Errorf("the query has %d words; at most %d are possible", words, queryWordsMax)
	}
	return q, nil
}

// straight replaces typographic quotes, which phones and text programs write.
func straight(text string) string {
	return strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`).Replace(text)
}

// match is the query for FTS5.
func (q query) match(filters ...string) string {
	return strings.Join(append(q.terms(), filters...), " AND ")
}

// terms are the terms for FTS5. Each is a quoted string of letters and digits, or the code of a pair,
// so nothing in it is syntax.
func (q query) terms() (all []string) {
	for _, p := range q {
		var codes, words []string
		for i, w := range p.words {
			if i+1 < len(p.words) && hasPairCode(w, p.words[i+1]) {
				codes = append(codes, quoted(string(pairCode(w.folded, p.words[i+1].folded))))
			}
			switch {
			case i+1 < len(p.words) && pair(w, p.words[i+1]):
				words = append(words, quoted(w.folded+p.words[i+1].folded))
			case i > 0 && pair(p.words[i-1], w): // it is in the pair before
			case i == len(p.words)-1 && p.prefix && len(w.folded) < wordBytesMax:
				words = append(words, quoted(w.folded)+"*")
			default:
				words = append(words, quoted(w.folded))
			}
		}
		all = append(all, codes...)
		if len(codes) < 2 { // two codes leave so few passages that looking for the words costs more than reading these
			all = append(all, words...)
		}
	}
	return all
}

// pair reports whether two characters of scripts without spaces are neighbours.
func pair(a, b token) bool { return a.single && b.single && a.end == b.start }

func quoted(term string) string { return `"` + strings.ReplaceAll(term, `"`, `""`) + `"` }

// possible reports whether a text may have the phrases, without splitting it. Texts and words with
// other characters than ASCII may always.
func (q query) possible(text string) bool {
	lower := ""
	for _, p := range q {
		if len(p.words) < 2 || !ascii(p.words[0].folded) || !ascii(p.words[1].folded) {
			continue
		}
		if lower == "" {
			if !ascii(text) {
				return true
			}
			lower = strings.ToLower(text)
		}
		if !pairIn(lower, p.words[0].folded, p.words[1].folded) {
			return false
		}
	}
	return true
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// pairIn reports whether one word is followed by the other, or by a longer one.
func pairIn(text, first, second string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], first)
		if i < 0 {
			return false
		}
		from += i + len(first)
		next := from
		if len(first) >= wordBytesMax {
			return true // it was cut
		}
		for next < len(text) && !isWord(rune(text[next])) {
			next++
		}
		if next > from && strings.HasPrefix(text[next:], second) {
			return true
		}
	}
}

// span is a part of a text, in bytes.
type span struct {
	start, end int
	phrase     int // which of the query's
}

// find returns where the phrases are in a text, in order, or nil if one of them is not in it. most
// limits the spans.
func (q query) find(text string, most int) []span {
	var all []token
	tokens(text, func(t token) bool { all = append(all, t); return true })
	var found []span
	missing := len(q)
	seen := make([]bool, len(q))
	for i := range all {
		for n := range q {
			start, end, ok := q[n].at(text, all[i:])
			if !ok {
				continue
			}
			if !seen[n] {
				seen[n] = true
				missing--
			} else if len(found) >= most {
				continue
			}
			found = append(found, span{start: start, end: end, phrase: n})
		}
		if missing == 0 && len(found) >= most {
			break
		}
	}
	if missing > 0 {
		return nil
	}
	return found
}

// at reports whether a phrase begins with the first of some tokens, and where it is in the text.
func (p *phrase) at(text string, all []token) (start, end int, ok bool) {
	if len(p.words) > len(all) {
		return 0, 0, false
	}
	for i, w := range p.words {
		t := all[i]
		last := i == len(p.words)-1
		if i > 0 && pair(p.words[i-1], w) && !pair(all[i-1], t) {
			return 0, 0, false
		}
		if t.folded == w.folded && t.single == w.single {
			continue
		}
		if last && p.prefix && !t.single && strings.HasPrefix(t.folded, w.folded) {
			word := text[t.start:t.end]
			return all[0].start, t.start + prefixBytes(word, w.folded), true
		}
		if len(p.words) > 1 || t.single || w.single {
			return 0, 0, false
		}
		found := false // in a part of the word
		parts(text[t.start:t.end], func(from, to int) {
			if found {
				return
			}
			part := fold(text[t.start+from : t.start+to])
			if part == w.folded || p.prefix && strings.HasPrefix(part, w.folded) {
				found, start, end = true, t.start+from, t.start+from+prefixBytes(text[t.start+from:t.start+to], w.folded)
			}
		})
		return start, end, found
	}
	return all[0].start, all[len(p.words)-1].end, true
}

// prefixBytes is how many bytes at the start of a word fold to a prefix: the shortest beginning of
// whole characters that does, with the marks after it.
func prefixBytes(word, folded string) int {
	for i := range word {
		if i > 0 && strings.HasPrefix(fold(word[:i]), folded) {
			r, _ := utf8.DecodeRuneInString(word[i:])
			if !unicode.Is(unicode.M, r) {
				return i
			}
		}
	}
	return len(word)
}
