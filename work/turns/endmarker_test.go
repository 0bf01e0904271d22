package turns_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// TestEnding: the word counts at the end of a message, after any punctuation or CJK character and before any white
// space (SPEC, T8). Each text stands beside one in which the word is text.
func TestEnding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, said string }{
		{"中文。TURN_COMPLETE", "中文。"},
		{"完成TURN_COMPLETE", "完成"},
		{"終わりましたーTURN_COMPLETE\n", "終わりましたー"},
		{"끝났습니다TURN_COMPLETE", "끝났습니다"},
		{"Done.TURN_COMPLETE", "Done."},
		{"Done:TURN_COMPLETE", "Done:"},
		{"**Done**TURN_COMPLETE", "**Done**"},
		{"Done ✅TURN_COMPLETE", "Done ✅"},
		{"Done (see TURN_PASS)TURN_COMPLETE", "Done (see TURN_PASS)"},
		{"Done. TURN_COMPLETE\u00a0", "Done."},
		{"Done.\u3000TURN_COMPLETE\u3000\u2028\u0085", "Done."},
		{"Done.\nTURN_COMPLETE" + strings.Repeat(" ", 100), "Done."},
		{"TURN_COMPLETE", ""},
	} {
		if said, word := turns.Ending([]byte(c.text), false); word != marker.TurnComplete || said != c.said {
			t.Errorf("%q: %q, said %q; want the word, and said %q", c.text, word, said, c.said)
		}
	}
	for _, text := range []string{
		"Say (TURN_COMPLETE) when you are done", "(TURN_COMPLETE)", "TURN_COMPLETE。", "TURN_COMPLETE\u3000次", "MY_TURN_COMPLETE",
		"doneTURN_COMPLETE", "fertigäTURN_COMPLETE", "2TURN_COMPLETE",
		"`TURN_COMPLETE`", "TURN_COMPLETED", "turn_complete",
	} {
		if said, word := turns.Ending([]byte(text), false); word != "" || said != text {
			t.Errorf("%q: %q, said %q; want text", text, word, said)
		}
	}
	if _, word := turns.Ending([]byte("TURN_COMPLETE"), true); word != "" {
		t.Error("the word counts, and it continues the word before it")
	}
}

// FuzzEnding: what is said and the word make up the text, apart from white space and empty lines.
func FuzzEnding(f *testing.F) {
	f.Add("中文。", "\u3000")
	f.Add("(TURN_COMPLETE) stays.", "\u00a0\n")
	f.Fuzz(func(t *testing.T, front, space string) {
		if strings.ContainsAny(front, "[<") || strings.TrimFunc(space, unicode.IsSpace) != "" {
			t.Skip("other markers have tests of their own")
		}
		said, word := turns.Ending([]byte(front+"TURN_COMPLETE"+space), false)
		if want := !marker.EndsInWord([]byte(front)); (word == marker.TurnComplete) != want {
			t.Fatalf("after %q the word counts: %v", front, !want)
		}
		if word == "" {
			front += "TURN_COMPLETE"
		}
		if want := turns.Trim([]byte(front)); said != want {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}
