package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

// TestBranches carries branches to another engine host, which moves those that are behind when it leads.
func TestBranches(t *testing.T) {
	t.Parallel()
	p := begun(t)
	here, there := worktree.Git{Dir: p.leader}, worktree.Git{Dir: p.host}
	sh(t, p.host, "clone", "-q", p.leader, ".")
	sh(t, p.leader, "branch", "behind")
	for _, name := range []string{"behind", "ahead", "both", "other"} {
		sh(t, p.host, "branch", name)
	}
	commit := func(dir, name string) string {
		put(t, dir, name, name)
		sh(t, dir, "add", "-A")
		sh(t, dir, "commit", "-q", "-m", name)
		return sh(t, dir, "rev-parse", "HEAD")
	}
	on := func(dir, name string) string {
		sh(t, dir, "checkout", "-q", "-B", name, "main")
		defer sh(t, dir, "checkout", "-q", "main")
		return commit(dir, name+filepath.Base(dir))
	}
	behind, both := on(p.leader, "behind"), on(p.leader, "both")
	ahead, mine := on(p.host, "ahead"), on(p.host, "both")
	sh(t, p.leader, "branch", "ahead", "main")
	sh(t, p.leader, "branch", "a/new", "behind")
	sh(t, p.leader, "branch", "dir", "main") // b cannot have it: dir/x is there
	sh(t, p.host, "branch", "dir/x", "main")
	main := commit(p.leader, "on main")

	send := func() Sent {
		t.Helper()
		s, ok, err := Branches(t.Context(), here)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		have, err := Have(t.Context(), there, HaveMax)
		must(t, err)
		var b bytes.Buffer
		must(t, Pack(t.Context(), here, s, have, &b))
		must(t, TakeBranches(t.Context(), there, &b, s, "a"))
		return s
	}
	first := send()
	if again := send(); again != first {
		t.Errorf("they are %v, and then %v", first, again)
	}
	if got := sh(t, p.host, "rev-parse", "main"); got == main {
		t.Error("a branch moves before this host leads")
	}

	put(t, p.host, "README", "changed\n")
	left, err := Forward(t.Context(), there, "a")
	must(t, err)
	if len(left) != 3 || !strings.HasPrefix(left[0].Why, "branch both is at "+both[:12]+" on a, and stays at "+mine[:12]) ||
		!strings.HasPrefix(left[1].Why, "branch dir is at ") ||
		!strings.Contains(left[1].Why, "on a, and is not here: git does not set it") || !strings.Contains(left[2].Why, "branch main") ||
		!strings.Contains(left[2].Why, "files are changed") {
		t.Errorf("left: %q", left)
	}
	sh(t, p.host, "checkout", "-q", "README")
	if left, err = Forward(t.Context(), there, "a"); err != nil || len(left) != 2 {
		t.Errorf("left: %q, %v", left, err)
	}
	for name, want := range map[string]string{"main": main, "behind": behind, "a/new": behind, "ahead": ahead, "both": mine} {
		if got := sh(t, p.host, "rev-parse", name); got != want {
			t.Errorf("%s is at %s, not at %s", name, got, want)
		}
	}
	if got := sh(t, p.host, "show", "HEAD:on main") + sh(t, p.host, "status", "--porcelain", "--untracked-files=no"); got != "on main" {
		t.Errorf("the person's checkout is %q", got)
	}
	// A person deletes a branch. It stays away until it has moved.
	sh(t, p.host, "branch", "-D", "dir/x")
	_, err = Forward(t.Context(), there, "a")
	sh(t, p.host, "branch", "-D", "a/new")
	_, again := Forward(t.Context(), there, "a")
	must(t, errors.Join(err, again))
	if got := sh(t, p.host, "branch", "--list", "a/new"); got != "" {
		t.Errorf("a branch that was deleted is there: %q", got)
	}
	sh(t, p.leader, "branch", "-f", "a/new", "main")
	send()
	if _, err := Forward(t.Context(), there, "a"); err != nil || sh(t, p.host, "rev-parse", "a/new") != main {
		t.Errorf("it is not at %s: %v", main, err)
	}
	if left, err := Forward(t.Context(), there, "c"); err != nil || left != nil {
		t.Errorf("of a host that has sent none: %q, %v", left, err)
	}
	for _, bad := range []struct {
		s    Sent
		host string
	}{
		{Sent{Run: "r1", Path: "r1", Head: first.Head, Snapshot: first.Head}, "a"},
		{first, "../a"},
		{Sent{Run: branchesRun, Path: branchesRun, Head: first.Head, Snapshot: "x"}, "a"},
	} {
		if TakeBranches(t.Context(), there, strings.NewReader(""), bad.s, bad.host) == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestMovedBack has branches that a person has moved back since they were brought. They stay.
func TestMovedBack(t *testing.T) {
	t.Parallel()
	p := begun(t)
	there := worktree.Git{Dir: p.host}
	sh(t, p.host, "clone", "-q", p.leader, ".")
	sh(t, p.host, "branch", "work")
	sh(t, p.host, "worktree", "add", "-q", "-b", "aside", filepath.Join(t.TempDir(), "aside"))
	first := sh(t, p.leader, "rev-parse", "main")
	sh(t, p.leader, "branch", "work")
	sh(t, p.leader, "branch", "aside")
	for _, step := range []struct {
		name    string
		do      func()
		commits []string // on the leader before, by the name of the branch
		at      map[string]int
		left    []string
	}{
		{"brought", func() {}, []string{"main", "work"}, map[string]int{"main": 1, "work": 1}, nil},
		{"moved back", func() {
			sh(t, p.host, "reset", "-q", "--hard", first)
			sh(t, p.host, "branch", "-q", "-f", "work", first)
		}, nil, map[string]int{"main": 0, "work": 0}, nil},
		{
			"with new commits there", func() {},
			[]string{"work"},
			map[string]int{"main": 0, "work": 0},
			[]string{"branch work is at .* it was moved back here, and has new commits there; run `git merge "},
		},
		{"and again", func() {}, nil, map[string]int{"work": 0}, []string{"branch work is at "}},
		{
			"merged", func() { sh(t, p.host, "branch", "-q", "-f", "work", sh(t, p.leader, "rev-parse", "work")) }, nil,
			map[string]int{"main": 0, "work": 2},
			nil,
		},
		{"as before", func() {}, []string{"work"}, map[string]int{"main": 0, "work": 3}, nil},
		{
			"checked out in another folder", func() {},
			[]string{"aside"},
			map[string]int{"aside": 0},
			[]string{"branch aside is at .* it is checked out in .*/aside; run `git merge --ff-only "},
		},
	} {
		step.do()
		for _, name := range step.commits {
			sh(t, p.leader, "checkout", "-q", name)
			sh(t, p.leader, "commit", "-q", "--allow-empty", "-m", "more")
		}
		s, _, err := Branches(t.Context(), worktree.Git{Dir: p.leader})
		must(t, err)
		var b bytes.Buffer
		must(t, Pack(t.Context(), worktree.Git{Dir: p.leader}, s, nil, &b))
		must(t, TakeBranches(t.Context(), there, &b, s, "a"))
		left, err := Forward(t.Context(), there, "a")
		if must(t, err); len(left) != len(step.left) {
			t.Errorf("%s: left: %q", step.name, left)
			continue
		}
		for i, want := range step.left {
			if !regexp.MustCompile("^" + want).MatchString(left[i].Why) {
				t.Errorf("%s: left: %q", step.name, left[i].Why)
			}
		}
		for name, want := range step.at {
			if got := sh(t, p.host, "rev-list", "--count", first+".."+name); got != strconv.Itoa(want) {
				t.Errorf("%s: %s is %s commits further, not %d", step.name, name, got, want)
			}
		}
	}
}

// TestManyBranches has more names of branches than an argument of a program may have. Of one that is deleted there nothing is kept.
func TestManyBranches(t *testing.T) {
	t.Parallel()
	p := begun(t)
	here, there := worktree.Git{Dir: p.leader}, worktree.Git{Dir: p.host}
	tip := sh(t, p.leader, "rev-parse", "main")
	var refs strings.Builder
	for i := range 500 {
		fmt.Fprintf(&refs, "create refs/heads/%s-%d %s\n", strings.Repeat("n", 240), i, tip)
	}
	_, err := here.Run(t.Context(), time.Minute, nil, text(refs.String()), "update-ref", "--stdin")
	must(t, err)
	sh(t, p.host, "clone", "-q", p.leader, ".")
	sh(t, p.host, "fetch", "-q", p.leader, "refs/heads/n*:refs/heads/n*")
	for gone := range 2 {
		s, _, err := Branches(t.Context(), here)
		must(t, err)
		var b bytes.Buffer
		must(t, Pack(t.Context(), here, s, nil, &b))
		must(t, TakeBranches(t.Context(), there, &b, s, "a"))
		left, err := Forward(t.Context(), there, "a")
		if must(t, err); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		if got := strings.Count(sh(t, p.host, "log", "-1", "--format=%B", forwardedRef("a")), "refs/heads/n"); got != 500-gone {
			t.Errorf("%d branches were brought, not %d", got, 500-gone)
		}
		sh(t, p.leader, "branch", "-q", "-D", fmt.Sprintf("%s-%d", strings.Repeat("n", 240), gone))
	}
}

// TestMark is for a run that has arrived as a whole.
func TestMark(t *testing.T) {
	t.Parallel()
	p := begun(t)
	repo := worktree.Git{Dir: p.leader}
	if m, err := Arrived(t.Context(), repo, run); err != nil || m != (Mark{}) {
		t.Errorf("%+v, %v", m, err)
	}
	must(t, StoreMark(p.leader, Mark{run, 7}))
	if m, err := Arrived(t.Context(), repo, run); err != nil || m.N != 7 {
		t.Errorf("%+v, %v", m, err)
	}
	sh(t, p.leader, "update-ref", refOf(run, "going"), "HEAD")
	if m, err := Arrived(t.Context(), repo, run); err != nil || m != (Mark{}) {
		t.Errorf("a checkout of which a part has arrived counts: %+v, %v", m, err)
	}
	if StoreMark(p.leader, Mark{Run: "../x"}) == nil {
		t.Error("a mark outside of its folder")
	}
}
