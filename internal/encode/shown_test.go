package encode

import (
	"encoding/json"
	"testing"
	"unicode"
)

// What a terminal obeys is escaped in JSON, and the value stays the same; other text keeps its bytes.
func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain <b> größe 日本語 👩\u200d💻": `"plain <b> größe 日本語 👩‍💻"`,
		"\x1b]52;c;x\a\x00":            `"\u001b]52;c;x\u0007\u0000"`,
		"a\x7fb":                       `"a\u007fb"`,
		"\u009b31m\u0085":              `"\u009b31m\u0085"`,
		"\u202e\u2066\u200f\u061c!":    `"\u202e\u2066\u200f\u061c!"`,
		`\` + "\u202a":                 `"\\\u202a"`,
	} {
		got := Shown(JSON(text))
		if string(got) != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func FuzzShown(f *testing.F) {
	f.Add("a\x7f\u202e\u009b")
	f.Fuzz(func(t *testing.T, text string) {
		before := JSON(map[string]string{text: text})
		got := Shown(before)
		var is, was map[string]string
		if err := json.Unmarshal(got, &is); err != nil || json.Unmarshal(before, &was) != nil || len(is) != len(was) {
			t.Fatalf("%s becomes %s: %v", before, got, err)
		}
		for k, v := range was {
			if is[k] != v {
				t.Fatalf("%q becomes %q", v, is[k])
			}
		}
		for _, r := range string(got) {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%s holds %U", got, r)
			}
		}
	})
}
