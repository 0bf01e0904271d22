package dispatchfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// dialogueTitle is the first line of a dialogue.md, as in the seed.
func dialogueTitle(n int) []byte {
	return []byte("# Conversation: " + dispatch.ConversationID(n) + "\n")
}

// appendEntry appends an entry of a dialogue: a heading with the time and the speaker, then the text. A
// delegation's full text, and a denied call, are fenced.
func appendEntry(b []byte, at time.Time, e dispatch.Entry) []byte {
	b = fmt.Appendf(b, "\n## %s %s\n", at.Local().Format(seedTime), heading(e))
	if text := entryText(e); text != "" {
		b = append(b, '\n')
		b = append(b, unheaded(text)...)
		b = append(b, '\n')
	}
	if e.More != "" {
		fence := fenceFor(e.More)
		b = fmt.Appendf(b, "\n%s\n%s\n%s\n", fence, strings.TrimRight(unheaded(e.More), "\n"), fence)
	}
	return b
}

// heading names the speaker and its role.
func heading(e dispatch.Entry) string {
	switch e.Kind {
	case dispatch.OfTransition:
		arrow, _, ok := strings.Cut(e.Text, "] ")
		if ok {
			return arrow + "]"
		}
		return e.Text
	case dispatch.OfThought:
		return e.Who + " thinks"
	case dispatch.OfDelegation:
		return e.Who + " delegates"
	case dispatch.OfResult:
		return e.Who + " reports"
	case dispatch.OfDenial:
		return e.Who + " was denied"
	case dispatch.OfNote:
		return strings.TrimSpace(e.Who + " note")
	default:
		return e.Who
	}
}

// entryText is the text below the heading.
func entryText(e dispatch.Entry) string {
	if e.Kind == dispatch.OfTransition {
		_, why, _ := strings.Cut(e.Text, "] ")
		return why
	}
	return strings.Trim(e.Text, "\n")
}

// unheaded escapes a line that looks like a heading of Fairlead's, so that no text can pose as another speaker.
// Markdown shows the line unchanged.
func unheaded(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.Contains(text, "## ") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "## ")
		if ok && looksLikeOurs(rest) {
			b.WriteByte('\\')
		}
		b.WriteString(line)
	}
	return b.String()
}

// looksLikeOurs reports whether the text after ## begins like a time.
func looksLikeOurs(rest string) bool {
	return len(rest) > 5 && rest[4] == '-' && strings.Trim(rest[:4], "0123456789") == ""
}

// fenceFor is longer than any run of backticks in a text.
func fenceFor(text string) string {
	longest, run := 0, 0
	for _, c := range text {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}

// Note appends to a conversation's dialogue.md only: a thought or an action. A crash loses at most this note,
// and never half of it.
func (f *Folder) Note(at time.Time, conv int, e dispatch.Entry) error {
	d, done, err := f.writing()
	if err != nil {
		return err
	}
	defer done()
	rel := conversationPath(conv) + "/" + dialogueName
	size, half, err := d.end(rel)
	if err != nil {
		return err
	}
	if size == 0 {
		return fmt.Errorf("add a note to %s: there is no such conversation in %s", dispatch.ConversationID(conv), f.path)
	}
	if len(e.Text)+len(e.More) > 2*dispatch.TextBytesMax {
		return fmt.Errorf("add a note to %s: it has %d bytes; the maximum is %d; write it to a file in outputs/ and name the file",
			dispatch.ConversationID(conv), len(e.Text)+len(e.More), 2*dispatch.TextBytesMax)
	}
	text := appendEntry(nil, at, e)
	if half {
		text = append([]byte{'\n'}, text...)
	}
	return d.commit([]part{{File: rel, At: size, Text: text}})
}

// Answer returns MAIN's last text in a conversation's dialogue, or else the last report of an agent; empty:
// there is none. It is for display only, because agents may write to that file.
func (f *Folder) Answer(n int) (string, error) {
	text, err := f.Dialogue(n)
	if err != nil {
		return "", err
	}
	var main, report *strings.Builder
	var into *strings.Builder
	for line := range strings.Lines(string(text)) {
		if stamp, ok := strings.CutPrefix(line, "## "); ok && looksLikeOurs(stamp) {
			_, who, _ := strings.Cut(strings.TrimSpace(stamp), " ")
			into = nil
			switch {
			case who == dispatch.Main:
				main = &strings.Builder{}
				into = main
			case strings.HasSuffix(who, " reports"):
				report = &strings.Builder{}
				into = report
			}
			continue
		}
		if into != nil {
			if rest, ok := strings.CutPrefix(line, `\## `); ok && looksLikeOurs(rest) {
				line = line[1:]
			}
			into.WriteString(line)
		}
	}
	switch {
	case main != nil:
		return strings.TrimSpace(main.String()), nil
	case report != nil:
		return strings.TrimSpace(report.String()), nil
	}
	return "", nil
}

// Dialogue returns a conversation's dialogue.md: its first 4 MiB, and then a line that says so.
func (f *Folder) Dialogue(n int) ([]byte, error) {
	d, err := openFolder(f.path)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	text, whole, err := d.read(conversationPath(n)+"/"+dialogueName, dialogueBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the dialogue of %s: %w", dispatch.ConversationID(n), err)
	}
	if err == nil && !whole {
		text = fmt.Appendf(text, "\n\n(The file is longer than %d MiB. The rest is left out here.)\n", dialogueBytesMax>>20)
	}
	return text, err
}
