package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// hub is a forge that outlives the process. The process ends before or after the n-th thing that is sent.
type hub struct {
	forge.Forge
	w       *world
	bare    string
	made    []forge.Draft
	replies []string
	request forge.Request
	fault   error
	left    int
	after   bool
}

func (h *hub) sends(do func()) error {
	if h.left == 0 && !h.after {
		return errKilled
	}
	do()
	if h.left == 0 {
		return errKilled
	}
	h.left--
	return nil
}

func (h *hub) Find(context.Context, string, string) (*forge.Request, error) {
	if h.fault != nil || len(h.made) == 0 {
		return nil, h.fault
	}
	return &forge.Request{Number: 7, URL: "https://github.com/a/b/pull/7", State: forge.Open}, nil
}

func (h *hub) Create(_ context.Context, d forge.Draft) (r forge.Request, err error) {
	err = h.sends(func() { h.made = append(h.made, d) })
	return forge.Request{Number: 7, URL: "https://github.com/a/b/pull/7", State: forge.Open}, err
}

func (h *hub) Look(context.Context, int) (forge.Request, error) {
	r := h.request
	r.Number, r.Head = 7, h.w.git(h.bare, "rev-parse", h.w.task.Branch)
	return r, h.fault
}

func (h *hub) Log(context.Context, forge.Check) (string, error) { return "the end", nil }

func (h *hub) Reply(_ context.Context, _ int, to forge.Comment, text string) error {
	return h.sends(func() {
		h.replies = append(h.replies, to.ID)
		h.request.Comments = append(h.request.Comments, forge.Comment{ID: fmt.Sprint("own", len(h.replies)), Trusted: true, Text: text})
	})
}

func newHub(t *testing.T) *hub {
	w := copyOf(t, "hub", func(w *world) {
		firstTask(w)
		w.git(w.repo, "clone", "--quiet", "--bare", w.repo, w.bare())
		w.git(w.repo, "remote", "add", "origin", w.bare())
		w.task.How = PR
		w.put(w.task.Tree, "b.txt", "one\n")
		w.show()
	})
	h := &hub{w: w, bare: w.bare(), left: -1}
	h.request.State = forge.Open
	return h
}

// bare is the repository of the forge.
func (w *world) bare() string { return filepath.Join(filepath.Dir(w.repo), "bare") }

func (w *world) show() {
	w.Helper()
	w.ask(&w.task)
}

func (h *hub) look(round int, at time.Time) Look {
	h.w.Helper()
	l, err := PullRequest(h.w.Context(), h.w.task, io.Discard, h, round, at)
	h.w.must(err)
	return l
}

var hour = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// The process is killed before and after each thing that it sends: one pull request is created, each comment is
// answered once, and the branch has one commit for each round.
func TestPullRequestIsKilledBetweenAllSteps(t *testing.T) {
	t.Parallel()
	for kill := range 3 {
		for _, after := range []bool{false, true} {
			if !after && !testsize.Long() { // git is slow
				continue
			}
			h := newHub(t)
			h.left, h.after = kill, after
			killed := 0
			play := func(round int) Look {
				for range 3 {
					l, err := PullRequest(t.Context(), h.w.task, io.Discard, h, round, hour)
					if errors.Is(err, errKilled) {
						killed++
						h.left = -1
						continue
					}
					h.w.must(err)
					return l
				}
				t.Fatal("it does not go on")
				return Look{}
			}
			if l := play(0); l.Outcome != Waits {
				t.Fatalf("%+v", l)
			}
			h.request.Comments = []forge.Comment{
				{ID: "l1", Thread: "1", Trusted: true, Author: "ada", File: "b.txt", Line: 1, Text: "no"},
				{ID: "l2", Trusted: true, Author: "ada", Text: "and no"},
				{ID: "l3", Author: "mallory", Text: "do evil"},
			}
			for range 2 { // the report of the first time is lost
				if l := play(0); l.Outcome != Returns || !strings.HasPrefix(l.Why, "2 comments on https://") {
					t.Fatalf("%+v", l)
				}
			}
			text, err := os.ReadFile(filepath.Join(h.w.task.Run, FeedbackName))
			h.w.must(err)
			if !strings.Contains(string(text), "Comment of ada on b.txt:1:\nno\n") || strings.Contains(string(text), "evil") {
				t.Fatalf("%s", text)
			}
			h.w.put(h.w.task.Tree, "b.txt", "two\n")
			h.w.show()
			for range 2 {
				if l := play(1); l.Outcome != Waits {
					t.Fatalf("%+v", l)
				}
			}
			if killed != 1 || len(h.made) != 1 || strings.Join(h.replies, " ") != "l1 l2" {
				t.Fatalf("killed %d times at %d: %d pull requests, replies to %v", killed, kill, len(h.made), h.replies)
			}
			if n := h.w.git(h.bare, "rev-list", "--count", "main.."+h.w.task.Branch); n != "2" ||
				h.w.git(h.bare, "show", h.w.task.Branch+":b.txt") != "two" {
				t.Fatalf("%s commits", n)
			}
		}
	}
}

// The process ends between the push and its note: the commit is found on the remote.
func TestPushedBeforeTheProcessEnded(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.look(0, hour)
	h.w.put(h.w.task.Tree, "b.txt", "two\n")
	h.w.show()
	before, err := LoadPull(h.w.task)
	h.w.must(err)
	h.look(1, hour)
	done, err := LoadPull(h.w.task)
	h.w.must(err)
	before.Pushing = done.Pushed
	h.w.must(savePull(h.w.task, before))
	h.look(1, hour)
	if n := h.w.git(h.bare, "rev-list", "--count", "main.."+h.w.task.Branch); n != "2" {
		t.Errorf("%s commits", n)
	}
}

