package status

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLastLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " \n\n": "", "one": "one", "one\ntwo\r\n\n": "two", "said\nTURN_COMPLETE\n": "said", "TURN_PASS": "",
		"said\n[AGENT_STATUS] {\"agents\":[]}": "said",
		"TURN_WAIT for it":                     "TURN_WAIT for it", "\n  indented": "indented", "a\n\xff": "\uFFFD",
		strings.Repeat("x", 1000): strings.Repeat("x", lastTextMax),
	} {
		if got := lastLine(text); got != want {
			t.Errorf("the last line of %.40q is %.40q, want %.40q", text, got, want)
		}
	}
}

// Whatever a program writes, its last line is one line of text within the limit.
func FuzzLastLine(f *testing.F) {
	f.Add("a\nb")
	f.Add(strings.Repeat("ä", lastTextMax))
	f.Add("TURN_PASS\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := lastLine(text)
		if !utf8.ValidString(got) || strings.ContainsRune(got, '\n') || len(got) > 3*lastTextMax {
			t.Errorf("the last line of %q is %q", text, got)
		}
	})
}
