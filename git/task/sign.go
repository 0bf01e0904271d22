package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// signMax bounds one signature: a person may have to touch a key. Nothing can ask for a password here.
const signMax = time.Minute

// signs reports whether the person's git signs commits (commit.gpgSign). Landing then signs what it makes, with the person's settings.
// Programs that only the repository's own settings name are refused: programs of agents may have written these.
func (t Task) signs(ctx context.Context) (bool, error) {
	on, err := t.ask(ctx, nil, "config", "--type=bool", "--get", "commit.gpgSign")
	if err != nil && !worktree.GitHasNone(err) {
		return false, err
	}
	if on != "true" {
		return false, nil
	}
	said, err := t.ask(ctx, nil, "config", "--null", "--show-scope", "--get-regexp", `^gpg\.(.*\.)?(program|defaultkeycommand)$`)
	if err != nil && !worktree.GitHasNone(err) {
		return false, err
	}
	scope, fields := map[string]string{}, worktree.Zeroed(said)
	for i := 0; i+1 < len(fields); i += 2 { // the last one counts
		key, _, _ := strings.Cut(fields[i+1], "\n")
		scope[key] = fields[i]
	}
	for key, of := range scope {
		if of == "local" || of == "worktree" {
			return false, &Blocked{fmt.Sprintf("git signs your commits here (commit.gpgSign), and %s is set in the repository's own configuration, which programs of agents may have written; set it with `git config --global`, then merge again", key)}
		}
	}
	return true, nil
}

// landing makes the commit that lands, signed if the person's commits are.
func (t Task) landing(ctx context.Context, tree string, parents ...string) (string, error) {
	sign, err := t.signs(ctx)
	if err != nil {
		return "", err
	}
	if !sign {
		return t.commit(ctx, nil, tree, t.message(), parents...)
	}
	return t.signed(ctx, nil, tree, t.message(), parents...)
}

// signed makes a signed commit.
func (t Task) signed(ctx context.Context, env []string, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", "-S", "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	said, err := t.own().Run(ctx, signMax, append(env, asStored...), writes(message), append(args, tree)...)
	if worktree.GitSaidNo(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return "", &Blocked{fmt.Sprintf("git signs your commits here (commit.gpgSign), and the commit that lands could not be signed: %v; make `git commit -S` work in %s without a question (ssh-add, gpg-agent), or turn commit.gpgSign off, then merge again", err, t.Repo)}
	}
	return strings.TrimSpace(said), err
}

// signedAgain makes the commits after tip again, with signatures, if the person's commits have some. They were replayed in a view without
// the person's keys.
func (t Task) signedAgain(ctx context.Context, tip, last string) (string, error) {
	sign, err := t.signs(ctx)
	if err != nil || !sign || last == "" {
		return last, err
	}
	list, err := t.ask(ctx, nil, "rev-list", "--reverse", "--topo-order", tip+".."+last)
	if err != nil {
		return "", err
	}
	for _, commit := range strings.Fields(list) {
		said, err := t.ask(ctx, nil, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--date=raw", "--format=%T%x00%an%x00%ae%x00%ad%x00%B", commit)
		if err != nil {
			return "", err
		}
		is := strings.SplitN(said, "\x00", 5)
		if len(is) != 5 {
			return "", errors.New("git log printed something that is not a commit")
		}
		author := []string{"GIT_AUTHOR_NAME=" + is[1], "GIT_AUTHOR_EMAIL=" + is[2], "GIT_AUTHOR_DATE=" + is[3]}
		if tip, err = t.signed(ctx, author, is[0], is[4]+"\n", tip); err != nil {
			return "", err
		}
	}
	return tip, nil
}
