package clip

import "testing"

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
