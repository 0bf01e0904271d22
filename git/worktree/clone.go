package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

const (
	stashesMax  = 1000    // of one clone; more are no person's and no agent's work
	stashLogMax = 1 << 20 // bytes of git's list of them
)

// AsStored makes git read objects as their ids say: without replacements, which any program can make, and without asking a
// remote for them.
var AsStored = []string{"GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1"}

// Pinned override what a person's own settings name and a fetch between two folders does not need.
var Pinned = []string{
	"-c", "credential.helper=", "-c", "core.sshCommand=false", "-c", "core.gitProxy=", "-c", "core.pager=cat", "-c",
	"core.attributesFile=" + os.DevNull,
	"-c", "core.alternateRefsCommand=true", "-c", "protocol.allow=never", "-c", "protocol.file.allow=always", "-c",
	"fetch.recurseSubmodules=false",
	"-c", "fetch.writeCommitGraph=false", "-c", "fetch.fsckObjects=true",
	// Faults of old programs that are in the history of many projects and endanger nothing.
	"-c", "fetch.fsck.zeroPaddedFilemode=warn", "-c", "fetch.fsck.missingSpaceBeforeDate=warn", "-c", "fetch.fsck.badTimezone=warn",
	"-c", "fetch.fsck.missingEmail=warn", "-c", "fetch.fsck.badEmail=warn", "-c", "fetch.fsck.missingNameBeforeEmail=warn",
}

// FetchOne begins a fetch between two folders. What the other one names as the source of missing objects is not asked.
var FetchOne = []string{
	"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--update-shallow",
	"--upload-pack=GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 git upload-pack",
}

// Clone is a folder with a git directory of its own, which shares the objects of a repository. An agent may write all of it,
// so no git uses its settings: git only serves commits from it, and the repository checks them.
type Clone struct {
	Repo Git    // the repository
	Dir  string // the clone
	Refs string // where the repository keeps what the clone has; it ends with a slash

	Store string // the repository whose objects it shares; empty: that of Repo
	Both  bool   // the objects of Repo are read for it, too
}

// noPush is where a run's clone pushes to instead of the repository. There is no such repository; git's message has these words.
const noPush = "(a run does not push: its branch comes into the repository after each step)"

// Start is what a clone begins with.
type Start struct {
	Branch string            // empty: a detached HEAD
	Head   string            // the commit
	Files  string            // a commit with the files, if those are others
	Others map[string]string // more refs, and their objects
	Empty  bool              // without files

	Base    string // a branch of the origin that the clone has, too; empty: none
	Ignored string // lines of ignored names, beside those of the repository
	NoPush  string // why it pushes nowhere, if it is not of a run
}

// Make makes the clone under another name first, so that one that exists is whole.
func (c Clone) Make(ctx context.Context, s Start) (err error) {
	making := Aside(c.Dir, MakingSuffix)
	if err := os.RemoveAll(making); err != nil { // of a process that died
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(making))
		}
	}()
	said, err := c.ask(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-object-format")
	if err != nil {
		return err
	}
	common, format, _ := strings.Cut(said, "\n")
	if err := c.begin(ctx, making, common, format, s); err != nil {
		return err
	}
	if err := c.bring(ctx, making, common, s); err != nil {
		return err
	}
	todo := [][]string{{"checkout", "--quiet", "--detach", s.Head}}
	switch {
	case s.Empty:
		todo = [][]string{{"update-ref", "--no-deref", "HEAD", s.Head}}
	case s.Branch != "":
		todo = [][]string{{"checkout", "--quiet", "--no-track", "-B", s.Branch, s.Head}}
	}
	if s.Base != "" {
		todo = append(todo, []string{"branch", "--quiet", "--force", "--track", s.Base, "refs/remotes/origin/" + s.Base})
	}
	for name, commit := range s.Others {
		todo = append(todo, []string{"update-ref", name, commit})
	}
	if s.Files != "" {
		todo = append(todo, []string{"restore", "--quiet", "--source=" + s.Files, "--worktree", "--", "."})
	}
	if err := c.Write(ctx, making, todo...); err != nil { // files may be those of an agent
		return err
	}
	return os.Rename(making, c.Dir)
}

