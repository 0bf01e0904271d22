package termtext

import "testing"

// A selector of a variant has no width, so a row of them hides a text from a person, a byte in each. One stays after a character that
// has variants.
func TestSelectors(t *testing.T) {
	for text, want := range map[string]string{
		"a\U000E0141b":            "a<U+E0141>b", // a text of selectors, one for each byte
		"☺\uFE0F\uFE01\U000E0100": "☺\uFE0F<U+FE01><U+E0100>",
		" \uFE0F":                 " <U+FE0F>",
		"\uFE0F":                  "<U+FE0F>",
		"x\uFE0E":                 "x<U+FE0E>",

		"❤\uFE0F 1\uFE0F\u20E3 #\uFE0F\u20E3 ↔\uFE0F ‼\uFE0F 👁\uFE0F\u200D🗨\uFE0F": "❤\uFE0F 1\uFE0F\u20E3 #\uFE0F\u20E3 ↔\uFE0F ‼\uFE0F 👁\uFE0F\u200D🗨\uFE0F",
		"葛\U000E0100 ᠠ\u180B က\uFE00":                                              "葛\U000E0100 ᠠ\u180B က\uFE00",
	} {
		if got := Show(text); got != want {
			t.Errorf("%+q: %+q, want %+q", text, got, want)
		}
	}
}
