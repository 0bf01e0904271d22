// Package store keeps Fairlead's own copy of a person's repository, which the clones of agents share.
//
// The copy is bare, one for each fairlead.yaml, at .fairlead/git. It has what the base branches and the person's
// remote-tracking refs reach, and nothing else. A clone has it as its alternate and as `origin`, so that `git fetch
// origin main` there gives the newest base, and no path of a clone leads into the person's .git.
//
//	s := store.Of(workspace)
//	err := s.Refresh(ctx, repo, "main")              // before each round
//	clone := worktree.Clone{Repo: worktree.Git{Dir: repo}, Dir: dir, Store: s.Dir}
//	err = clone.Make(ctx, worktree.Start{Head: commit})
//
// The one promise: a commit that a clone was made from stays in the copy, whatever the person does with branches, and
// nothing that a repository names is run to make or refresh it.
package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	// sizeMax bounds the repository that is copied: ten times the largest ones that people are known to work in.
	sizeMax = 100e9

	packsMax = 50 // git looks into each of them for each object; as gc.autoPackLimit
)

// Store is a bare repository of Fairlead's.
type Store struct {
	Dir  string
	lock *os.File // this process's, while it changes the store
}

// Of is the store of the folder with fairlead.yaml.
func Of(workspace string) Store { return Store{Dir: filepath.Join(workspace, ".fairlead", "git")} }

// For is the store of the repository of a folder, for a run: another one than that of the workspace if the folder lies in another
// repository.
func For(workspace, folder string) Store {
	top := topOf(folder)
	if top == topOf(workspace) {
		return Of(workspace)
	}
	return Store{Dir: filepath.Join(workspace, ".fairlead", OthersDir, fmt.Sprintf("%.16x", sha256.Sum256([]byte(top))))}
}

// There is the folder of a store; empty: it has not been made.
func (s Store) There() string {
	if _, err := os.Lstat(filepath.Join(s.Dir, "HEAD")); err != nil {
		return ""
	}
	return s.Dir
}

// OthersDir has the stores of other repositories than that of the workspace, in .fairlead.
const OthersDir = "gits"