// bring gives a clone the branches of its origin, whose objects it has, and fetches the commits that it lacks from the repository.
func (c Clone) bring(ctx context.Context, making, common string, s Start) error {
	origin := cmp.Or(c.Store, common)
	refs, err := Git{Dir: origin}.Run(ctx, GitWorkMax, append([]string{"GIT_DIR=" + origin}, AsStored...), nil,
		"for-each-ref", "--format=create refs/remotes/origin/%(refname:lstrip=2) %(objectname)", "refs/heads/")
	if err != nil {
		return err
	}
	in := Git{Dir: making} // no other program has written in it yet
	env := slices.Concat(in.Inside(), AsStored)
	if _, err := in.Run(ctx, GitWorkMax, env, feed(refs), "update-ref", "--stdin"); err != nil {
		return err
	}
	ids := slices.Concat([]string{s.Head, s.Files}, slices.Sorted(maps.Values(s.Others)))
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	said, err := in.Run(ctx, GitWorkMax, env, feed(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return err
	}
	lacks := ""
	for line := range strings.Lines(said) {
		if id, is := strings.CutSuffix(strings.TrimSpace(line), " missing"); is {
			lacks += id + "\n"
		}
	}
	if lacks == "" {
		return nil
	}
	_, err = in.Run(ctx, GitWorkMax, env, feed(lacks), slices.Concat(Pinned, FetchOne, []string{"--stdin", "--", common})...)
	return err
}

// Write runs git commands that write into a clone, which may be in another folder yet.
func (c Clone) Write(ctx context.Context, dir string, todo ...[]string) (err error) {
	c.Dir = dir
	in, err := c.Open(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, args := range todo {
		if _, err := in.Own(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the git directory of a clone, which has the objects of its origin behind it. It does not use git clone, which
// copies those of a shallow repository, and takes no hash from one without branches.
func (c Clone) begin(ctx context.Context, making, common, format string, s Start) error {
	if _, err := c.Repo.Run(ctx, GitWorkMax, []string{"GIT_DEFAULT_REF_FORMAT=files"}, nil, "init", "--quiet", "--template=",
		"--object-format="+format, "--", making); err != nil {
		return err
	}
	dir, origin := filepath.Join(making, ".git"), cmp.Or(c.Store, common)
	if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(filepath.Join(origin, "objects")+"\n"),
		0o644); err != nil { //nolint:gosec // as git writes it
		return err
	}
	settings, err := c.settings(ctx, origin, common, cmp.Or(s.NoPush, noPush))
	if err != nil {
		return err
	}
	return errors.Join(
		appendTo(filepath.Join(dir, "config"), configText(settings)),
		os.Mkdir(filepath.Join(dir, "info"), 0o755), //nolint:gosec // as git makes it
		sameFile(filepath.Join(common, "info", "attributes"), filepath.Join(dir, "info", "attributes"), ""),
		sameFile(filepath.Join(common, "info", "exclude"), filepath.Join(dir, "info", "exclude"), s.Ignored),
		sameFile(filepath.Join(origin, "shallow"), filepath.Join(dir, "shallow"), ""),
	)
}

// settings are those of a clone: who commits, what the repository does with line ends, where new
// commits of others are, that nothing is signed, and that nothing is pushed to the origin or the repository, also by a relative path.
// They are keys and values in turns.
func (c Clone) settings(ctx context.Context, origin, common, noPush string) (all []string, err error) {
	text, err := c.ask(ctx, "config", "-z", "--get-regexp", `^(core\.(autocrlf|eol)|user\.(name|email))$`)
	if err != nil && !GitHasNone(err) {
		return nil, err
	}
	for _, entry := range Zeroed(text) {
		name, value, has := strings.Cut(entry, "\n")
		if !has {
			value = "true"
		}
		all = append(all, name, value)
	}
	for _, folder := range []string{origin, common, strings.TrimSuffix(common, "/.git"), c.Repo.Dir} {
		for _, address := range []string{folder, "file://" + folder} {
			all = append(all, "url."+noPush+".pushInsteadOf", address)
		}
	}
	for _, address := range []string{"../", "./"} {
		all = append(all, "url."+noPush+".pushInsteadOf", address)
	}
	return append(all, "commit.gpgSign", "false", "tag.gpgSign", "false", "remote.origin.url", origin, "remote.origin.fetch",
		"+refs/heads/*:refs/remotes/origin/*"), nil
}

// appendTo adds lines to the end of a file.
func appendTo(path, lines string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	return errors.Join(err, f.Close())
}

// sameFile copies a file if there is one, and adds lines to it.
func sameFile(from, to, more string) error {
	text, err := os.ReadFile(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(text) > 0 && more != "" && text[len(text)-1] != '\n' {
		more = "\n" + more
	}
	if err != nil && more == "" {
		return nil
	}
	return os.WriteFile(to, append(text, more...), 0o644) //nolint:gosec // as git writes it
}

// ask asks the repository.
func (c Clone) ask(ctx context.Context, args ...string) (string, error) {
	said, err := c.Repo.Run(ctx, GitWorkMax, AsStored, nil, args...)
	return strings.TrimSuffix(said, "\n"), err
}

// Open makes a view with a clone, and reads where its refs are. Git takes them, and the files, into a git directory of Fairlead's, whose
// settings are not the clone's.
func (c Clone) Open(ctx context.Context, write bool) (*Inside, error) {
	common, err := c.Repo.gitFolder(ctx)
	if err != nil {
		return nil, err
	}
	r := Room{Repo: c.Repo, Folder: c.Dir, Write: write, Borrows: []string{cmp.Or(c.Store, common)}}
	if c.Store != "" && (c.Both || c.names(common)) {
		r.Borrows = append(r.Borrows, common)
	}
	in, err := Enter(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := in.readRefs(ctx); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// names reports whether a clone names the objects of the repository as its own, as one does that was made on another host.
func (c Clone) names(common string) bool {
	f, err := os.OpenFile(filepath.Join(c.Dir, ".git", "objects", "info", "alternates"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK,
		0)
	if err != nil {
		return false
	}
	defer f.Close()
	want := filepath.Join(common, "objects") + "\n"
	text, err := io.ReadAll(io.LimitReader(f, int64(len(want))))
	return err == nil && string(text) == want
}

// Fetch reads objects of the clone into the repository, and git checks them. Each spec names what is fetched, and the ref for it.
func (c Clone) Fetch(ctx context.Context, specs ...string) (err error) {
	in, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return in.Fetch(ctx, specs...)
}

// Take keeps everything that the clone has in refs: the branches, tags, stashes, and HEAD. head is empty if HEAD is on a branch without a
// commit, and on is empty if it is on no branch.
func (c Clone) Take(ctx context.Context) (head, on string, err error) {
	in, err := c.Open(ctx, false)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	specs := []string{"+refs/*:" + c.Refs + "refs/*"}
	if in.Head != "" {
		specs = append(specs, "+HEAD:"+c.Refs+"head")
	}
	older, err := Stashes(c.Dir)
	if err != nil {
		return "", "", err
	}
	for i, commit := range older {
		specs = append(specs, fmt.Sprintf("+%s:%sstashes/%d", commit, c.Refs, i+1))
	}
	if err := in.Fetch(ctx, specs...); err != nil || in.Head == "" {
		return "", in.On, err
	}
	head, err = c.ask(ctx, "rev-parse", "--verify", c.Refs+"head^{commit}")
	return head, in.On, err
}

// Forget removes the refs of the clone whose commits another ref has.
func (c Clone) Forget(ctx context.Context, ref string) error {
	twice, err := c.ask(ctx, "for-each-ref", "--merged="+ref, "--format=delete %(refname)", c.Refs+"head", c.Refs+"refs/",
		c.Refs+"stashes/")
	if err != nil || twice == "" {
		return err
	}
	return c.update(ctx, twice)
}

func (c Clone) update(ctx context.Context, lines string) error {
	_, err := c.Repo.Run(ctx, GitWorkMax, AsStored, feed(lines+"\n"), "update-ref", "--stdin", "-m", "fairlead: from "+filepath.Base(c.Dir))
	return err
}

// others are the refs that Take has kept, under the names that they had in the clone.
func (c Clone) others(ctx context.Context) (map[string]string, error) {
	said, err := c.ask(ctx, "for-each-ref", "--format=%(objectname) %(refname)", c.Refs+"refs/")
	all := map[string]string{}
	for line := range strings.Lines(said) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[strings.TrimPrefix(name, c.Refs)] = id
	}
	return all, err
}

// Bring moves the repository's branch to where the clone has it, if that is only a step forward. stays says why it was left. A branch
// that a person has moved back or deleted stays so until the clone has new commits.
func (c Clone) Bring(ctx context.Context, branch string) (moved bool, stays string, err error) {
	name, came, was := "refs/heads/"+branch, c.Refs+"came", c.Refs+"brought"
	in, err := c.Open(ctx, false)
	if err != nil {
		return false, "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	is := in.Refs[name]
	if is == "" {
		return false, "the folder of the run has no branch of this name any more", nil
	}
	said, err := c.ask(ctx, "for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", name, was)
	if err != nil {
		return false, "", err
	}
	now, place, brought := "", "", ""
	for line := range strings.Lines(said) {
		switch words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3); {
		case len(words) < 3:
		case words[0] == name:
			now, place = words[1], words[2]
		case words[0] == was:
			brought = words[1]
		}
	}
	if now == is || brought == is {
		return false, "", nil
	}
	if err := in.Fetch(ctx, "+"+name+":"+came); err != nil {
		return false, "", err
	}
	tip, err := c.ask(ctx, "rev-parse", "--verify", came+"^{commit}")
	if err != nil {
		return false, "", err
	}
	if now == "" {
		now = strings.Repeat("0", len(tip))
	} else {
		switch _, err := c.ask(ctx, "merge-base", "--is-ancestor", now, tip); {
		case GitHasNone(err):
			if _, err := c.ask(ctx, "merge-base", "--is-ancestor", tip, now); err == nil {
				return false, "", nil // it has all of the run, and more
			}
			return false,
				fmt.Sprintf("it has commits that the run does not have; run `git merge %s` on it to have those of the run, too", tip), nil
		case err != nil:
			return false, "", err
		}
	}
	if place != "" {
		return false, fmt.Sprintf("it is checked out in %s; run `git merge --ff-only %s` there", place, tip), nil
	}
	err = c.update(ctx, fmt.Sprintf("update %s %s %s\nupdate %s %s\ndelete %s", name, tip, now, was, tip, came))
	if GitSaidNo(err) { // such as a, because there is a/b; or it has moved just now
		return false, fmt.Sprintf("git does not move it (%v); run `git branch --force %s %s`", err, branch, tip), nil
	}
	return err == nil, "", err
}

var stashed = regexp.MustCompile(`^[0-9a-f]+ ([0-9a-f]{40}|[0-9a-f]{64}) `)

// Stashes are the commits of all stashes of a clone but the newest, which is a ref. Git has them in a log only, and no git
// command runs in the clone, so the log is read here.
func Stashes(clone string) (commits []string, err error) {
	file, err := os.OpenFile(filepath.Join(clone, ".git", "logs", "refs", "stash"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, stashLogMax+1))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		if m := stashed.FindSubmatch(line); m != nil {
			commits = append(commits, string(m[1]))
		}
	}
	if len(text) > stashLogMax || len(commits) > stashesMax {
		return nil, fmt.Errorf("it has more than %d stashes", stashesMax)
	}
	return commits[:max(0, len(commits)-1)], nil
}
