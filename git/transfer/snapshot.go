package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// HaveMax is how many commits one side names to the other: the newest ones of its refs.
const HaveMax = 200

// Limits; tests lower them.
var (
	looseBytesMax int64 = 1 << 30  // content that no commit has; more does not belong into a repository
	packBytesMax  int64 = 8 << 30  // what one call sends or takes: a large repository with its history
	treeBytesMax  int64 = 32 << 30 // all files of a checkout: a pack of a few bytes can have any
)

// refOf is a ref below the name of a run: seen, the HEAD of a clone; out, what was packed last; in, what arrived last;
// going, what an update puts into the checkout while it does; or merging, what is merged in a checkout that was sent.
func refOf(run, what string) string { return "refs/fairlead/carry/" + run + "/" + what }

// leftRef is where content is that an update has replaced.
func leftRef(run, commit string) string { return "refs/fairlead/left/" + run + "/" + commit }

// unchanging is the environment for commits that are the same each time they are made.
func unchanging() []string {
	return []string{"GIT_AUTHOR_DATE=@0 +0000", "GIT_COMMITTER_DATE=@0 +0000"}
}

func text(s string) func(io.Writer) error {
	if s == "" {
		return nil
	}
	return func(to io.Writer) error {
		_, err := io.WriteString(to, s)
		return err
	}
}

// ask runs a quick command in a repository and returns its output without the newline at the end.
func ask(ctx context.Context, g worktree.Git, args ...string) (string, error) {
	said, err := g.Run(ctx, worktree.GitWorkMax, []string{"GIT_NO_REPLACE_OBJECTS=1"}, nil, args...)
	return strings.TrimSuffix(said, "\n"), err
}

