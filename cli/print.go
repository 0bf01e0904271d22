package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/termtext"
)

// PrintJSON writes one value as one line, without HTML escaping.
func (a *App) PrintJSON(v any) error {
	_, err := a.Out.Write(append(encode.Shown(encode.JSON(v)), '\n'))
	return err
}

// Show prints a value as JSON for programs, or calls text for people.
func (a *App) Show(v any, text func() error) error {
	if a.JSON {
		return a.PrintJSON(v)
	}
	return text()
}

// Say is Show with one line of text.
func (a *App) Say(v any, format string, args ...any) error {
	return a.Show(v, func() error {
		_, err := fmt.Fprintf(a.Out, format+"\n", args...)
		return err
	})
}

// Plain shows what a terminal would obey, or hide, in a text. Tabs and line ends are kept. A terminal gets no other text (see
// Terminal); tables are the same in a pipe.
func Plain(s string) string { return termtext.Show(s) }

// Fit is a text in at most width columns; if it is longer, the last one shows an ellipsis.
func Fit(s string, width int) string {
	columns, kept := 0, 0
	for i, r := range s {
		if columns += Wide(r); columns > width {
			return s[:kept] + "…"
		}
		if columns < width {
			kept = i + utf8.RuneLen(r)
		}
	}
	return s
}

// Line is Plain on one line of at most width columns.
func Line(s string, width int) string {
	return Fit(strings.Join(strings.Fields(Plain(s)), " "), width)
}

// Aligned is Line with its spaces unchanged, so that columns stay aligned.
func Aligned(s string, width int) string {
	return Fit(strings.NewReplacer("\n", " ", "\t", " ").Replace(Plain(s)), width)
}

// Money prints an amount in US dollars; one below a cent with four digits, so that it does not look like nothing.
func Money(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Ago formats a duration in its largest suitable unit.
func Ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// Screenful reports whether output can be redrawn in place: it is a terminal that supports escape
// sequences (unlike an editor's terminal or a serial console).
func (a *App) Screenful() bool { return Tty(a.Out) && !dumb() }

// dumb is a terminal that prints escape sequences instead of interpreting them.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// Paint colours a word where a person reads it on a terminal and has not said NO_COLOR
// (https://no-color.org).
func (a *App) Paint(colour, s string) string {
	if !Tty(a.Out) || Colourless() {
		return s
	}
	return colour + s + Reset
}

// Colourless says that output must have no colour: NO_COLOR is set, or the terminal has none.
func Colourless() bool { return os.Getenv("NO_COLOR") != "" || dumb() }

// Colours, for Paint.
var (
	Bold   = termtext.Own("\x1b[1m")
	Dim    = termtext.Own("\x1b[2m")
	Green  = termtext.Own("\x1b[32m")
	Yellow = termtext.Own("\x1b[33m")
	Red    = termtext.Own("\x1b[31m")
	Reset  = termtext.Own("\x1b[0m")
)

// HowMany returns a number with its noun, singular or plural.
func HowMany[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Clock formats a time of day in the local time zone.
func Clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }

// Columns is the approximate width of a text on a terminal: combining marks count 0, wide letters 2.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += Wide(r)
	}
	return n
}

// Wide returns how many columns a character takes on a terminal.
func Wide(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0x1F300 && r <= 0x1FAFF,
		r >= 0xFF01 && r <= 0xFF60:
		return 2
	default:
		return 1
	}
}

// OrDash is a text, or "-" if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return Plain(s)
}

// ClockAt formats a local time, with the date if it is not today.
func ClockAt(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Mon 15:04")
	}
	return at.Format("15:04")
}

// OrNote is a note in parentheses, or nothing.
func OrNote(note string) string {
	if note == "" {
		return ""
	}
	return " (" + Line(note, 60) + ")"
}

const (
	StepWidth  = 32  // of a step's name, which may be longer
	ErrorWidth = 300 // of an error that an agent reported
)

// Why is a reason in parentheses, or "".
func Why(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// The size of a terminal that does not report its own.
const (
	ScreenWidth  = 80
	screenHeight = 24
)

// Size returns the size of the terminal.
func (a *App) Size() (width, height int) {
	if w, h, ok := size(a.Out); ok && w > 20 && h > 8 {
		return w, h
	}
	return ScreenWidth, screenHeight
}

// RemarkWidth is the maximum length of a reason in a table.
const RemarkWidth = 80

// SummaryWidth is the maximum length of a task in a line.
const SummaryWidth = 80

// Past returns how long ago a time was, at least 0: clocks of two programs can differ a little.
func Past(at time.Time) time.Duration { return max(0, time.Since(at)) }

// WatchLast is how many entries of a conversation are shown at the start.
const WatchLast = 50

// chiefArgs are the arguments that describe a call, in order of preference.
var chiefArgs = []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern"}

// CallWords describes a call in one line: its main argument, or all of it.
func CallWords(call string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(call), &args) != nil {
		return call
	}
	for _, name := range chiefArgs {
		var text string
		if json.Unmarshal(args[name], &text) == nil && text != "" {
			return text
		}
	}
	var one bytes.Buffer
	if json.Compact(&one, []byte(call)) != nil {
		return call
	}
	return one.String()
}
