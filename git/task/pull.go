package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/backoff"
)

// When a person is asked before something of a task is pushed to its pull request.
const (
	AskOnce   = "once"        // before the branch is published
	AskAlways = "every_round" // before each push
)

// How often a pull request is looked at. It is less often while nothing changes.
const (
	PollDefault = 60 * time.Second
	pollMax     = 5 * time.Minute
	limitMax    = time.Hour        // a rate limit that resets later is looked at before that
	checksWait  = 10 * time.Minute // a failed check waits so long for the others
)

const (
	remoteDefault = "origin"
	pushMax       = 3 * time.Minute
	sentMax       = 2000 // comments of one pull request that are remembered
	// FeedbackName is the file with what a pull request sends back to the agent.
	FeedbackName = "feedback.md"
	// PullName is the file with what is known of a task's pull request.
	PullName = "pr.json"
)

// RoundEnv is the environment variable with how often the run was sent back to a step.
const RoundEnv = "FAIRLEAD_TASK_ROUND"

func remoteName(t Task) string {
	if t.Remote == "" {
		return remoteDefault
	}
	return t.Remote
}

// remoteBaseRef is the base branch as it was on the forge; remoteRef is the task's branch there, if others changed it.
func remoteBaseRef(t Task) string { return refs + t.ID + ".base" }
func remoteRef(t Task) string     { return refs + t.ID + ".remote" }

// Pull is what is known of a task's pull request. It is on disk before and after each thing that is sent, so that
// nothing is sent twice.
type Pull struct {
	Number   int       `json:"number,omitempty"` // 0: none was created yet
	URL      string    `json:"url,omitempty"`
	Shown    string    `json:"shown,omitempty"`   // the picture that was pushed last
	Pushed   string    `json:"pushed,omitempty"`  // the commit on the forge that is from this task
	Pushing  string    `json:"pushing,omitempty"` // the commit that may be there or not
	Quiet    int       `json:"quiet,omitempty"`   // rounds in which nothing changed
	Seen     string    `json:"seen,omitempty"`    // what the last round saw
	FailedAt time.Time `json:"failed_at,omitzero"`
	Checks   string    `json:"checks_sent,omitempty"`   // the commit whose failed checks were sent back
	Conflict string    `json:"conflict_sent,omitempty"` // the base whose conflict was sent back
	Back     *Back     `json:"back,omitempty"`
	Sent     []Sent    `json:"sent,omitempty"`
}

// Back is what is sent back to the agent. It is set until the step runs in a later round.
type Back struct {
	Round int    `json:"round"`
	Why   string `json:"why"`
}

// States of a comment that was sent back.
const (
	sentBack = "sent"
	handled  = "handled"
	replying = "replying"
	replied  = "replied"
)

// Sent is a comment that was sent back to the agent.
type Sent struct {
	ID     string `json:"id"`
	Thread string `json:"thread,omitempty"`
	State  string `json:"state"`
}

// LoadPull reads what is known of the pull request; nothing is known if there is no file.
func LoadPull(t Task) (Pull, error) {
	var p Pull
	return p, file.LoadJSON(filepath.Join(t.Run, PullName), &p)
}

func savePull(t Task, p Pull) error { return file.StoreJSON(filepath.Join(t.Run, PullName), p) }

// Outcome is how a round of a pull request ended.
type Outcome string

// Outcomes.
const (
	Waits   Outcome = "waits"   // look again after Look.Again
	Returns Outcome = "returns" // the agent has to do something: Look.Why, and FeedbackName
	Merged  Outcome = "merged"
	Closed  Outcome = "closed"
	Nothing Outcome = "nothing" // there is nothing to publish
)

// Look is the result of one round.
type Look struct {
	Outcome Outcome
	Again   time.Duration
	Why     string
	Said    []string
	Pull    Pull
	Commit  string     // of a merged one
	Fault   forge.Code // why a round could not look: RateLimited or Offline
}

// ForgeOf returns the forge of the task's remote. The error is *Blocked.
func ForgeOf(ctx context.Context, t Task) (forge.Forge, error) {
	remote, err := t.ask(ctx, nil, "config", "--get", "remote."+remoteName(t)+".url")
	if worktree.GitHasNone(err) {
		return nil, &Blocked{noRemote(t)}
	} else if err != nil {
		return nil, err
	}
	f, err := forge.ForRemote(remote)
	if err != nil {
		return nil, &Blocked{fmt.Sprintf("remote %s: %v", remoteName(t), err)}
	}
	return f, nil
}

// pulling is one round of a task's pull request.
type pulling struct {
	Task
	Pull
	forge forge.Forge
	out   io.Writer
	now   time.Time
	round int
}

