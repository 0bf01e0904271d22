package server

import "unicode/utf8"

// cutText says how many bytes of b can be shown: a character at its end that is not whole
// yet waits for the rest of it.
func cutText(b []byte) int {
	for back := 1; back <= min(len(b), utf8.UTFMax-1); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// tornStart says how many bytes at the start of b are the end of a character that begins
// before it. For a place in a text that was chosen by counting bytes.
func tornStart(b []byte) int {
	for i := range min(len(b), utf8.UTFMax) {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0 // this is no text: there is nothing to spare
}

// some is a list that is never null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
