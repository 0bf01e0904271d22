package driver

import (
	"strings"
	"testing"
)

func TestWithoutEscapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "plain": "plain", "\x1b[31mred\x1b[0m": "red", "\x1b[?25lhidden": "hidden", "\x1b]0;title\atext": "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link", "\x1b(Bset": "set", "\x1b=key": "key", "end\x1b": "end", "\x1b[31": "31",
		"\x1b]0;no end": "0;no end", "\x1bPq#0\x1b[1mafter": "after", "ä\x1b[1mö": "äö", "\x1bä": "ä", "\x1b[1\nline": "1\nline",
	} {
		if got := WithoutEscapes(text); got != want {
			t.Errorf("WithoutEscapes(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzWithoutEscapes checks that only escape sequences are removed, and that none is left.
func FuzzWithoutEscapes(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m")
	f.Add("\x1b]0;title\atext\x1b")
	f.Add("\x1b(\x1b[")
	f.Fuzz(func(t *testing.T, text string) {
		got := WithoutEscapes(text)
		if strings.ContainsRune(got, '\x1b') || len(got) > len(text) || !strings.ContainsRune(text, '\x1b') && got != text {
			t.Errorf("%q is %q", text, got)
		}
	})
}
