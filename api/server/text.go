package server

import "unicode/utf8"

// cutText returns how many bytes of b can be shown: an incomplete character at the end waits for its
// other bytes.
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

// tornStart returns how many bytes at the start of b are the end of a character that begins before
// it. It is for a place in a text that was chosen by counting bytes.
func tornStart(b []byte) int {
	for i := range min(len(b), utf8.UTFMax) {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0 // this is not UTF-8: there is no character to complete
}

// some returns an empty list for a null one.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
