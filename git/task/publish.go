package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// PublishMax bounds a push without a forge: its request waits for the answer.
const PublishMax = pushMax

const (
	publishedName = "pushed.json" // in the task's run folder: what was pushed last to each branch of each remote
	publishedMax  = 100           // branches that are remembered; one more is refused
)

// Publishing says what is to be pushed to which branch.
type Publishing struct {
	Remote    string // of the person's repository; empty: the task's, or origin
	Branch    string // on the remote; empty: the task's own
	Force     bool   // also if the branch there has commits that would be lost
	Governing string // the hash of the governing files to which a person has said yes; empty: none
}

// Published is what was pushed.
type Published struct {
	Remote, Branch string
	Commit         string // the tip of the branch now
	Shown          bool   // it is what a person was shown last; otherwise what the folder has
	There          bool   // the branch had that content already, and nothing was pushed
}

// Publish pushes what the person was shown last, or else what the folder has, to a branch of a remote, as one commit by the person. It uses
// the person's login and asks for nothing. The error is *Blocked if a person has to do something, and *forge.Fault if the remote says no.
func (t Task) Publish(ctx context.Context, to Publishing) (p Published, err error) {
	ctx, stop := context.WithTimeout(ctx, PublishMax)
	defer stop()
	if to.Remote != "" {
		t.Remote = to.Remote
	}
	p.Remote, p.Branch = remoteName(t), to.Branch
	if p.Branch == "" {
		p.Branch = t.Branch
	}
	if _, err := t.ask(ctx, nil, "check-ref-format", "refs/heads/"+p.Branch); err != nil || strings.HasPrefix(p.Branch, "-") {
		return p, &Blocked{fmt.Sprintf("%q is not a branch name; name another one with --as", p.Branch)}
	}
	if _, err := t.ask(ctx, nil, "config", "--get", "remote."+p.Remote+".url"); err != nil || strings.HasPrefix(p.Remote, "-") {
		return p, &Blocked{fmt.Sprintf("the repository has no remote %s; add it with git remote add NAME URL, or name another one with --remote", p.Remote)}
	}
	release, err := file.Lock(filepath.Join(t.Run, "publish.lock"))
	if err != nil {
		return p, err
	}
	defer release()
	work, from, err := t.toPublish(ctx, &p)
	if err != nil {
		return p, err
	}
	if governs, err := (Review{t}).governs(ctx, from, work); err != nil {
		return p, err
	} else if governs.Hash != to.Governing && governs.Hash != "" {
		return p, &Blocked{fmt.Sprintf("it changes files that decide what runs later, and a forge may run them at once: %s. Look at them: fairlead diff %s. If you want them there, add --governing %s",
			someOf(governs.Files), t.ID, governs.Hash)}
	}
	known := map[string]string{}
	if err := file.LoadJSON(filepath.Join(t.Run, publishedName), &known); err != nil {
		return p, err
	} else if known == nil { // the file has null
		known = map[string]string{}
	}
	lease, parent, err := t.remoteTip(ctx, p, from, known, to.Force)
	if err != nil {
		return p, err
	}
	next := pulling{Task: t, Pull: Pull{Pushed: parent}}
	if p.Commit, err = next.next(ctx, work, from); err != nil {
		return p, err
	}
	if p.Commit == "" { // nothing differs from what is below it
		p.Commit = parent
		if parent == "" {
			p.Commit = from
		}
	}
	if p.There = p.Commit == lease; p.There {
		return p, nil
	}
	ref := "refs/heads/" + p.Branch
	if _, err := t.atRemote(ctx, PublishMax, "-c", "push.followTags=false", "-c", "push.gpgSign=false", "push", "--quiet", "--no-verify",
		"--recurse-submodules=no", "--force-with-lease="+ref+":"+lease, "--", p.Remote, p.Commit+":"+ref); err != nil {
		if fault, is := errors.AsType[*forge.Fault](err); is {
			fault.Text += t.pushRemedy(fault.Code)
		}
		return p, err
	}
	known[p.Remote+" "+p.Branch] = p.Commit
	return p, file.StoreJSON(filepath.Join(t.Run, publishedName), known)
}

// toPublish is the commit with the content that is pushed, and the one that it is compared with.
func (t Task) toPublish(ctx context.Context, p *Published) (work, from string, err error) {
	if p.Shown = t.Asked != (Asked{}); p.Shown {
		work, err = t.approved(ctx)
		if again, is := errors.AsType[*Again](err); is {
			err = &Blocked{again.Why}
		}
		return work, t.Asked.From, err
	}
	if work, err = t.Newest(ctx); err != nil {
		return "", "", err
	}
	if from, err = t.Before(ctx, work); err != nil {
		return "", "", err
	}
	tree, err := t.treeOf(ctx, work)
	if err != nil {
		return "", "", err
	}
	own, err := withoutOwn(ctx, t, Picture{Commit: work, Tree: tree}, from)
	return own.Commit, from, err
}

// remoteTip is where the branch is on the remote now, empty if it is not there, and the commit to go on from; empty: from what the task is
// compared with. It refuses to lose commits that only the remote has, without force.
func (t Task) remoteTip(ctx context.Context, p Published, from string, known map[string]string, force bool) (lease, parent string,
	err error,
) {
	said, err := t.atRemote(ctx, time.Minute, "ls-remote", "--refs", "--quiet", "--", p.Remote, "refs/heads/"+p.Branch)
	if fault, is := errors.AsType[*forge.Fault](err); is {
		fault.Text += t.remedy(fault.Code)
	}
	if err != nil {
		return "", "", err
	}
	lease, _, _ = strings.Cut(strings.TrimSpace(said), "\t")
	ours := known[p.Remote+" "+p.Branch]
	switch {
	case ours == "" && len(known) >= publishedMax:
		return "", "", &Blocked{fmt.Sprintf("it was pushed to %d branches already; delete %s to forget them", len(known), filepath.Join(t.Run, publishedName))}
	case lease == "":
		return "", "", nil
	case commits(lease) != nil:
		return "", "", &Blocked{fmt.Sprintf("remote %s did not say where branch %s is", p.Remote, p.Branch)}
	case lease == ours && t.reaches(ctx, lease, lease):
		return lease, lease, nil
	case t.reaches(ctx, from, lease), force:
		return lease, "", nil
	}
	return "", "", &Blocked{fmt.Sprintf("branch %s of %s has commits that the task does not have, the last one is %.12s; push to another branch with --as BRANCH, or replace it with --force",
		p.Branch, p.Remote, lease)}
}

// pushRemedy says what a person does about a push that failed.
func (t Task) pushRemedy(code forge.Code) string {
	if code == forge.Refused {
		return "; the remote refused it: see that you may push there, or push to another branch with --as BRANCH"
	}
	return strings.NewReplacer(" fetch ", " push ").Replace(t.remedy(code))
}
