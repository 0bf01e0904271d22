package speech

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead-dev/fairlead/driver"
)

// A result is shown to people while the agent works. The program has the whole result.
const (
	resultLinesMax = 40      // fits on a screen
	resultBytesMax = 4 << 10 // 40 lines of about 100 characters
)

// Result reports what a tool call has printed or changed. It does not count as text of the agent.
// Control characters are shown as visible characters. Text above the limits is omitted, with a
// note. Output of a tool that only reads is not reported, because the call names what it read.
func (w *Writer) Result(tool, text string) {
	if slices.Contains(readers, tool) {
		return
	}
	if text = visible(strings.TrimRight(text, " \t\r\n")); text == "" || tool == "" {
		return
	}
	shown := text
	if lines := strings.SplitAfterN(shown, "\n", resultLinesMax+1); len(lines) > resultLinesMax {
		shown = strings.Join(lines[:resultLinesMax], "")
	}
	shown = shown[:edge(shown, resultBytesMax)]
	if left := len(text) - len(shown); left > 0 {
		shown = strings.TrimRight(shown, "\n") + fmt.Sprintf("\n… [%d more bytes are not shown]", left)
	}
	w.Tell(Event{Type: driver.Said, Tool: tool, Text: shown})
}

var readers = []string{"Read", "LS", "Glob", "Grep", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead"}

// visible replaces control characters, except line breaks and tabs, by their pictures.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, string(unicode.ReplacementChar)), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		const pictures, deleted = 0x2400, 0x2421
		switch {
		case r == '\n', r == '\t':
			return r
		case r < ' ':
			return pictures + r
		case r == 0x7f:
			return deleted
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Diff describes a change of a file: its name, the lines that were removed and those that were added.
func Diff(path, before, after string) string {
	old, now := lines(before), lines(after)
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	var b strings.Builder
	b.WriteString(path)
	for _, l := range old {
		b.WriteString("\n- " + l)
	}
	for _, l := range now {
		b.WriteString("\n+ " + l)
	}
	return b.String()
}

func lines(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