// PullRequest pushes what was shown, creates the pull request, and looks at it once. It never waits: the result
// says when to look again. The error is *Blocked if a person has to do something.
func PullRequest(ctx context.Context, t Task, out io.Writer, f forge.Forge, round int, now time.Time) (Look, error) {
	p := &pulling{Task: t, forge: f, out: out, now: now, round: round}
	var err error
	if p.Pull, err = LoadPull(t); err != nil {
		return Look{}, err
	}
	look, err := p.play(ctx)
	var fault *forge.Fault
	var again *Again
	switch {
	case errors.As(err, &fault) && fault.Passes():
		p.Quiet++
		again := p.interval()
		if !fault.Until.IsZero() {
			again = min(max(fault.Until.Sub(now), p.poll()), limitMax)
		}
		look, err = Look{Outcome: Waits, Again: again, Said: []string{fault.Text}, Fault: fault.Code}, nil
	case errors.As(err, &fault) && fault.Code == forge.NotFound && p.Number > 0:
		err = &Blocked{fmt.Sprintf("the pull request %s cannot be found: %s", p.URL, fault.Text)}
	case errors.As(err, &fault):
		err = &Blocked{fault.Text}
	case errors.As(err, &again):
		err = &Blocked{fmt.Sprintf("%s; `fairlead run resume %s --start-at-step check` shows it again", again.Why, t.ID)}
	}
	look.Pull = p.Pull
	return look, errors.Join(err, savePull(t, p.Pull))
}

func (p *pulling) save() error { return savePull(p.Task, p.Pull) }

func (p *pulling) poll() time.Duration {
	if p.Poll == 0 {
		return PollDefault
	}
	return max(time.Second, time.Duration(p.Poll)*time.Second) // the configuration has a higher floor
}

// interval doubles while nothing changes.
func (p *pulling) interval() time.Duration {
	return backoff.After(p.poll(), max(pollMax, p.poll()), 1+p.Quiet)
}

func (p *pulling) play(ctx context.Context) (Look, error) {
	if p.Back != nil && p.Back.Round == p.round { // the process ended before this was reported
		return Look{Outcome: Returns, Why: p.Back.Why}, nil
	}
	if p.Back != nil {
		p.Back = nil
		for i := range p.Sent {
			if p.Sent[i].State == sentBack {
				p.Sent[i].State = handled
			}
		}
		if err := p.save(); err != nil {
			return Look{}, err
		}
	}
	work, err := p.approved(ctx)
	if err != nil {
		return Look{}, err
	}
	if work != p.Shown || p.Pushing != "" {
		if look, err := p.publish(ctx, work); err != nil || look.Outcome != "" {
			return look, err
		}
	}
	if p.Number == 0 {
		if err := p.create(ctx); err != nil {
			return Look{}, err
		}
	}
	r, err := p.forge.Look(ctx, p.Number)
	if err != nil {
		return Look{}, err
	}
	switch r.State {
	case forge.Merged:
		return Look{Outcome: Merged, Commit: r.Commit, Said: []string{"merged: " + p.URL}}, nil
	case forge.Closed:
		return Look{Outcome: Closed, Said: []string{"closed without a merge: " + p.URL}}, nil
	}
	if err := p.reply(ctx, r); err != nil {
		return Look{}, err
	}
	return p.judge(ctx, r)
}

func (p *pulling) git(ctx context.Context, args ...string) (string, error) {
	return p.atRemote(ctx, pushMax, args...)
}

// tips asks the remote where the task's branch and the base are. Empty: there is none.
func (p *pulling) tips(ctx context.Context) (branch, base string, err error) {
	said, err := p.git(ctx, "ls-remote", "--refs", "--quiet", "--", remoteName(p.Task), "refs/heads/"+p.Branch, "refs/heads/"+p.Base)
	for line := range strings.Lines(said) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch ref {
		case "refs/heads/" + p.Branch:
			branch = commit
		case "refs/heads/" + p.Base:
			base = commit
		}
	}
	return branch, base, err
}

func (p *pulling) fetch(ctx context.Context, from, to string) error {
	_, err := p.git(ctx, "-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--no-auto-maintenance",
		"--", remoteName(p.Task), "+refs/heads/"+from+":"+to)
	if err != nil {
		return err
	}
	return p.Refresh(ctx)
}

func (p *pulling) has(ctx context.Context, commit, ancestor string) bool {
	_, err := p.ask(ctx, nil, "merge-base", "--is-ancestor", ancestor, commit)
	return err == nil
}

