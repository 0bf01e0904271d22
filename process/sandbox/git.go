package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// GitView is the view in which git of Fairlead's opens what an agent may write. Of the machine it has the given places, the system's
// folders and git's own, and it has no network. dir is the folder to start in, as whose owner git runs.
func GitView(dir string, given ...Place) View {
	v := View{Dir: dir, Alone: true, Places: slices.Clone(given)}
	for _, p := range gitFolders() {
		v.Places = append(v.Places, Place{Path: p, Access: Read})
	}
	return v
}

// gitFolders are those of git's program outside of the system's folders.
var gitFolders = sync.OnceValue(func() (all []string) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil // the caller says so
	}
	real, _ := filepath.EvalSymlinks(program)
	parts, _ := exec.Command(program, "--exec-path").Output()
	for _, p := range []string{filepath.Dir(program), filepath.Dir(real), strings.TrimSpace(string(parts))} {
		inSystem := slices.ContainsFunc(systemFolders, func(s string) bool { return below(p, s) })
		if at, err := filepath.EvalSymlinks(p); err == nil && at == p && !inSystem && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
})

// gitTrial is what the trial of git's row runs in a repository: git as an agent has set it up, with its programs. $1 is a file of
// outside.
const gitTrial = `export HOME=/ GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
printf '#!/bin/sh\ntouch .git/ran "%s" "$1"\ncat\n' "$1" > .git/program
chmod +x .git/program
git config core.fsmonitor .git/program
git config filter.x.clean .git/program
git config filter.x.smudge .git/program
echo '* filter=x' > .git/info/attributes
mkdir -p .git/hooks
cp .git/program .git/hooks/post-index-change
echo "$2" > .git/objects/info/alternates
echo text > file
git status > /dev/null 2>&1
git add file > /dev/null 2>&1
test -e .git/ran && ! git cat-file -e "$3" 2> /dev/null`

// tryGit lets git do in a view what an agent may have set up in a repository: to run programs that write outside, and to read the
// objects of another repository. The error says what is not held.
func tryGit(ctx context.Context, a Ability) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fairlead-git-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	clone, other, mark := filepath.Join(dir, "clone"), filepath.Join(dir, "other"), filepath.Join(dir, "mark")
	run := func(attr View, argv ...string) (string, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // git, and this program
		cmd.Dir, cmd.WaitDelay = clone, probePatience
		if attr.By != "" {
			cmd.SysProcAttr = attr.Attr()
		}
		said, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
		}
		return strings.TrimSpace(string(said)), err
	}
	if err := errors.Join(os.Mkdir(clone, 0o700), os.WriteFile(mark+".secret", []byte(mark), 0o600)); err != nil {
		return err
	}
	for _, repo := range []string{clone, other} {
		if _, err := run(View{}, "git", "init", "--quiet", "--", repo); err != nil {
			return err
		}
	}
	secret, err := run(View{}, "git", "--git-dir="+filepath.Join(other, ".git"), "hash-object", "-w", "--", mark+".secret")
	if err != nil {
		return err
	}
	v := a.Apply(GitView(clone, Place{Path: clone, Access: Write}))
	argv, err := WrapView(exe, []string{"sh", "-ec", gitTrial, "sh", mark, filepath.Join(other, ".git", "objects"), secret}, v)
	if err != nil {
		return err
	}
	if _, err := run(v, argv...); err != nil {
		return fmt.Errorf("the trial of git in a view failed: %w", err)
	}
	if _, err := os.Lstat(mark); err == nil {
		return errors.New("a program that a repository names has written outside of the view of git")
	}
	return nil
}

// Whole is [Abilities] with git's row, which is tried once in a process: it takes some 30 ms more.
var Whole = sync.OnceValue(func() Ability {
	a := Abilities()
	a.Unheld = slices.Clone(a.Unheld)
	if a.By != ByNamespaces { // why there is no view is said already
		return a
	}
	if err := tryGit(context.Background(), a); err != nil {
		a.Why = append(slices.Clone(a.Why), Reason{Cause: CauseUnknown, What: err.Error()})
		return a
	}
	a.Git = true
	a.Unheld = slices.DeleteFunc(a.Unheld, func(r Row) bool { return r == RowGit })
	return a
})
