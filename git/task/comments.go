package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/git/anchor"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	commentBytesMax = 10_000
	commentsMax     = 500 // of one task; see MakeRoom
	quoteBytesMax   = anchor.LineBytesMax
	noteBytesMax    = 900      // of an answer's note; the whole text is in a file
	commentsFileMax = 16 << 20 // bytes: more than that many comments have
)

// Comment is what a person said about a line, a file or the whole task. It begins a thread, which stays over the rounds.
type Comment struct {
	ID    int    `json:"id,omitempty"` // from 1
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"` // from 1; 0: the whole file
	Old   bool   `json:"old,omitempty"`  // the line is one of the old file
	Quote string `json:"quote,omitempty"`
	Text  string `json:"text"`

	Round    int  `json:"round,omitempty"`    // in which it was said, from 1
	Sent     int  `json:"sent,omitempty"`     // the round whose request has sent it; 0: none has
	Resolved bool `json:"resolved,omitempty"` // a person said so

	Commit string   `json:"commit,omitempty"`  // the content that it is about; empty: not known
	Hunk   []string `json:"hunk,omitempty"`    // the lines around its line, in the file where it was said; none: not known
	HunkAt int      `json:"hunk_at,omitempty"` // the place of its line among them, from 0
}

// New reports whether the next request sends a comment.
func (c Comment) New() bool { return c.Sent == 0 && !c.Resolved }

// Comments are all comments, those of earlier rounds too. The error says that the file is not one that Fairlead wrote.
func (t Review) Comments() (all []Comment, err error) {
	name := filepath.Join(t.Run, CommentsName)
	from, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer from.Close()
	read := json.NewDecoder(io.LimitReader(from, commentsFileMax))
	read.DisallowUnknownFields()
	if err = read.Decode(&all); err == nil {
		err = CheckComments(all)
	}
	if err != nil {
		return nil, fmt.Errorf("the comments in %s cannot be read: %w; repair the file, or remove it with all comments", name, err)
	}
	return all, nil
}

// SetComments replaces them. The file is whole at any time.
func (t Review) SetComments(all []Comment) error {
	path := filepath.Join(t.Run, CommentsName)
	if len(all) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return file.StoreJSON(path, all)
}

// MakeRoom leaves room for one more comment: at the limit the oldest resolved one goes.
func MakeRoom(all []Comment) []Comment {
	if len(all) < commentsMax {
		return all
	}
	if at := slices.IndexFunc(all, func(c Comment) bool { return c.Resolved }); at >= 0 {
		return slices.Delete(slices.Clone(all), at, at+1)
	}
	return all
}

// CheckComments says what is wrong with comments.
func CheckComments(all []Comment) error {
	if len(all) > commentsMax {
		return fmt.Errorf("there are %d comments already, and none of them is resolved; resolve one first", commentsMax)
	}
	for _, c := range all {
		switch {
		case strings.TrimSpace(c.Text) == "" || len(c.Text) > commentBytesMax:
			return fmt.Errorf("a comment has 1 to %d bytes", commentBytesMax)
		case c.File != "" && !filepath.IsLocal(c.File):
			return errors.New("the file is not one of the repository; name it as `fairlead diff` does")
		case c.Line < 0 || len(c.Quote) > quoteBytesMax:
			return fmt.Errorf("the line is a number from 1, and its text has at most %d bytes", quoteBytesMax)
		case c.ID < 1 || c.Round < 0 || c.Sent < 0 || c.Commit != "" && commits(c.Commit) != nil:
			return errors.New("the number, the rounds or the commit of a comment are not what Fairlead writes")
		case len(c.Hunk) > 2*anchor.Around+1 || c.HunkAt < 0 || c.HunkAt > 0 && c.HunkAt >= len(c.Hunk) ||
			slices.ContainsFunc(c.Hunk, func(line string) bool { return len(line) > quoteBytesMax }):
			return fmt.Errorf("the text around a comment has at most %d lines of %d bytes", 2*anchor.Around+1, quoteBytesMax)
		}
	}
	return nil
}

// Line is the text of a line of a file in the newest content, for a comment on it. If the task has deleted the file, it is
// one of the old file. The error says that there is no such file or line. Line 0 is the whole file, which has no text.
func (t Review) Line(ctx context.Context, file string, line int) (text string, old bool, err error) {
	commit, err := t.Newest(ctx)
	if err != nil {
		return "", false, err
	}
	content, err := t.ask(ctx, nil, "cat-file", "blob", commit+":"+file)
	if worktree.GitSaidNo(err) {
		if commit, err = t.Before(ctx, commit); err != nil {
			return "", false, err
		}
		content, err = t.ask(ctx, nil, "cat-file", "blob", commit+":"+file)
		old = true
	}
	if worktree.GitSaidNo(err) {
		return "", false,
			fmt.Errorf("task %s has no file %s; name it as `fairlead diff %s` does, from the top of the repository", t.ID,
				clip.Text(file, quoteBytesMax), t.ID)
	}
	if err != nil || line == 0 {
		return "", old, err
	}
	rows := strings.Split(content, "\n")
	if line > len(rows) {
		return "", false, fmt.Errorf("the last line of %s is %d", file, len(rows))
	}
	return clip.To(strings.ToValidUTF8(rows[line-1], "\uFFFD"), quoteBytesMax), old, nil
}

const (
	openToldMax   = 50  // comments of earlier rounds that a request names
	openBytesTold = 200 // of each
)

// RequestText is what an agent is told, and a short note about it. Both are empty if there is nothing to say. It has the comments that
// are new; open ones of earlier rounds follow in short as what was said before.
func RequestText(text string, all []Thread) (words, note string) {
	text = strings.TrimSpace(text)
	var b strings.Builder
	if text != "" {
		b.WriteString(text + "\n")
	}
	fresh, before := 0, []Thread(nil)
	for _, c := range all {
		switch {
		case c.New():
			fresh++
			fmt.Fprintf(&b, "\n%s: %s\n", c.place(), strings.TrimSpace(c.Text))
			if quote := strings.TrimSpace(c.Quote); quote != "" {
				fmt.Fprintf(&b, "    the line: %s\n", quote)
			}
		case c.State == ThreadOpen:
			before = append(before, c)
		}
	}
	if b.Len() == 0 {
		return "", ""
	}
	if len(before) > 0 {
		b.WriteString("\nSaid in earlier rounds, and still open:\n")
	}
	for _, c := range before[:min(len(before), openToldMax)] {
		line, _, _ := strings.Cut(strings.TrimSpace(c.Text), "\n")
		fmt.Fprintf(&b, "- %s (round %d): %s\n", c.place(), c.Round, clip.Text(line, openBytesTold))
	}
	if more := len(before) - openToldMax; more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	switch note = text; {
	case text == "" && fresh == 1:
		note = "1 comment"
	case text == "":
		note = fmt.Sprintf("%d comments", fresh)
	}
	return b.String(), clip.Text(note, noteBytesMax)
}

// place names where a comment stands now, for an agent.
func (t Thread) place() string {
	at := t.Now
	if t.Gone {
		at = At{t.File, t.Line, t.Old}
	}
	where := cmp.Or(at.File, "all of it")
	if at.Line > 0 {
		where += ":" + strconv.Itoa(at.Line)
	}
	if at.Old {
		where += " (a line that you deleted)"
	}
	if t.Gone {
		where += " (which is gone)"
	}
	return where
}
