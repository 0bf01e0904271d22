package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"golang.org/x/text/unicode/norm"
)

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
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Bopomofo, unicode.Yi, unicode.Tibetan,
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
