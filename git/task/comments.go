package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	commentBytesMax = 10_000
	commentsMax     = 500 // of one request
	quoteBytesMax   = 400
	noteBytesMax    = 900 // of an answer's note; the whole text is in a file
)

// Comment is a person's comment on a line, which is not sent yet.
type Comment struct {
	ID    int    `json:"id,omitempty"` // from 1
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Old   bool   `json:"old,omitempty"` // the line is one of the old file
	Quote string `json:"quote,omitempty"`
	Text  string `json:"text"`
}

// Comments are those that are not sent yet.
func (t Review) Comments() (all []Comment, err error) {
	if err := file.LoadJSON(filepath.Join(t.Run, CommentsName), &all); err != nil {
		return nil, err
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

// CheckComments says what is wrong with comments.
func CheckComments(all []Comment) error {
	if len(all) > commentsMax {
		return fmt.Errorf("there are %d comments already; send them with a request first", commentsMax)
	}
	for _, c := range all {
		switch {
		case strings.TrimSpace(c.Text) == "" || len(c.Text) > commentBytesMax:
			return fmt.Errorf("a comment has 1 to %d bytes", commentBytesMax)
		case c.File != "" && !filepath.IsLocal(c.File):
			return errors.New("the file is not one of the repository; name it as `fairlead diff` does")
		case c.Line < 0 || len(c.Quote) > quoteBytesMax:
			return fmt.Errorf("the line is a number from 1, and its text has at most %d bytes", quoteBytesMax)
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

// RequestText is what an agent is told, and a short note about it. Both are empty if there is nothing to say.
func RequestText(text string, all []Comment) (words, note string) {
	text = strings.TrimSpace(text)
	var b strings.Builder
	if text != "" {
		b.WriteString(text + "\n")
	}
	for _, c := range all {
		where := c.File
		if c.Line > 0 {
			where += ":" + strconv.Itoa(c.Line)
		}
		if c.Old {
			where += " (a line that you deleted)"
		}
		fmt.Fprintf(&b, "\n%s: %s\n", where, strings.TrimSpace(c.Text))
		if quote := strings.TrimSpace(c.Quote); quote != "" {
			fmt.Fprintf(&b, "    the line: %s\n", quote)
		}
	}
	switch note = text; {
	case text == "" && len(all) == 1:
		note = "1 comment"
	case text == "" && len(all) > 1:
		note = fmt.Sprintf("%d comments", len(all))
	}
	return b.String(), clip.Text(note, noteBytesMax)
}
