package termtext

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Each kind of what a terminal obeys or hides, and beside it a text that looks like it and stays.
func TestShow(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", "a b\tc\nd ~", "a b\tc\nd ~"},
		{"letters", "größe, 日本語, עברית, العربية, हिन्दी", "größe, 日本語, עברית, العربية, हिन्दी"},
		{"OSC 52", "\x1b]52;c;ZXZpbA==\x07", "␛]52;c;ZXZpbA==␇"},
		{"OSC with ST", "\x1b]0;title\x1b\\", "␛]0;title␛\\"},
		{"CSI", "\x1b[2J\x1b[H", "␛[2J␛[H"},
		{"colour", "\x1b[31mred", "␛[31mred"},
		{"DCS", "\x1bP+q\x1b\\", "␛P+q␛\\"},
		{"brackets without escape", "]52;c; [2J", "]52;c; [2J"},
		{"carriage return", "ok\rno", "ok␍no"},
		{"backspace, bell, NUL, vertical tab, form feed", "\b\a\x00\v\f", "␈␇␀␋␌"},
		{"DEL", "a\x7f", "a␡"},
		{"pictures stay", "␛␡", "␛␡"},
		{"C1 as UTF-8", "\u009b31m \u009d0;x\u009c \u0085", "<U+009B>31m <U+009D>0;x<U+009C> <U+0085>"},
		{"C1 as a byte", "\x9b31m", "<9B>31m"},
		{"no-break space", "a\u00a0b", "a\u00a0b"},
		{"bytes that are not UTF-8", "a\xff\xc3(", "a<FF><C3>("},
		{"the replacement character", "\ufffd", "\ufffd"},
		{
			"bidi controls", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
			"<U+202A><U+202B><U+202C><U+202D><U+202E><U+2066><U+2067><U+2068><U+2069><U+200E><U+200F><U+061C>",
		},
		{
			"zero width", "a\u200bb\u2060c\ufeffd\u00ade\u180ef\u034fg\u3164h",
			"a<U+200B>b<U+2060>c<U+FEFF>d<U+00AD>e<U+180E>f<U+034F>g<U+3164>h",
		},
		{"tags", "a\U000e0041\U000e0042", "a<U+E0041><U+E0042>"},
		{"line separators", "a\u2028b\u2029", "a\u2028b\u2029"},
		{"joiners in Persian and Hindi", "می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"},
		{"joiner in emoji", "👩\u200d💻 👨🏽\u200d🚀 🏳️\u200d🌈 🙂\u200d↔️", "👩\u200d💻 👨🏽\u200d🚀 🏳️\u200d🌈 🙂\u200d↔️"},
		{
			"joiners elsewhere", "\u200da \u200c1 a\u200d. a\u200d\u200db a\u200c",
			"<U+200D>a <U+200C>1 a<U+200D>. a<U+200D><U+200D>b a<U+200C>",
		},
		{"Arabic number sign", "\u0600", "\u0600"},
	} {
		if got := Show(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for size := 1; size < 6; size++ { // in pieces, as a pipe may deliver it
			var out bytes.Buffer
			w := &Writer{To: &out}
			for at := 0; at < len(c.text); at += size {
				if n, err := w.Write([]byte(c.text[at:min(len(c.text), at+size)])); err != nil || n != min(size, len(c.text)-at) {
					t.Fatalf("%s: wrote %d, %v", c.name, n, err)
				}
			}
			if err := w.Flush(); err != nil || out.String() != c.want {
				t.Errorf("%s in pieces of %d: %q, %v", c.name, size, &out, err)
			}
		}
	}
}

// Only this program's sequences pass, in any pieces; one that was shown as text does not.
func TestOwn(t *testing.T) {
	text := Own("\x1b[1m") + "bold \x1b[31m" + Own("\x1b[0m") + Own("\r") + "é"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := &Writer{To: &out}
		for at := 0; at < len(text); at += size {
			_, _ = w.Write([]byte(text[at:min(len(text), at+size)]))
		}
		if err := w.Flush(); err != nil || out.String() != "\x1b[1mbold ␛[31m\x1b[0m\ré" {
			t.Fatalf("in pieces of %d: %q, %v", size, &out, err)
		}
	}
	if got := Show(Own("\x1b[1m")); strings.ContainsRune(got, '\x1b') || strings.ContainsRune(got, 0) {
		t.Errorf("Show lets a sequence pass: %q", got)
	}
	if (&Writer{To: &bytes.Buffer{}}).Fd() != ^uintptr(0) {
		t.Error("a buffer has a descriptor")
	}
}

// FuzzShow checks that nothing hidden is left, that harmless text stays, and that pieces give the same as the whole.
func FuzzShow(f *testing.F) {
	for _, seed := range []string{
		"plain", "\x1b]52;c;x\x07", "\u009b\u202e\u200d\xff", "👩\u200d💻", "می\u200cخواهم", "\r\n\x7f\U000e0041",
		"\xe2\x80", "a\u3164\u200da",
	} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		got := Show(text)
		if !utf8.ValidString(got) {
			t.Fatalf("%q becomes %q, which is not UTF-8", text, got)
		}
		before, clean := rune(0), utf8.ValidString(text)
		for i, r := range got {
			next, _ := utf8.DecodeRuneInString(got[i+utf8.RuneLen(r):])
			if Hidden(r) && !(joins(r) && joined(before) && joined(next)) || unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q becomes %q, with %U", text, got, r)
			}
			before = r
		}
		if again := Show(got); again != got {
			t.Fatalf("%q, shown again, is %q", got, again)
		}
		if clean && !strings.ContainsFunc(text, Hidden) && got != text {
			t.Fatalf("%q becomes %q", text, got)
		}
		size = 1 + (size&0xff)%8
		var out bytes.Buffer
		w := &Writer{To: &out}
		for at := 0; at < len(text); at += size {
			_, _ = w.Write([]byte(text[at:min(len(text), at+size)]))
		}
		if err := w.Flush(); err != nil || out.String() != got {
			t.Fatalf("%q in pieces of %d: %q, %v; whole %q", text, size, &out, err, got)
		}
	})
}
