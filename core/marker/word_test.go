package marker

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestWordAfterEveryCharacter puts a turn's word after each character of Unicode. It counts after white space,
// punctuation and symbols, and after letters of Chinese, Japanese and Korean; it does not after other letters, digits
// and the underscore.
func TestWordAfterEveryCharacter(t *testing.T) {
	counts := []*unicode.RangeTable{
		unicode.P, unicode.S, unicode.Z, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Bopomofo,
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, counts...) || unicode.IsSpace(r)
		switch {
		case r == '_', unicode.Is(unicode.Pc, r):
			want = false
		case !want && !unicode.In(r, unicode.L, unicode.N),
			!want && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Arabic, unicode.Hebrew, unicode.Nd):
			continue // of no kind that is promised
		}
		if got := counted(string(r) + "TURN_COMPLETE"); got != want {
			t.Errorf("after %U %q it counts: %v, want %v", r, r, got, want)
		}
	}
}

// counted reports whether a text ends with a marker, however it is cut.
func counted(text string) bool {
	pieces := scan(text)
	for i := 1; i < min(len(text), utf8.UTFMax+1); i++ {
		if again := scan(text[:i], text[i:]); told(again) != told(pieces) {
			panic(fmt.Sprintf("%q, cut at %d: %s and %s", text, i, told(again), told(pieces)))
		}
	}
	last := pieces[len(pieces)-1]
	return last.Marker != nil && last.Marker.Kind == TurnComplete
}

// TestWordBeforeEveryCharacter puts each character of Unicode after the word: only white space leaves it a marker.
func TestWordBeforeEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		text := "Done.\nTURN_COMPLETE" + string(r)
		if want := unicode.IsSpace(r); strings.Contains(told(scan(text)), "‹turn_complete") != want {
			t.Errorf("before %U %q it counts: %v, want %v", r, r, !want, want)
		}
	}
}

// FuzzWord compares the scanner with a search for the word from the end of one line, wherever the stream is cut.
func FuzzWord(f *testing.F) {
	for _, text := range []string{
		"中文。TURN_COMPLETE", "完成TURN_COMPLETE", "Done.TURN_COMPLETE", "Done:TURN_COMPLETE\u00a0", "(TURN_COMPLETE)",
		"TURN_COMPLETE\u3000\u3000 ",
		"(TURN_COMPLETE) is a word", "データーTURN_COMPLETE", "か\u3099TURN_COMPLETE", "✔\ufe0fTURN_COMPLETE", "NO_TURN_COMPLETE",
		"é\u0301TURN_COMPLETE",
		"\xe4\xb8TURN_COMPLETE", "TURN_COMPLETE\xe3\x80", "TURN_COMPLETETURN_COMPLETE", "TURN_COMPLETE TURN_COMPLETE",
		"x\u200bTURN_COMPLETE",
	} {
		f.Add(text, uint8(3), uint8(9))
	}
	f.Fuzz(func(t *testing.T, text string, i, j uint8) {
		text = strings.NewReplacer("\n", " ", "[", "", "<", "").Replace(text)
		const word = "TURN_COMPLETE"
		front, ends := strings.CutSuffix(strings.TrimRightFunc(text, unicode.IsSpace), word)
		want := ends && !EndsInWord([]byte(front)) && len(text)-len(front)-len(word) <= gapBytesMax
		s := Scanner{Only: []Kind{TurnComplete}}
		at, end := min(int(i), len(text)), min(int(i)+int(j), len(text))
		var pieces []Piece
		for _, part := range []string{text[:at], text[at:end], text[end:]} {
			pieces = append(pieces, s.Write([]byte(part))...)
		}
		pieces = append(pieces, s.Flush()...)
		said := ""
		for n, p := range pieces {
			if p.Marker == nil {
				said += string(p.Text)
			} else if n != len(pieces)-1 {
				t.Errorf("%q: a word in the middle counts", text)
			}
		}
		if got := len(pieces) > 0 && pieces[len(pieces)-1].Marker != nil; got != want {
			t.Errorf("%q: the word counts: %v, want %v", text, got, want)
		}
		if want && said != front || !want && said != text {
			t.Errorf("%q: the text is %q", text, said)
		}
	})
}
