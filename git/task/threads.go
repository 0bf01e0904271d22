package task

import (
	"context"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/anchor"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// The states of a thread.
const (
	ThreadOpen     = "open"     // said, and nothing of it has changed since
	ThreadChanged  = "changed"  // the line or the file that it is about has changed since
	ThreadResolved = "resolved" // a person said so
)

// At is a place in a file: that of a thread.
type At struct {
	File string // empty: the whole task
	Line int    // from 1; 0: the whole file
	Old  bool   // the line is one of the old file
}

// Thread is a comment at its place in some content of the task.
type Thread struct {
	Comment
	State string
	Now   At
	Gone  bool // the file or the text that it is about is not there; Now is empty
}

// Thread is the comment where it was said.
func (c Comment) Thread() Thread {
	state := ThreadOpen
	if c.Resolved {
		state = ThreadResolved
	}
	return Thread{Comment: c, State: state, Now: At{c.File, c.Line, c.Old}}
}

// threadFilesMax is how many files are read for the places of threads. A thread of another file stays where it was said.
const threadFilesMax = 200

// Threads finds the places of comments in the content of a commit, compared with another one.
func (t Review) Threads(ctx context.Context, all []Comment, from, to string) ([]Thread, error) {
	if err := commits(from, to); err != nil {
		return nil, err
	}
	look := looking{t: t, texts: map[string]*textIn{}, renames: map[string]map[string]string{}}
	var threads []Thread
	for _, c := range all {
		thread := c.Thread()
		if c.File != "" && c.Commit != to {
			now, changed, err := look.place(ctx, c, from, to)
			if err != nil {
				return nil, err
			}
			thread.Now, thread.Gone = now, now.File == ""
			if changed && !c.Resolved {
				thread.State = ThreadChanged
			}
		}
		threads = append(threads, thread)
	}
	return threads, nil
}

// Anchored is a comment with the text around its line, as the content of a commit has it, compared with another one. Without such a text,
// because the person looked at other content, it is about its quote alone.
func (t Review) Anchored(ctx context.Context, c Comment, from, to string) (Comment, error) {
	if err := commits(from, to); err != nil {
		return c, err
	}
	if c.Commit = to; c.File == "" || c.Line == 0 {
		return c, nil
	}
	look := looking{t: t, texts: map[string]*textIn{}, renames: map[string]map[string]string{}}
	at, name := to, c.File
	if c.Old {
		at = from
		old, err := look.oldName(ctx, c.File, from, to)
		if err != nil {
			return c, err
		}
		name = old
	}
	text, err := look.text(ctx, at, name)
	if err != nil {
		return c, err
	}
	a := anchor.Of(text.rows, c.Line)
	quote := strings.TrimSpace(anchor.Text(c.Quote))
	if len(a.Lines) > 0 && quote == "" {
		c.Quote = clip.To(strings.TrimSpace(a.Lines[a.At]), quoteBytesMax)
	}
	switch {
	case len(a.Lines) > 0 && strings.HasPrefix(strings.TrimSpace(a.Lines[a.At]), quote):
		c.Hunk, c.HunkAt = a.Lines, a.At
	case quote != "":
		c.Hunk, c.HunkAt = []string{anchor.Text(c.Quote)}, 0
	}
	return c, nil
}

// textIn is a file of a commit.
type textIn struct {
	id   string // of its content; empty: there is no such file
	rows []string
}

// looking reads each file once.
type looking struct {
	t       Review
	texts   map[string]*textIn
	renames map[string]map[string]string // by the two commits: the new names by the old ones
}

func (l *looking) text(ctx context.Context, commit, name string) (*textIn, error) {
	key := commit + ":" + name
	if known := l.texts[key]; known != nil {
		return known, nil
	}
	found := &textIn{}
	id, err := l.t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", key)
	switch {
	case worktree.GitSaidNo(err):
	case err != nil:
		return nil, err
	default:
		found.id = id
		size, err := l.t.Size(ctx, id)
		if err != nil {
			return nil, err
		}
		if size <= marksBytesMax {
			text, err := l.t.ask(ctx, nil, "cat-file", "blob", id)
			if err != nil && !worktree.GitSaidNo(err) { // a folder, or a submodule
				return nil, err
			}
			found.rows = anchor.Lines(text)
		}
	}
	l.texts[key] = found
	return found, nil
}

// renamed are the files that have another name in a commit than in an earlier one.
func (l *looking) renamed(ctx context.Context, from, to string) (map[string]string, error) {
	key := from + " " + to
	if known := l.renames[key]; known != nil {
		return known, nil
	}
	names := map[string]string{}
	said, err := l.t.ask(ctx, nil, append([]string{"diff", "--name-status", "-z", "--diff-filter=R"}, append(slices.Clone(plainDiff), from, to, "--")...)...)
	if err != nil && !worktree.GitSaidNo(err) { // the repository may not have the commit any more
		return nil, err
	}
	if err == nil {
		fields := worktree.Zeroed(said) // R100 OLD NEW
		for i := 0; i+2 < len(fields); i += 3 {
			names[fields[i+1]] = fields[i+2]
		}
	}
	l.renames[key] = names
	return names, nil
}

// oldName is the name of a file in the commit that a content is compared with.
func (l *looking) oldName(ctx context.Context, name, from, to string) (string, error) {
	if was, err := l.text(ctx, from, name); err != nil || was.id != "" {
		return name, err
	}
	names, err := l.renamed(ctx, from, to)
	for old, now := range names {
		if now == name {
			return old, err
		}
	}
	return name, err
}

// place finds the place of a comment in the content of a commit, and whether the text of the comment's line has changed. The place is
// empty if the text is not there.
func (l *looking) place(ctx context.Context, c Comment, from, to string) (now At, changed bool, err error) {
	if len(l.texts) >= threadFilesMax {
		return At{c.File, c.Line, c.Old}, false, nil
	}
	name := c.File
	text, err := l.text(ctx, to, name)
	if err != nil {
		return now, false, err
	}
	if text.id == "" && c.Commit != "" {
		names, err := l.renamed(ctx, c.Commit, to)
		if err != nil {
			return now, false, err
		}
		if new, is := names[name]; is {
			name = new
			if text, err = l.text(ctx, to, name); err != nil {
				return now, false, err
			}
		}
	}
	if c.Old {
		return l.oldPlace(ctx, c, name, text, from, to)
	}
	switch {
	case text.id == "":
		return now, true, nil
	case c.Line > 0 && len(c.Hunk) == 0:
		return At{File: name, Line: c.Line}, false, nil // its text is not known
	case c.Line > 0:
		s := anchor.Find(text.rows, anchor.Anchor{Lines: c.Hunk, At: c.HunkAt, Line: c.Line})
		if s.Line == 0 {
			return now, true, nil
		}
		return At{File: name, Line: s.Line}, s.Changed, nil
	}
	if c.Commit != "" {
		was, err := l.text(ctx, c.Commit, c.File)
		if err != nil {
			return now, false, err
		}
		changed = was.id != "" && was.id != text.id
	}
	return At{File: name}, changed, nil
}

// oldPlace is where a comment on a line of the old file stands. Such a line has changed if the new content has it again.
func (l *looking) oldPlace(ctx context.Context, c Comment, name string, text *textIn, from, to string) (now At, changed bool, err error) {
	a := anchor.Anchor{Lines: c.Hunk, At: c.HunkAt, Line: c.Line}
	if s := anchor.Find(text.rows, a); s.Line > 0 && !s.Changed {
		return At{File: name, Line: s.Line}, true, nil
	}
	old, err := l.oldName(ctx, name, from, to)
	if err != nil {
		return now, false, err
	}
	was, err := l.text(ctx, from, old)
	if err != nil {
		return now, false, err
	}
	switch s := anchor.Find(was.rows, a); {
	case was.id == "":
		return now, true, nil
	case len(c.Hunk) == 0:
		return At{name, c.Line, true}, false, nil
	case s.Line == 0:
		return now, true, nil
	default:
		return At{name, s.Line, true}, s.Changed, nil
	}
}

// About is the text that a thread is about, a line each; the commented one begins with >. It is for a thread whose place is gone.
func (c Comment) About() (lines []string) {
	for i, line := range c.Hunk {
		mark := "  "
		if i == c.HunkAt {
			mark = "> "
		}
		lines = append(lines, mark+line)
	}
	return lines
}
