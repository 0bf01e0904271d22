package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/git/worktree/store"
)

// settings override what a repository may have set, so that the index of a snapshot is one whole file, with all files.
var settings = []string{
	"-c", "core.sparseCheckout=false", "-c", "index.sparse=false", "-c", "core.splitIndex=false", "-c",
	"core.untrackedCache=false",
}

// place is a checkout, which is a clone, and its repository. Git works in the checkout in a view of its own: the clone may be of an agent.
type place struct {
	repo   worktree.Git
	top    string           // the checkout
	common string           // the git folder of the repository
	git    string           // the git folder of the checkout
	view   *worktree.Inside // nil: none is open
}

// close ends the view of a place.
func (p place) close() {
	if p.view != nil {
		_ = p.view.Close() // what it has left is removed by the next one
	}
}

// find looks at a checkout.
func find(ctx context.Context, repo worktree.Git, checkout string) (p place, err error) {
	p.repo = repo
	common := filepath.Join(repo.Dir, ".git")
	if info, err := os.Lstat(common); err != nil || !info.IsDir() {
		said, err := repo.Ask(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
		if err != nil {
			return p, err
		}
		common = strings.TrimSuffix(said, "\n")
	}
	if p.common, err = filepath.EvalSymlinks(common); err != nil {
		return p, err
	}
	if p.top, err = filepath.EvalSymlinks(checkout); err != nil {
		return p, err
	}
	p.git = filepath.Join(p.top, ".git")
	if info, err := os.Lstat(p.git); err != nil || !info.IsDir() || p.git == p.common {
		return p, worktree.Stays(checkout + " is no clone of " + repo.Dir)
	}
	if err := p.plainClone(); err != nil {
		return p, err
	}
	p.view, err = p.clone().Open(ctx, true)
	return p, err
}

func same(a, b string) bool {
	x, err := os.Lstat(a)
	y, err2 := os.Lstat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// plainClone checks that what git would write in a clone is not elsewhere.
func (p place) plainClone() error {
	if _, err := os.Lstat(filepath.Join(p.git, "commondir")); !errors.Is(err, fs.ErrNotExist) {
		return worktree.Stays(filepath.Join(p.git, "commondir") + " leads to another repository; make the clone again")
	}
	for _, name := range []string{"HEAD", "index", "objects", "refs", "refs/heads", "logs"} {
		info, err := os.Lstat(filepath.Join(p.git, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if file := name == "HEAD" || name == "index"; file != info.Mode().IsRegular() || file == info.IsDir() {
			return worktree.Stays(fmt.Sprintf("%s is not what git makes; make the clone again", filepath.Join(p.git, name)))
		}
	}
	return nil
}

// files runs git on the files of the checkout, with an index of Fairlead's.
func (p place) files(ctx context.Context, input string, args ...string) (string, error) {
	return p.view.Files(ctx, text(input), append(settings[:len(settings):len(settings)], args...)...)
}

// clone is the checkout, whose commits the repository reads.
func (p place) clone() worktree.Clone {
	return worktree.Clone{Repo: p.repo, Dir: p.top, Store: store.Of(p.repo.Dir).There(), Both: true}
}

// keepOf keeps a commit of the clone in the repository.
func (p place) keepOf(ctx context.Context, run, commit string) error {
	return p.view.Fetch(ctx, "+"+commit+":"+leftRef(run, commit))
}

// own runs git in the checkout: for its HEAD, its branches and its index.
func (p place) own(ctx context.Context, args ...string) (string, error) {
	return p.view.Own(ctx, args...)
}

// head reads what is checked out. The commits of the clone are fetched first.
func (p place) head(ctx context.Context, run string, s *shot) (err error) {
	s.branch = p.view.On
	head, found := refOf(run, "seen"), []string(nil)
	if p.view.Head == "" {
		return fmt.Errorf("%s has no commit that can be read", p.top)
	}
	if err = p.view.Fetch(ctx, "+HEAD:"+head); err == nil {
		found, err = objects(ctx, p.repo, nil, head+"^{commit}", head+"^{tree}", refOf(run, "out"))
	}
	switch {
	case worktree.GitSaidNo(err):
		return fmt.Errorf("%s has no commit that can be read: %w", p.top, err)
	case err != nil:
		return err
	case found[0] == "" || found[1] == "":
		return fmt.Errorf("%s has no commit that can be read", p.top)
	}
	s.head, s.tree, s.out = found[0], found[1], found[2]
	return nil
}

// kind says what a name is on disk: a file or a link (there), or a folder with a repository (module). Neither if it is
// anything else, or behind a link.
type looker struct {
	top  string
	dirs map[string]bool
}

func (l looker) dir(name string) bool {
	if name == "." {
		return true
	}
	is, known := l.dirs[name]
	if !known {
		info, err := os.Lstat(filepath.Join(l.top, name))
		is = l.dir(path.Dir(name)) && err == nil && info.IsDir()
		l.dirs[name] = is
	}
	return is
}

func (l looker) look(name string) (there, module bool, bytes int64) {
	if !l.dir(path.Dir(name)) {
		return false, false, 0
	}
	info, err := os.Lstat(filepath.Join(l.top, name))
	switch {
	case err != nil:
	case info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink:
		return true, false, info.Size()
	case info.IsDir():
		_, err := os.Lstat(filepath.Join(l.top, name, ".git"))
		return false, err == nil, 0
	}
	return false, false, 0
}