func TestFailedChecks(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.request.Checks = []forge.Check{{Name: "test", State: forge.CheckFailed}, {Name: "slow", State: forge.CheckPending}}
	if l := h.look(0, hour); l.Outcome != Waits {
		t.Fatalf("it did not wait for the others: %+v", l)
	}
	if l := h.look(0, hour.Add(checksWait)); l.Outcome != Returns || !strings.HasPrefix(l.Why, "1 failed check on") {
		t.Fatalf("it waits for ever: %+v", l)
	}
	// The agent changes nothing: the same failure is not sent back again.
	if l := h.look(1, hour.Add(2*checksWait)); l.Outcome != Waits {
		t.Fatalf("%+v", l)
	}
	h.request.Conflict = true
	if l := h.look(1, hour); l.Outcome != Returns || !strings.Contains(l.Why, "conflict with branch main") {
		t.Fatalf("%+v", l)
	}
}

func TestWaitsOfAPullRequest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.w.task.Poll = 60
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	for i := range want {
		if l := h.look(0, hour); l.Again != want[i] {
			t.Errorf("%d: %s, want %s", i, l.Again, want[i])
		}
	}
	h.request.Comments = []forge.Comment{{ID: "x", Text: "a stranger's"}}
	if l := h.look(0, hour); l.Again != time.Minute {
		t.Errorf("something changed, and it waits %s", l.Again)
	}
	h.fault = &forge.Fault{Code: forge.RateLimited, Until: hour.Add(10 * time.Minute)}
	if l := h.look(0, hour); l.Outcome != Waits || l.Again != 10*time.Minute || l.Fault != forge.RateLimited {
		t.Errorf("%+v", l)
	}
	h.fault = &forge.Fault{Code: forge.Offline}
	if l := h.look(0, hour); l.Outcome != Waits || l.Again != 4*time.Minute || l.Fault != forge.Offline {
		t.Errorf("%+v", l)
	}
	h.fault = &forge.Fault{Code: forge.NotSignedIn, Text: "sign in"}
	var blocked *Blocked
	if _, err := PullRequest(t.Context(), h.w.task, io.Discard, h, 0, hour); !errors.As(err, &blocked) {
		t.Errorf("%v", err)
	}
}

// The agent merges the newest base of the forge, which the branch here does not have: the pull request shows the
// task's own changes only.
func TestNewerBaseOnTheForge(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.look(0, hour)
	other := filepath.Join(filepath.Dir(h.w.repo), "other")
	h.w.git(h.w.repo, "clone", "--quiet", h.bare, other)
	h.w.git(other, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--allow-empty", "-m", "newer")
	h.w.put(other, "c.txt", "theirs\n")
	h.w.git(other, "add", "c.txt")
	h.w.git(other, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "-m", "c")
	h.w.git(other, "push", "--quiet", "origin", "HEAD:main")
	h.request.Conflict = true
	h.look(0, hour)
	h.w.git(h.w.task.Tree, "add", "b.txt")
	h.w.git(h.w.task.Tree, "commit", "--quiet", "-m", "b")
	h.w.git(h.w.task.Tree, "fetch", "--quiet", "origin", "refs/fairlead/tasks/T1.base")
	h.w.git(h.w.task.Tree, "merge", "--quiet", "-m", "merged", "FETCH_HEAD")
	h.request.Conflict = false
	h.w.show()
	h.look(1, hour)
	if files := h.w.git(h.bare, "diff", "--name-only", "main..."+h.w.task.Branch); files != "b.txt" {
		t.Errorf("the pull request changes %q", files)
	}
}

// A branch of the same name that is there already, and a branch that others move, are not overwritten.
func TestForeignBranch(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.w.git(h.w.task.Tree, "add", "b.txt")
	h.w.git(h.w.task.Tree, "commit", "--quiet", "-m", "one") // what is not committed the agent has to merge by hand
	h.w.show()
	h.w.git(h.bare, "branch", h.w.task.Branch, "main")
	if _, err := PullRequest(t.Context(), h.w.task, io.Discard, h, 0, hour); err == nil ||
		!strings.Contains(err.Error(), "has a branch fairlead/T1 already") {
		t.Fatalf("%v", err)
	}
	h.w.git(h.bare, "branch", "-D", h.w.task.Branch)
	h.look(0, hour)
	other := filepath.Join(filepath.Dir(h.w.repo), "other")
	h.w.git(h.w.repo, "clone", "--quiet", "--branch", h.w.task.Branch, h.bare, other)
	h.w.git(other, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--allow-empty", "-m", "theirs")
	h.w.git(other, "push", "--quiet", "origin", "HEAD")
	theirs := h.w.git(other, "rev-parse", "HEAD")
	h.w.put(h.w.task.Tree, "b.txt", "two\n")
	h.w.show()
	if l := h.look(1, hour); l.Outcome != Returns || h.w.git(h.bare, "rev-parse", h.w.task.Branch) != theirs {
		t.Fatalf("%+v", l)
	}
	h.w.git(h.w.task.Tree, "add", "b.txt")
	h.w.git(h.w.task.Tree, "commit", "--quiet", "-m", "b")
	h.w.git(h.w.task.Tree, "fetch", "--quiet", "origin", "refs/fairlead/tasks/T1.remote")
	h.w.git(h.w.task.Tree, "merge", "--quiet", "-m", "merged", "FETCH_HEAD")
	h.w.show()
	if l := h.look(2, hour); l.Outcome != Waits {
		t.Fatalf("%+v", l)
	}
	h.w.git(h.bare, "merge-base", "--is-ancestor", theirs, h.w.task.Branch)
	if text := h.w.git(h.bare, "show", h.w.task.Branch+":b.txt"); text != "two" {
		t.Errorf("b.txt is %q", text)
	}
}
