package task

import (
	"context"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

const (
	marksMax      = 100     // files that are looked at
	marksBytesMax = 1 << 20 // bytes of such a file
)

// markedConflict is a conflict as git writes it into a file.
type markedConflict struct {
	theirs string // the lines of the other side
	of     string // the other side's name
	lines  int    // of the longer side
}

// markedConflicts finds the whole conflicts in a text.
func markedConflicts(text string) (all []markedConflict) {
	const none, ours, base, theirs = 0, 1, 2, 3
	at := none
	var lines [4]int
	var side strings.Builder
	for line := range strings.Lines(text) {
		switch word := strings.TrimRight(line, "\r\n"); {
		case strings.HasPrefix(word, "<<<<<<< "):
			at, lines = ours, [4]int{}
			side.Reset()
		case at == ours && strings.HasPrefix(word, "||||||| "):
			at = base
		case (at == ours || at == base) && word == "=======":
			at = theirs
		case at == theirs && strings.HasPrefix(word, ">>>>>>> "):
			at = none
			all = append(all, markedConflict{side.String(), strings.TrimPrefix(word, ">>>>>>> "), max(lines[ours], lines[theirs])})
		default:
			lines[at]++
			if at == theirs {
				side.WriteString(line)
			}
		}
	}
	return all
}

// conflictLines counts the lines of the conflicts in files of a tree that git has merged.
func (t Task) conflictLines(ctx context.Context, tree string, names []string) (lines int) {
	for _, name := range names[:min(len(names), marksMax)] {
		for _, c := range markedConflicts(t.textAt(ctx, tree, name)) {
			lines += c.lines
		}
	}
	return lines
}

// leftConflicts lists files of a commit with a conflict that git has written there and that is not resolved: the name at its end is that of
// a branch or commit, and the file has these lines there. A file that had conflicts in `from` already, such as one that explains them, is
// none of them.
func (t Task) leftConflicts(ctx context.Context, from, commit string) (left []string, err error) {
	said, err := t.ask(ctx, nil, "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", "--text", "-G^>>>>>>> ", from,
		commit)
	if err != nil {
		return nil, err
	}
	names := worktree.Zeroed(said)
	for _, name := range names[:min(len(names), marksMax)] {
		now := markedConflicts(t.textAt(ctx, commit, name))
		if len(now) == 0 || len(markedConflicts(t.textAt(ctx, from, name))) > 0 {
			continue
		}
		for _, c := range now {
			if of := t.named(ctx, c.of); of != "" && c.theirs != "" && strings.Contains(t.textAt(ctx, of, name), c.theirs) {
				left = append(left, name)
				break
			}
		}
	}
	return left, nil
}

// textAt is a file of a commit; empty: there is none, or it is too large to look at.
func (t Task) textAt(ctx context.Context, commit, name string) string {
	id, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", commit+":"+name)
	if err != nil {
		return ""
	}
	if bytes, err := (Review{t}).Size(ctx, id); err != nil || bytes > marksBytesMax {
		return ""
	}
	text, err := t.own().Run(ctx, worktree.GitWorkMax, asStored, nil, "cat-file", "blob", id)
	if err != nil {
		return ""
	}
	return text
}

// named is the commit that the end of a conflict names, as git writes it: a branch, or a commit and its message; empty: it names none.
func (t Task) named(ctx context.Context, label string) string {
	word, _, _ := strings.Cut(label, " ")
	if _, err := t.ask(ctx, nil, "check-ref-format", "refs/heads/"+word); err != nil {
		return ""
	}
	for _, ref := range []string{
		moreRefs(t) + "heads/" + word, "refs/heads/" + strings.TrimPrefix(word, "origin/"), "refs/remotes/" + word, word,
	} {
		if ref == word && strings.Trim(word, "0123456789abcdef") != "" {
			continue // not an id
		}
		if id, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}"); err == nil {
			return id
		}
	}
	return ""
}