// objects finds what several names name, with one process. One that names nothing has an empty answer.
func objects(ctx context.Context, g worktree.Git, env []string, names ...string) ([]string, error) {
	env = append(env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1")
	said, err := g.Run(ctx, worktree.GitWorkMax, env, text(strings.Join(names, "\n")+"\n"), "cat-file", "--batch-check=%(objectname)")
	found := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	if err == nil && len(found) != len(names) {
		err = fmt.Errorf("git cat-file answered %d of %d names", len(found), len(names))
	}
	for i, line := range found {
		if !hash().MatchString(line) { // NAME missing
			found[i] = ""
		}
	}
	return found, err
}

// Have lists commits that a repository has completely, newest first, so that another one need not send them. A shallow
// or partial clone has none: what it has may lack content.
func Have(ctx context.Context, repo worktree.Git, most int) ([]string, error) {
	if _, err := os.Lstat(filepath.Join(repo.Dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // an empty folder
	}
	shallow, err := ask(ctx, repo, "rev-parse", "--is-shallow-repository")
	if err != nil || shallow == "true" {
		return nil, err
	}
	_, err = ask(ctx, repo, "config", "--get-regexp", `^(remote\..*\.promisor|extensions\.partialclone)$`)
	if !worktree.GitHasNone(err) {
		return nil, err
	}
	said, err := ask(ctx, repo, "rev-list", "--no-walk=sorted", fmt.Sprintf("--max-count=%d", most), "--all")
	return strings.Fields(said), err
}

// Snapshot makes a commit of the checkout's files and keeps it under a ref. root is above the checkout.
func Snapshot(ctx context.Context, repo worktree.Git, root, checkout, run string) (s Sent, err error) {
	release, err := worktree.TakeCheckout(ctx, "carry "+checkout)
	if err != nil {
		return s, err
	}
	defer release()
	name, err := filepath.Rel(root, checkout)
	if err != nil {
		return s, err
	}
	p, err := find(ctx, repo, checkout)
	defer func() { p.close() }()
	if err != nil {
		return s, err
	}
	shot, err := p.shoot(ctx, run, nil)
	if err != nil {
		return s, fmt.Errorf("read the files of %s: %w", checkout, err)
	}
	if err := p.noteMerge(ctx, run); err != nil {
		return s, err
	}
	s = Sent{Run: run, Path: filepath.ToSlash(name), Head: shot.head, Snapshot: shot.commit, Branch: shot.branch}
	if err := s.Valid(); err != nil {
		return s, err
	}
	if s.Snapshot != shot.out {
		_, err = ask(ctx, repo, "update-ref", refOf(run, "out"), s.Snapshot)
	}
	return s, err
}

// Pack writes what a repository without these commits needs for a snapshot: nothing at all if it has it. Of have, those that
// are here count.
func Pack(ctx context.Context, repo worktree.Git, s Sent, have []string, to io.Writer) error {
	if err := s.Valid(); err != nil {
		return err
	}
	var known strings.Builder
	for _, commit := range have {
		if !hash().MatchString(commit) {
			return fmt.Errorf("%.80q is no commit", commit)
		}
		if commit == s.Snapshot {
			return nil
		}
		known.WriteString(commit + "\n")
	}
	said, err := repo.Run(ctx, worktree.GitWorkMax, nil, text(known.String()), "cat-file", "--batch-check=%(objecttype) %(objectname)")
	if known.Len() == 0 {
		said, err = "", nil
	}
	if err != nil {
		return err
	}
	wanted := s.Snapshot + "\n"
	for line := range strings.Lines(said) {
		if commit, is := strings.CutPrefix(strings.TrimSpace(line), "commit "); is {
			wanted += "^" + commit + "\n"
		}
	}
	out := &limited{to: to, left: packBytesMax}
	err = repo.Pipe(ctx, worktree.GitWorkMax, []string{"GIT_NO_REPLACE_OBJECTS=1"}, text(wanted), out,
		"pack-objects", "--quiet", "--revs", "--thin", "--stdout", "--delta-base-offset")
	if err = cmp.Or(out.fault, err); err != nil { // git's error is then that it could not write
		return fmt.Errorf("pack the checkout of %s: %w", s.Run, err)
	}
	return nil
}

// limited passes on a number of bytes at most.
type limited struct {
	to    io.Writer
	left  int64
	fault error
}

func (l *limited) Write(b []byte) (n int, err error) {
	if l.left -= int64(len(b)); l.left < 0 {
		err = fmt.Errorf("it is larger than %s; keep large files out of the repository", file.Size(packBytesMax))
	} else {
		n, err = l.to.Write(b)
	}
	l.fault = cmp.Or(l.fault, err)
	return n, err
}

// shot is what a checkout holds at one moment.
type shot struct {
	head, branch, commit string
	tree, out            string // of head; and the snapshot that was packed last

	absent []string // files that a sparse checkout leaves out
	empty  bool     // there are no files, as in a checkout that was just made
}

// is reports whether the checkout holds what was sent.
func (s *shot) is(sent Sent) bool {
	return s.head == sent.Head && s.branch == sent.Branch && s.commit == sent.Snapshot
}

// shoot makes the commit. It is the same one each time, as long as nothing changes. Of ignored files those
// are in it that the checkout's index has, and those that are also named.
func (p place) shoot(ctx context.Context, run string, also []string) (_ *shot, err error) {
	s := &shot{}
	if err = p.head(ctx, run, s); err != nil {
		return nil, err
	}
	if _, err = p.files(ctx, "", "read-tree", s.head); err != nil {
		return nil, err
	}
	gone, there, err := p.list(ctx, s, also)
	if err != nil {
		return nil, err
	}
	if gone != "" {
		if _, err = p.files(ctx, gone, "update-index", "-z", "--index-info"); err != nil {
			return nil, err
		}
	}
	if there != "" {
		if _, err = p.files(ctx, there, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"); err != nil {
			return nil, err
		}
	}
	tree, err := p.files(ctx, "", "write-tree")
	if err != nil {
		return nil, err
	}
	if s.commit = s.head; tree != s.tree {
		if s.commit, err = p.view.Commit(ctx, unchanging(), "What the checkout of "+run+" held beyond its commit", tree,
			s.head); err == nil {
			err = p.view.Fetch(ctx, s.commit)
		}
	}
	return s, err
}

// list compares the names in git with the disk. gone and there are for the input of git.
func (p place) list(ctx context.Context, s *shot, also []string) (gone, there string, err error) {
	search := []string{"ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"}
	exclude := filepath.Join(p.git, "info", "exclude")
	if info, err := os.Lstat(exclude); err == nil && info.Mode().IsRegular() {
		search = append(search, "--exclude-from="+exclude)
	}
	listed, err := p.files(ctx, "", search...)
	if err != nil {
		return "", "", err
	}
	indexed, err := p.own(ctx, "ls-files", "-z", "-t")
	if err != nil {
		return "", "", err
	}
	sparse, names := map[string]bool{}, map[string]bool{} // names: true if a commit has it
	for _, name := range also {
		names[name] = false
	}
	for _, line := range worktree.Zeroed(indexed) { // H PATH
		tag, name, _ := strings.Cut(line, " ")
		names[name], sparse[name] = false, tag == "S"
	}
	for _, line := range worktree.Zeroed(listed) { // H PATH, or ? PATH of one that is not committed
		tag, name, _ := strings.Cut(line, " ")
		names[name] = tag != "?"
	}
	disk, loose := looker{top: p.top, dirs: map[string]bool{}}, int64(0)
	var missing, files strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		is, module, bytes := disk.look(name)
		switch {
		case is || module && !strings.HasSuffix(name, "/"):
			files.WriteString(name + "\x00")
			if !names[name] {
				loose += bytes
			}
		case sparse[name]:
			s.absent = append(s.absent, name)
		case names[name]:
			if disk.dir(name) {
				files.WriteString(name + "\x00") // a submodule that is not checked out, or a folder in place of a file
				continue
			}
			missing.WriteString("0 " + strings.Repeat("0", len(s.head)) + "\t" + name + "\x00")
		}
	}
	if loose > looseBytesMax {
		return "", "",
			fmt.Errorf("%s of files are in no commit, and no more than %s are carried; add them to .gitignore, or commit what is needed",
				file.Size(loose), file.Size(looseBytesMax))
	}
	s.empty = files.Len() == 0
	return missing.String(), files.String(), nil
}

// read takes what Pack wrote into the repository. Nothing names it before all of it has been checked.
func read(ctx context.Context, repo worktree.Git, from io.Reader, s Sent, ref string) (names []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("take the checkout of %s: %w", s.Run, err)
		}
	}()
	first := make([]byte, 1)
	if n, err := io.ReadFull(from, first); n > 0 {
		feed := func(to io.Writer) error {
			_, err := io.Copy(to, io.MultiReader(strings.NewReader(string(first)), from))
			return err
		}
		if _, err := repo.Run(ctx, worktree.GitWorkMax, nil, feed, "index-pack", "--stdin", "--fix-thin", "--strict="+oldFaults,
			fmt.Sprintf("--max-input-size=%d", packBytesMax)); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	known, err := objects(ctx, repo, nil, s.Snapshot+"^{commit}", s.Snapshot+"^1", s.Snapshot+"^2", refOf(s.Run, "in"), refOf(s.Run, "out"))
	if err != nil {
		return nil, err
	}
	if known[0] != s.Snapshot {
		return nil, fmt.Errorf("its commit %s is not in what was sent", s.Snapshot)
	}
	if s.Snapshot != s.Head && (known[1] != s.Head || known[2] != "") {
		return nil, fmt.Errorf("%s is no commit on top of %s", s.Snapshot, s.Head)
	}
	if !slices.Contains(known[3:], s.Snapshot) { // a ref names only what is complete
		if _, err := ask(ctx, repo, "rev-list", "--objects", "--quiet", s.Snapshot, "--not", "--all"); worktree.GitSaidNo(err) {
			return nil, fmt.Errorf("its history is not complete (%w); if the repository that sent it is a shallow clone, run `git fetch --unshallow` there", err)
		} else if err != nil {
			return nil, err
		}
	}
	if s.Branch != "" {
		if _, err := ask(ctx, repo, "check-ref-format", s.Branch); err != nil {
			return nil, fmt.Errorf("%.80q is no name of a branch: %w", s.Branch, err)
		}
	}
	if names, err = namesIn(ctx, repo, s.Snapshot); err != nil {
		return nil, err
	}
	if ref != refOf(s.Run, "in") || known[3] != s.Snapshot {
		_, err = ask(ctx, repo, "update-ref", ref, s.Snapshot)
	}
	return names, err
}