// topOf is the folder of the repository in which a folder lies; the root folder if it lies in none.
func topOf(folder string) string {
	for folder != filepath.Dir(folder) {
		if _, err := os.Lstat(filepath.Join(folder, ".git")); err == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

// onForge are the refs of what a task's pull request has on the forge. Its agent is told to fetch them.
var onForge = []string{"refs/fairlead/tasks/*.base", "refs/fairlead/tasks/*.remote"}

func (s Store) git(ctx context.Context, args ...string) (string, error) {
	env := []string{"GIT_DIR=" + s.Dir, "GIT_NO_REPLACE_OBJECTS=1"}
	g := worktree.Git{Dir: s.Dir}
	if s.lock != nil {
		var err error
		if g, err = g.Holding(s.lock); err != nil {
			return "", err
		}
	}
	said, err := g.Run(ctx, worktree.GitWorkMax, env, nil, slices.Concat(worktree.Pinned, args)...)
	return strings.TrimSuffix(said, "\n"), err
}

// Refresh brings the newest commits of the bases, and of the person's remote-tracking refs, from the repository whose top
// folder is repo. The first call makes the store. Bases of earlier calls are refreshed, too. A repository of which git
// has only a part (a partial clone) is shared, and not copied.
func (s Store) Refresh(ctx context.Context, repo string, bases ...string) error {
	release, err := s.hold()
	if err != nil {
		return err
	}
	defer release()
	from := worktree.Git{Dir: repo}
	if err := s.make(ctx, from); err != nil {
		return fmt.Errorf("make the copy of the repository in %s: %w", s.Dir, err)
	}
	before, err := s.git(ctx, "for-each-ref", "--format=%(refname)", "refs/heads/")
	if err != nil {
		return err
	}
	theirs, err := from.Ask(ctx, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/", "refs/fairlead/tasks/")
	if err != nil {
		return err
	}
	there := map[string]string{}
	for line := range strings.Lines(theirs) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		there[name] = id
	}
	var wanted []string
	for _, name := range strings.Fields(before) {
		if there[name] != "" {
			wanted = append(wanted, name)
		} else if _, err := s.git(ctx, "update-ref", "-d", name); err != nil { // its name may be the folder of another one
			return err
		}
	}
	for _, base := range bases {
		if name := "refs/heads/" + base; there[name] == "" {
			return fmt.Errorf("there is no branch %s with a commit in %s", base, repo)
		} else if !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	if err := s.take(ctx, repo, wanted, there); err != nil {
		return fmt.Errorf("bring the newest commits of %s into %s: %w", repo, s.Dir, err)
	}
	return s.tidy(ctx)
}

func (s Store) take(ctx context.Context, repo string, wanted []string, there map[string]string) error {
	if s.shares() {
		for name := range there {
			if slices.ContainsFunc(onForge, func(pattern string) bool { is, _ := path.Match(pattern, name); return is }) {
				wanted = append(wanted, name)
			}
		}
		for _, name := range wanted {
			if _, err := s.git(ctx, "update-ref", name, there[name]); err != nil {
				return err
			}
		}
		return nil
	}
	args := slices.Concat(worktree.FetchOne, []string{
		"--prune", "--", repo, "+refs/remotes/*:refs/remotes/*", "+" + onForge[0] + ":" + onForge[0], "+" + onForge[1] + ":" + onForge[1],
	})
	for _, name := range wanted {
		args = append(args, "+"+name+":"+name)
	}
	_, err := s.git(ctx, args...)
	return err
}

// make makes the store if there is none.
func (s Store) make(ctx context.Context, from worktree.Git) error {
	if _, err := os.Lstat(filepath.Join(s.Dir, "HEAD")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes, err := sizeOf(ctx, from); err != nil {
		return err
	} else if bytes > sizeMax {
		return fmt.Errorf("the repository has %s, and %s are the most that Fairlead copies; work in a shallow or a partial clone of it",
			file.Size(bytes), file.Size(sizeMax))
	}
	format, err := from.Ask(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	making := s.Dir + worktree.MakingSuffix
	for _, left := range []string{making, s.Dir} { // of a process that died, or of a clean-up that went half way
		if err := os.RemoveAll(left); err != nil {
			return err
		}
	}
	above := worktree.Git{Dir: filepath.Dir(s.Dir)}
	init := append(slices.Clone(worktree.Pinned), "init", "--quiet", "--bare", "--template=", "--object-format="+strings.TrimSpace(format),
		"--", making)
	if _, err := above.Run(ctx, worktree.GitWorkMax, nil, nil, init...); err != nil {
		return err
	}
	// A commit that a clone has may be on no branch any more.
	settings := "[gc]\n\tauto = 0\n\tpruneExpire = never\n[maintenance]\n\tauto = false\n"
	config, err := os.OpenFile(filepath.Join(making, "config"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := config.WriteString(settings); err != nil {
		return errors.Join(err, config.Close())
	}
	if err := config.Close(); err != nil {
		return err
	}
	if partial, err := isPartial(ctx, from); err != nil {
		return err
	} else if partial {
		objects, err := from.Ask(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(making, "objects", "info"), 0o755); err != nil { //nolint:gosec // as git makes it
			return err
		}
		if err := os.WriteFile(filepath.Join(making, "objects", "info", "alternates"), []byte(objects),
			0o644); err != nil { //nolint:gosec // as git writes it
			return err
		}
	}
	return os.Rename(making, s.Dir)
}

func isPartial(ctx context.Context, from worktree.Git) (bool, error) {
	_, err := from.Ask(ctx, "config", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor)$`)
	if worktree.GitHasNone(err) {
		return false, nil
	}
	return err == nil, err
}

// shares reports whether the store has the person's objects and not a copy.
func (s Store) shares() bool {
	_, err := os.Lstat(filepath.Join(s.Dir, "objects", "info", "alternates"))
	return err == nil
}

// sizeOf is what the objects of a repository take.
func sizeOf(ctx context.Context, g worktree.Git) (bytes int64, err error) {
	said, err := g.Ask(ctx, "count-objects", "-v")
	for line := range strings.Lines(said) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name == "size" || name == "size-pack" {
			kib, fault := strconv.ParseInt(value, 10, 64)
			bytes, err = bytes+kib<<10, cmp.Or(err, fault)
		}
	}
	return bytes, err
}

// tidy joins the packs when there are many. It removes no object.
func (s Store) tidy(ctx context.Context) error {
	packs, err := filepath.Glob(filepath.Join(s.Dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) <= packsMax {
		return err
	}
	_, err = s.git(ctx, "repack", "-a", "-d", "--quiet", "--keep-unreachable")
	return err
}

// hold makes other processes wait: steps of several tasks refresh one store. Each git of this process holds the lock, too, and may outlive
// it. So git's own locks that are there afterwards are of one that was killed, and are removed.
func (s *Store) hold() (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o700); err != nil {
		return nil, err
	}
	if s.lock, err = file.Locked(s.Dir + ".lock"); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(s.Dir, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(s.Dir, "objects"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".lock"):
			return os.Remove(path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has not been made yet
		return nil, errors.Join(fmt.Errorf("remove what a killed git has left in %s: %w", s.Dir, err), s.lock.Close())
	}
	return func() { s.lock.Close() }, nil
}
