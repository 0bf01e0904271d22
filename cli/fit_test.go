package cli

import "testing"

func TestFit(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
	} {
		if got := Fit(c.s, c.width); got != c.want {
			t.Errorf("Fit(%q, %d) is %q, want %q", c.s, c.width, got, c.want)
		}
	}
}
