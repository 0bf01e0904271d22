package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/forge"
)

// errKilled is where the process ends in a test.
var errKilled = errors.New("killed")

// outsideWorld is a forge and a daemon that outlive the process that takes issues. The process ends before or after the
// n-th thing that it does outside.
type outsideWorld struct {
	forge.Forge
	issues []forge.Issue
	claims []string          // texts of comments that were posted
	tasks  map[string]string // by the issue's URL
	texts  map[string]string
	over   map[string]bool
	left   int // things until the end; below 0: it does not end
	after  bool
}

// outside does one thing, or ends the process before or after it.
func (w *outsideWorld) outside(do func()) error {
	if w.left == 0 && !w.after {
		return errKilled
	}
	do()
	if w.left == 0 {
		return errKilled
	}
	w.left--
	return nil
}

func (w *outsideWorld) Labelled(_ context.Context, label string) (list []forge.Issue, err error) {
	err = w.outside(func() {
		for _, i := range w.issues {
			if i.Open && strings.HasPrefix(i.Title, label) {
				i.Comments = nil
				list = append(list, i)
			}
		}
	})
	return list, err
}

func (w *outsideWorld) Issue(_ context.Context, number int) (found forge.Issue, err error) {
	if number < 1 || number > len(w.issues) {
		return found, &forge.Fault{Code: forge.NotFound}
	}
	err = w.outside(func() { found = w.issues[number-1] })
	return found, err
}

func (w *outsideWorld) Claim(_ context.Context, number int, comment string) error {
	return w.outside(func() {
		w.claims = append(w.claims, comment)
		w.issues[number-1].Comments = append(w.issues[number-1].Comments,
			forge.Comment{ID: fmt.Sprint(len(w.claims)), Trusted: true, Text: comment})
	})
}

func (w *outsideWorld) intake(file string, most int) Intake {
	return Intake{
		File: file, Most: most, Forge: w, From: []Source{{"bug", "coder"}, {"docs", "writer"}},
		Find: func(_ context.Context, url string) (string, error) { return w.tasks[url], nil },
		Active: func(context.Context) (n int, err error) {
			for _, id := range w.tasks {
				if !w.over[id] {
					n++
				}
			}
			return n, nil
		},
		Begin: func(_ context.Context, agent, text, url string) (id string, err error) {
			err = w.outside(func() {
				if w.tasks[url] != "" {
					panic("an issue became two tasks")
				}
				id = fmt.Sprintf("T%d", len(w.tasks)+1)
				w.tasks[url], w.texts[id] = id, agent+": "+text
			})
			return id, err
		},
	}
}

func newOutside(titles ...string) *outsideWorld {
	w := &outsideWorld{tasks: map[string]string{}, texts: map[string]string{}, over: map[string]bool{}, left: -1}
	for n, title := range titles {
		w.issues = append(w.issues,
			forge.Issue{Number: n + 1, Title: title, Open: true, URL: fmt.Sprintf("https://github.com/acme/shop/issues/%d", n+1)})
	}
	return w
}

// The process is killed before and after each thing that it does, and begins again: each issue becomes one task, and
// is claimed once.
func TestIntakeIsKilledBetweenAllSteps(t *testing.T) {
	t.Parallel()
	for kill := 0; ; kill++ {
		for _, after := range []bool{false, true} {
			w := newOutside("bug one", "docs two", "other three")
			w.left, w.after = kill, after
			file := filepath.Join(t.TempDir(), "intake.json")
			_, err := w.intake(file, 3).Look(t.Context())
			if err == nil {
				if kill < 6 {
					t.Fatalf("only %d things were done outside", kill)
				}
				return
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			w.left = -1
			for range 2 {
				if _, err := w.intake(file, 3).Look(t.Context()); err != nil {
					t.Fatalf("killed at %d: %v", kill, err)
				}
			}
			if len(w.tasks) != 2 || len(w.claims) != 2 || !strings.HasPrefix(w.texts[w.tasks[w.issues[1].URL]], "writer: docs two") {
				t.Fatalf("killed at %d (after: %v): tasks %v, claims %q", kill, after, w.tasks, w.claims)
			}
		}
	}
}

func TestIntake(t *testing.T) {
	t.Parallel()
	w := newOutside("bug one", "bug two", "bug three", "bug four", "bug five", "bug six")
	w.issues[1].Assignees = []string{"ada"}
	w.issues[2].Comments = []forge.Comment{{Trusted: true, Text: "taken\n\n" + claimMark + "0123 -->"}} // by another clone
	w.issues[3].Comments = []forge.Comment{{Text: "this person may not write\n" + claimMark + "4567 -->"}}
	file := filepath.Join(t.TempDir(), "intake.json")
	look := func() []string {
		t.Helper()
		begun, err := w.intake(file, 2).Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return begun
	}
	if begun := look(); !slices.Equal(begun, []string{"T1", "T2"}) || w.tasks[w.issues[3].URL] != "T2" {
		t.Fatalf("%v began of %v", begun, w.tasks)
	}
	if begun := look(); len(begun) != 0 {
		t.Fatalf("%v began beyond the most", begun)
	}
	w.over["T1"] = true
	if begun := look(); !slices.Equal(begun, []string{"T3"}) || w.tasks[w.issues[4].URL] != "T3" {
		t.Fatalf("%v began of %v", begun, w.tasks)
	}
	w.over["T2"], w.over["T3"] = true, true
	look()
	if begun := look(); len(begun) != 0 || len(w.tasks) != 4 {
		t.Fatalf("an issue was taken twice: %v, %v", begun, w.tasks)
	}
}

func TestIssueText(t *testing.T) {
	t.Parallel()
	text := IssueText("Be quick.", forge.Issue{
		Number: 142, Title: "Retry", Body: strings.Repeat("x", issueTextMax), URL: "https://github.com/a/b/issues/142",
		Comments: []forge.Comment{{Trusted: true, Author: "ada", Text: "yes"}},
	})
	if !strings.HasPrefix(text, "Be quick.\n\nRetry (#142)\n\nhttps://github.com/a/b/issues/142\n\nxxx") ||
		!strings.HasSuffix(text, "(there is more; see the link)\n") || len(text) > 64<<10 {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}