// oldFaults are those of programs that made commits many years ago. Real histories have them, and they do no harm.
const oldFaults = "zeroPaddedFilemode=ignore,badTimezone=ignore,missingSpaceBeforeDate=ignore,missingSpaceBeforeEmail=ignore,missingNameBeforeEmail=ignore,multipleAuthors=ignore,missingEmail=ignore,badEmail=ignore,zeroPaddedDate=ignore,badDateOverflow=ignore"

// namesIn lists the files of a commit, without submodules.
func namesIn(ctx context.Context, repo worktree.Git, commit string) (names []string, err error) {
	said, err := ask(ctx, repo, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
	var bytes int64
	for _, line := range worktree.Zeroed(said) { // MODE TYPE HASH SIZE\tNAME
		fields, name, _ := strings.Cut(line, "\t")
		words := strings.Fields(fields)
		if len(words) != 4 || words[1] != "blob" {
			continue
		}
		var size int64
		if _, err := fmt.Sscan(words[3], &size); err != nil {
			return nil, err
		}
		bytes += size
		names = append(names, name)
	}
	if bytes > treeBytesMax {
		return nil, fmt.Errorf("its files have %s, and %s are the most; keep large files out of the repository", file.Size(bytes),
			file.Size(treeBytesMax))
	}
	return names, err
}
