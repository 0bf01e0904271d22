package dispatchfolder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// message is a line of messages.jsonl: the seed's five fields in the seed's order.
type message struct {
	ID        string          `json:"conversation_id"`
	Timestamp string          `json:"timestamp"`
	Summary   string          `json:"summary"`
	Files     []dispatch.File `json:"files_created"`
	Agents    []string        `json:"agents_used"`
}

func messageOf(s *dispatch.Summary) message {
	return message{
		ID: dispatch.ConversationID(s.Conversation), Timestamp: s.Began.Local().Format(seedTime), Summary: s.Text,
		Files: s.Files, Agents: s.Agents,
	}
}

// ConversationInfo is one conversation, from messages.jsonl or the state.
type ConversationInfo struct {
	N       int
	ID      string
	Began   time.Time
	Summary string // of an open one: its input
	Files   []dispatch.File
	Agents  []string
	Open    bool
}

// Conversations returns the finished conversations and the open one, by number. A line that cannot be read is
// left out; if a conversation has two lines, the last one counts.
func (f *Folder) Conversations() ([]ConversationInfo, error) {
	s, err := f.Session()
	if err != nil {
		return nil, err
	}
	d, err := openFolder(f.path)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	file, err := d.open(messagesName, unix.O_RDONLY)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []ConversationInfo
	if err == nil {
		defer file.Close()
		in := bufio.NewReaderSize(file, 64<<10)
		for {
			text, _, err := wholeLine(in)
			if m, ok := parseMessage(text); ok {
				all = append(all, m.info())
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", file.Name(), err)
			}
		}
	}
	if c := s.Open; c != nil {
		all = append(all,
			ConversationInfo{N: c.N, ID: c.ID(), Began: c.Began, Summary: c.Input, Files: c.Files, Agents: c.Used, Open: true})
	}
	slices.SortStableFunc(all, func(a, b ConversationInfo) int { return a.N - b.N })
	return lastOfEach(all), nil
}

// lastOfEach keeps the last of neighbours with the same number.
func lastOfEach(all []ConversationInfo) []ConversationInfo {
	var kept []ConversationInfo
	for _, c := range all {
		if n := len(kept); n > 0 && kept[n-1].N == c.N {
			kept[n-1] = c
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

// parseMessage parses a line of messages.jsonl; a field that is missing or of another type is empty.
func parseMessage(line []byte) (message, bool) {
	var m message
	line = trimmed(line)
	if len(line) == 0 || line[0] != '{' || len(line) > lineBytesMax {
		return m, false
	}
	if json.Unmarshal(line, &m, jsontext.AllowInvalidUTF8(true), loose) != nil {
		return m, false
	}
	return m, conversationNumber(m.ID) > 0
}

func (m message) info() ConversationInfo {
	return ConversationInfo{
		N: conversationNumber(m.ID), ID: m.ID, Began: seedTimeOf(m.Timestamp, time.Time{}), Summary: m.Summary, Files: m.Files,
		Agents: m.Agents,
	}
}

// lastLogged is the highest conversation number in messages.jsonl, because another program may have logged
// one that has no folder. 0: none.
func (d opened) lastLogged() (n int, err error) {
	err = d.logged(func(number int) bool {
		n = min(number, conversationsMax)
		return false
	})
	return n, err
}

// hasLogged reports whether messages.jsonl has a conversation. Its lines are in the order of the conversations, so
// the search ends at an earlier one.
func (d opened) hasLogged(n int) (has bool, err error) {
	err = d.logged(func(number int) bool {
		has = number == n
		return number > n
	})
	return has, err
}

// logged passes the numbers of the conversations in messages.jsonl, the last one first, while more says so.
func (d opened) logged(more func(number int) bool) error {
	file, err := d.open(messagesName, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("check %s: %w", file.Name(), err)
	}
	return backward(file, info.Size(), func(_ span, line []byte) bool {
		m, ok := parseMessage(line)
		return !ok || more(conversationNumber(m.ID))
	})
}

// Log appends a line to messages.jsonl from the JSON that the seed's logger reads from standard input:
// wrapped ({"session_path": …, "conversation_data": {…}}) or only the five fields. Unknown fields are kept. A
// session_path of another folder is refused. A conversation that is there already is not logged again; added
// says whether it was.
func (f *Folder) Log(raw []byte) (added bool, err error) {
	n, line, err := f.logLine(raw)
	if err != nil {
		return false, err
	}
	d, done, err := f.writing()
	if err != nil {
		return false, err
	}
	defer done()
	has, err := d.hasLogged(n)
	if err != nil || has {
		return false, err
	}
	size, half, err := d.end(messagesName)
	if err != nil {
		return false, err
	}
	if half {
		line = append([]byte{'\n'}, line...)
	}
	return true, d.commit([]part{{File: messagesName, At: size, Text: line}})
}

// LoggedPath returns the session_path of the logger's input; empty: there is none.
func LoggedPath(raw []byte) (string, error) {
	in, err := parseLogged(raw)
	return in.Path, err
}

// logged is the logger's input: a conversation with a path, or both in an object.
type logged struct {
	message `json:",inline"`
	Path    string         `json:"session_path,omitzero"`
	Data    *logged        `json:"conversation_data,omitzero"`
	Rest    jsontext.Value `json:",unknown"`
}

// parseLogged returns the conversation without the object around it, and with its path.
func parseLogged(raw []byte) (logged, error) {
	var in logged
	if err := (file.Content{File: "the JSON on standard input", Text: raw}).Decode(logBytesMax, &in); err != nil {
		return logged{},
			fmt.Errorf("log a conversation: %w; give one object, wrapped in conversation_data or flat, with conversation_id, timestamp and summary as texts, files_created (of path and summary) and agents_used as lists", err)
	}
	if in.Data != nil {
		in.Data.Path = in.Path
		in = *in.Data
	}
	return in, nil
}

// logLine returns the number of a conversation and its line: the five fields in order, then the others.
func (f *Folder) logLine(raw []byte) (n int, line []byte, err error) {
	in, err := parseLogged(raw)
	if err != nil {
		return 0, nil, err
	}
	if in.Path != "" && !f.is(in.Path) {
		return 0, nil,
			fmt.Errorf("log a conversation: session_path is %s, but this session is %s; select the other one with --path", in.Path, f.path)
	}
	n = conversationNumber(in.ID)
	if n == 0 || n > conversationsMax {
		return 0, nil, fmt.Errorf("log a conversation: conversation_id is %q; it must be conv_ and a number of three digits or more", in.ID)
	}
	in.Path, in.Data = "", nil
	return n, jsonLine(in), nil
}

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