// publish pushes the content of a picture as one commit on top of what was pushed before. A commit of another
// person on the branch is never overwritten: the agent merges it first.
func (p *pulling) publish(ctx context.Context, work string) (Look, error) {
	there, base, err := p.tips(ctx)
	switch {
	case err != nil:
		return Look{}, err
	case base == "":
		return Look{},
			&Blocked{fmt.Sprintf("remote %s has no branch %s; push it first: git push %s %s", remoteName(p.Task), p.Base,
				remoteName(p.Task), p.Base)}
	case p.Pushing != "" && there == p.Pushing: // the process ended after the push
		p.Pushed, p.Pushing = p.Pushing, ""
	case there == "" && p.Pushed != "" && p.Number > 0: // deleted with the pull request; that one says why
		p.Shown, p.Pushing = work, ""
		return Look{}, nil
	case there != "" && there != p.Pushed:
		if p.Pushed == "" {
			return Look{},
				&Blocked{fmt.Sprintf("remote %s has a branch %s already, and it is not from this task; delete it there, or set another name with tasks.branch", remoteName(p.Task), p.Branch)}
		}
		if err := p.fetch(ctx, p.Branch, remoteRef(p.Task)); err != nil {
			return Look{}, err
		}
		if !p.has(ctx, work, there) {
			if err := p.offer(ctx, there); err != nil {
				return Look{}, err
			}
			words, err := p.bringOver(ctx, p.Branch, remoteRef(p.Task))
			if err != nil {
				return Look{}, err
			}
			return p.sendBack(nil, fmt.Sprintf("Branch %s has commits on the forge that you do not have. %s.", p.Branch, words))
		}
		p.Pushed = there
	}
	if err := p.fetch(ctx, p.Base, remoteBaseRef(p.Task)); err != nil {
		return Look{}, err
	}
	from, err := p.Before(ctx, work)
	if err != nil {
		return Look{}, err
	}
	if !p.has(ctx, remoteBaseRef(p.Task), from) {
		return Look{},
			&Blocked{fmt.Sprintf("branch %s has commits that are not on remote %s, and the pull request would publish them; push them first: git push %s %s", p.Base, remoteName(p.Task), remoteName(p.Task), p.Base)}
	}
	commit, err := p.next(ctx, work, from)
	if err != nil {
		return Look{}, err
	}
	if commit == "" && p.Pushed == "" {
		return Look{Outcome: Nothing, Said: []string{"there was nothing to publish"}}, nil
	}
	if commit != "" {
		p.Pushing = commit
		if err := p.save(); err != nil {
			return Look{}, err
		}
		if err := p.push(ctx, commit); err != nil {
			return Look{}, err
		}
		p.Pushed, p.Pushing, p.Quiet = commit, "", 0
		if _, err := fmt.Fprintf(p.out, "pushed %.10s to branch %s of %s\n", commit, p.Branch, remoteName(p.Task)); err != nil {
			return Look{}, err
		}
	}
	p.Shown = work
	return Look{}, p.save()
}

// offer makes the commits of others mergeable for the agent. It does not have the commits that were pushed, but their
// content: the commit that it merges has that as its first parent, so that only what others changed is merged.
func (p *pulling) offer(ctx context.Context, there string) error {
	tree := func(commit string) string {
		said, _ := p.ask(ctx, nil, "rev-parse", "--verify", "--quiet", commit+"^{tree}") // empty: there is no such commit
		return said
	}
	if p.Shown == "" || tree(p.Shown) == "" || tree(p.Shown) != tree(p.Pushed) {
		return nil
	}
	at, err := p.ask(ctx, nil, "log", "-1", "--format=%cI", there)
	if err != nil {
		return err
	}
	// the same commit each time: it may be merged already
	env := append(slices.Clone(byFairlead), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	commit, err := p.commit(ctx, env, tree(there), "Changes of others on "+p.Branch, p.Shown, there)
	if err != nil {
		return err
	}
	if err = p.setRef(ctx, remoteRef(p.Task), commit); err != nil {
		return err
	}
	return p.Refresh(ctx)
}

// next is the commit to push: the content of a picture on top of what was pushed before. Empty: that has the same.
func (p *pulling) next(ctx context.Context, work, from string) (string, error) {
	parents := []string{from}
	if p.Pushed != "" {
		if parents[0] = p.Pushed; !p.has(ctx, p.Pushed, from) {
			parents = append(parents, from)
		}
	}
	tree, err := p.ask(ctx, nil, "rev-parse", "--verify", work+"^{tree}")
	if err != nil {
		return "", err
	}
	if was, err := p.ask(ctx, nil, "rev-parse", "--verify", parents[0]+"^{tree}"); err != nil || was == tree && len(parents) == 1 {
		return "", err
	}
	return p.commit(ctx, nil, tree, p.message(), parents...)
}

func (p *pulling) push(ctx context.Context, commit string) error {
	branch := "refs/heads/" + p.Branch
	_, err := p.git(ctx, "-c", "push.followTags=false", "-c", "push.gpgSign=false", "push", "--quiet", "--no-verify",
		"--recurse-submodules=no",
		"--force-with-lease="+branch+":"+p.Pushed, "--", remoteName(p.Task), commit+":"+branch)
	if fault, ok := errors.AsType[*forge.Fault](err); ok && !fault.Passes() {
		return &Blocked{fmt.Sprintf("the push to branch %s was refused; see that you may push there, then merge again. %s", p.Branch,
			fault.Text)}
	}
	return err
}
