package clip

import (
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s                      string
		most                   int
		cut, shortened, within string
	}{
		{"", 0, "", "", ""},
		{"abc", 3, "abc", "abc", "abc"},
		{"abc", 2, "ab", "ab…", "…"},
		{"abc", 0, "", "…", "…"},
		{"abcdef", 5, "abcde", "abcde…", "ab…"},
		{"aé", 2, "a", "a…", "…"},
		{"aé", 3, "aé", "aé", "aé"},
		{"€€", 5, "€", "€…", "…"},
		{"€€€", 8, "€€", "€€…", "€…"},
		{"\xff\xff", 6, "\xff\xff", "\uFFFD", "\xff\xff"},
		{"\x80\x80\x80", 2, "", "…", "…"},
	} {
		if got := To(c.s, c.most); got != c.cut {
			t.Errorf("To(%q, %d) is %q, want %q", c.s, c.most, got, c.cut)
		}
		if got := Within(c.s, c.most); got != c.within {
			t.Errorf("Within(%q, %d) is %q, want %q", c.s, c.most, got, c.within)
		}
		if got := Text(c.s, c.most); got != c.shortened {
			t.Errorf("Text(%q, %d) is %q, want %q", c.s, c.most, got, c.shortened)
		}
	}
}

func TestRunes(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab…"}, {"€é日", 3, "€é日"}, {"€é日", 2, "€é…"}, {"abc", 0, "…"}, {"a\xffc", 2, "a\xff…"}} {
		if got := Runes(c.s, c.most); got != c.want {
			t.Errorf("Runes(%q, %d) is %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestWholeCharacters(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "€": 3, "a\xe2": 1, "a\xe2\x82": 1, "a\xe2\x82\xac": 4, "a\xf0\x9f\x98": 1, "a\xff": 2, "\x80\x80\x80\x80": 4,
		"a\xc3": 1, "\xf0": 0,
	} {
		if got := Whole([]byte(text)); got != want {
			t.Errorf("Whole(%q) = %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]int{
		"": 0, "abc": 0, "\x82\xacx": 2, "\xacx": 1, "\x9f\x98\x80x": 3, "\x80\x80\x80\x80x": 0,
		"\x80": 0,
	} {
		if got := Torn([]byte(text)); got != want {
			t.Errorf("Torn(%q) = %d, want %d", text, got, want)
		}
	}
}

// FuzzWhole: cut anywhere, the pieces say what the whole says.
func FuzzWhole(f *testing.F) {
	f.Add([]byte("grüße € \xf0\x9f\x98\x80 \xff\xfe"), 3)
	f.Add([]byte("\x80\x80\xe2\x82"), 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size = size % 8; size <= 0 {
			size = 1
		}
		var held []byte
		var got []rune
		for rest := b; len(rest) > 0 || len(held) > 0; {
			n := min(size, len(rest))
			held = append(held, rest[:n]...)
			rest = rest[n:]
			cut := Whole(held)
			if len(rest) == 0 {
				cut = len(held)
			}
			if len(held)-cut >= utf8.UTFMax {
				t.Fatalf("%d bytes are held back of %q", len(held)-cut, held)
			}
			got = append(got, []rune(string(held[:cut]))...)
			held = held[cut:]
		}
		if string(got) != string([]rune(string(b))) {
			t.Fatalf("%q became %q", b, string(got))
		}
	})
}
