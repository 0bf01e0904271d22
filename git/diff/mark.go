package diff

import (
	"unicode/utf8"
)

const (
	markPairsMax = 200 // lines of one block; more are a rewrite
	markShare    = 3   // a mark that covers more than two of three bytes says nothing
)

// mark notes which part of a line differs from the line that it replaced: where as many lines came as went.
func mark(rows []ChangedRow) {
	for i := 0; i < len(rows); {
		gone := run(rows[i:], DelRow)
		came := run(rows[i+gone:], AddRow)
		if gone == came && gone > 0 && gone <= markPairsMax {
			for k := range gone {
				pair(&rows[i+k], &rows[i+gone+k])
			}
		}
		i += max(1, gone+came)
	}
}

// run is how many rows of a kind come first.
func run(rows []ChangedRow, kind string) int {
	n := 0
	for n < len(rows) && rows[n].Kind == kind {
		n++
	}
	return n
}

func pair(a, b *ChangedRow) {
	was, is := whole(a.Tokens), whole(b.Tokens)
	from := 0
	for from < len(was) && from < len(is) && was[from] == is[from] {
		from++
	}
	for from > 0 && from < len(was) && !utf8.RuneStart(was[from]) || from > 0 && from < len(is) && !utf8.RuneStart(is[from]) {
		from--
	}
	end := 0
	for end < len(was)-from && end < len(is)-from && was[len(was)-1-end] == is[len(is)-1-end] {
		end++
	}
	for end > 0 && (!utf8.RuneStart(was[len(was)-end]) || !utf8.RuneStart(is[len(is)-end])) {
		end--
	}
	if longest := max(len(was), len(is)); (longest-from-end)*markShare > longest*(markShare-1) {
		return
	}
	a.Tokens, b.Tokens = split(a.Tokens, from, len(was)-end), split(b.Tokens, from, len(is)-end)
}

// split marks the bytes from one place to another.
func split(tokens []RowToken, from, to int) []RowToken {
	if from >= to {
		return tokens
	}
	var all []RowToken
	at := 0
	put := func(t RowToken, text string, changed bool) {
		if text != "" {
			all = append(all, RowToken{Class: t.Class, Text: text, Changed: changed})
		}
	}
	for _, t := range tokens {
		n := len(t.Text)
		a, b := min(max(from-at, 0), n), min(max(to-at, 0), n)
		put(t, t.Text[:a], false)
		put(t, t.Text[a:b], true)
		put(t, t.Text[b:], false)
		at += n
	}
	return all
}
