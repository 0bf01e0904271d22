package task

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	takenMax  = 10_000 // issues that are remembered; more means that the file should be looked at
	claimMark = ownMark + "claim "
)

// States of an issue that was taken.
const (
	Noted   = "noted"   // on disk; the claim may be on the forge or not
	Claimed = "claimed" // on the forge; the task may have begun or not
	Begun   = "begun"   // the task has begun
	Left    = "left"    // another workspace has claimed it
)

// Taken is an issue of the intake.
type Taken struct {
	URL   string `json:"url"`
	Agent string `json:"agent"`
	State string `json:"state"`
	Key   string `json:"key"` // marks the claim
	Task  string `json:"task,omitempty"`
}

// Intake makes tasks of labelled issues. An issue is noted on disk before it is claimed, and claimed before its task
// begins. After a crash each step finds out whether it was done: the claim by its key among the comments, the task by
// the issue's URL.
type Intake struct {
	File  string // where the issues are noted
	Most  int    // tasks at once
	Forge forge.Forge
	From  []Source

	Find   func(ctx context.Context, url string) (task string, err error)              // the task that is from an issue; empty: none
	Active func(ctx context.Context) (int, error)                                      // tasks from issues that are not over
	Begin  func(ctx context.Context, agent, text, url string) (task string, err error) // begins a task
}

// Source is a label, and the agent that gets its issues.
type Source struct{ Label, Agent string }

// Look takes what may be taken now, and returns the ids of the tasks that have begun.
func (in Intake) Look(ctx context.Context) (begun []string, err error) {
	all, err := in.load()
	if err != nil {
		return nil, err
	}
	for i := range all { // what was interrupted
		if all[i].State == Noted || all[i].State == Claimed {
			id, err := in.take(ctx, all, i)
			if err != nil {
				return begun, err
			}
			if id != "" {
				begun = append(begun, id)
			}
		}
	}
	for _, from := range in.From {
		if full, err := in.full(ctx); err != nil || full {
			return begun, err
		}
		list, err := in.Forge.Labelled(ctx, from.Label)
		if err != nil {
			return begun, err
		}
		for _, issue := range list {
			if issue.URL == "" || len(issue.Assignees) > 0 || slices.ContainsFunc(all, func(t Taken) bool { return t.URL == issue.URL }) {
				continue // a person works on it, or it was taken
			}
			if full, err := in.full(ctx); err != nil || full {
				return begun, err
			}
			if len(all) >= takenMax {
				return begun, fmt.Errorf("%s has %d issues, which is the limit; remove those that are closed", in.File, takenMax)
			}
			var key [8]byte
			_, _ = rand.Read(key[:]) // rand.Read does not fail
			all = append(all, Taken{URL: issue.URL, Agent: from.Agent, State: Noted, Key: hex.EncodeToString(key[:])})
			if err := in.save(all); err != nil {
				return begun, err
			}
			id, err := in.take(ctx, all, len(all)-1)
			if err != nil {
				return begun, err
			}
			if id != "" {
				begun = append(begun, id)
			}
		}
	}
	return begun, nil
}

func (in Intake) full(ctx context.Context) (bool, error) {
	n, err := in.Active(ctx)
	return n >= in.Most, err
}

// take brings one issue from where it is to its task.
func (in Intake) take(ctx context.Context, all []Taken, i int) (id string, err error) {
	t := &all[i]
	_, number, err := forge.ParseIssue(t.URL)
	if err != nil {
		return "", err
	}
	if id, err = in.Find(ctx, t.URL); err != nil {
		return "", err
	}
	if id != "" {
		t.State, t.Task = Begun, id
		return "", in.save(all)
	}
	issue, err := in.Forge.Issue(ctx, number)
	if fault, ok := errors.AsType[*forge.Fault](err); ok && fault.Code == forge.NotFound {
		t.State = Left
		return "", in.save(all)
	} else if err != nil {
		return "", err
	}
	if t.State == Noted {
		own := claimMark + t.Key
		others := func(c forge.Comment) bool { return c.Trusted && strings.Contains(c.Text, claimMark) }
		ours := slices.ContainsFunc(issue.Comments, func(c forge.Comment) bool { return strings.Contains(c.Text, own) })
		switch first := slices.IndexFunc(issue.Comments, others); {
		case first >= 0 && !strings.Contains(issue.Comments[first].Text, own), !issue.Open:
			t.State = Left
			return "", in.save(all)
		case !ours:
			if err := in.Forge.Claim(ctx, number, "Fairlead has taken this issue for agent "+t.Agent+".\n\n"+own+" -->"); err != nil {
				return "", err
			}
		}
		t.State = Claimed
		if err := in.save(all); err != nil {
			return "", err
		}
	}
	if id, err = in.Begin(ctx, t.Agent, IssueText("", issue), t.URL); err != nil {
		return "", err
	}
	t.State, t.Task = Begun, id
	return id, in.save(all)
}

func (in Intake) load() ([]Taken, error) {
	var all []Taken
	if err := file.LoadJSON(in.File, &all); err != nil {
		return nil, fmt.Errorf("find out which issues were taken: %w", err)
	}
	return all, nil
}

func (in Intake) save(all []Taken) error { return file.StoreJSON(in.File, all) }

const issueTextMax = 60 << 10 // a task's text has 64 KiB

// IssueText is the text of a task from an issue: what a person adds, then title, link, text, and the comments of
// people who may write to the repository. All of it is other people's text; nothing in it has an effect by itself.
func IssueText(add string, i forge.Issue) string {
	var b strings.Builder
	if add = strings.TrimSpace(add); add != "" {
		b.WriteString(add + "\n\n")
	}
	fmt.Fprintf(&b, "%s (#%d)\n\n%s\n", i.Title, i.Number, i.URL)
	if body := strings.TrimSpace(i.Body); body != "" {
		b.WriteString("\n" + body + "\n")
	}
	for _, c := range i.Comments {
		if c.Trusted && !strings.Contains(c.Text, ownMark) {
			fmt.Fprintf(&b, "\nComment of %s:\n%s\n", c.Author, strings.TrimSpace(c.Text))
		}
	}
	text := b.String()
	if len(text) > issueTextMax {
		return clip.To(text, issueTextMax) + "\n(there is more; see the link)\n"
	}
	return text
}

// queue waits until this is the only task that lands on its base branch.
func (t Task) queue() (release func(), err error) {
	dir := filepath.Join(t.Git, "fairlead")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the .git folder
		return nil, err
	}
	return file.Lock(filepath.Join(dir, "landing-"+digest(t.Base)+".lock"))
}

// digest is a short name for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
