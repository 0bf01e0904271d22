package notify

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/core/notice"
)

func TestHarmless(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a step", "a step"},
		{"two\nlines\tand \x1b[2J", "two lines and \ufffd[2J"},
		{"turned \u202eround", "turned \ufffdround"},
		{"torn \xff", "torn \ufffd"},
		{strings.Repeat("ä", 400), strings.Repeat("ä", wordsMax) + "…"},
		{strings.Repeat("ä", wordsMax), strings.Repeat("ä", wordsMax)},
	} {
		if got := harmless(c.in, wordsMax); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}

// A shortened path would be another path.
func TestPathsAreWholeOrAbsent(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b.json": "/a/b.json", "b.json": "", "": "", "/" + strings.Repeat("x", pathMax): "",
	} {
		if got := safePath(path); got != want {
			t.Errorf("%.20s becomes %.20s", path, got)
		}
	}
}

// Whatever a workflow, an agent or a task is called: what is shown is short and has no markup of any service, the only
// links are ours, and no text is a part of a command.
func FuzzWords(f *testing.F) {
	f.Add("release", "step a waits", "r1", "a", "Add retries")
	f.Add("<b>&amp;</b>", "--urgency=critical", "-x", "\x1b]0;x\x07", "@everyone <!channel> <@U1> [x](https://evil.example)")
	f.Add("\u202e\u2066", "\" & (do shell script \"true\") & \"", "r\x001", "\xff\xfe", "**b** _i_ `c` ~~s~~ ||spoiler|| #general")
	f.Fuzz(func(t *testing.T, workflow, why, run, step, title string) {
		one := notice.Notice{
			Event: notice.NeedsYou, Kind: "step", Workflow: workflow, Why: why, Run: run, Step: step, Title: title,
			Page: "#/inbox",
		}
		for n := range 12 {
			m := Message{Base: "http://127.0.0.1:7466/", Listed: slices.Repeat([]notice.Notice{one}, n+1), More: n}
			bare := strings.ReplaceAll(strings.ReplaceAll(m.body(), "http://127.0.0.1:7466/#/inbox", ""), "\n", " ")
			for _, text := range []string{m.title(), bare} {
				if strings.ContainsAny(text, "<>&@#*_~`|[]\\") || strings.Contains(text, "://") || !utf8.ValidString(text) ||
					strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
					t.Errorf("shown: %q", text)
				}
			}
			if len(m.body()) > 4000 {
				t.Errorf("a body of %d bytes, which Telegram does not take", len(m.body()))
			}
			for _, system := range []string{"linux", "darwin"} {
				words := (&desktop{system: system}).words(m)
				if script := words[:len(words)-2]; strings.Contains(strings.Join(script, " "), "Fairlead: ") {
					t.Errorf("text is a part of the command: %q", script)
				}
			}
		}
	})
}

// A server can ask for a wait, but only for a bounded one.
func FuzzAskedWait(f *testing.F) {
	for _, header := range []string{
		"", "0", "5", "30", "31", "-1", "99999999999999999999", "4294967295", "1.5", " 3",
		"Sat, 21 Nov 2026 12:00:00 GMT",
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if wait := askedWait(header); wait < 0 || wait > askedWaitMax {
			t.Errorf("%q makes us wait %v", header, wait)
		}
	})
}
