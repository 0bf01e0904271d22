package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/git/forge"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	// SyncMax bounds a fetch: its request waits for the answer. What needs longer is a first fetch, which a person begins by hand.
	SyncMax = 2 * time.Minute

	syncedMax = 20                    // branches whose new commits are counted: git starts once for each
	fetchLock = "fairlead-fetch.lock" // in the git folder of the person's repository
	tracking  = "refs/remotes/"       // the refs that a fetch may move
)

// Synced is what a fetch has brought into the person's repository.
type Synced struct {
	Remote   string
	Branches []SyncedBranch // that are new or have moved there
	More     int            // further ones
	Behind   int            // commits of the base on the remote that the base here lacks; -1: it is not there
	Ahead    int            // commits of the base here that it lacks there
}

// SyncedBranch is a remote-tracking ref that the fetch has moved.
type SyncedBranch struct {
	Name string // such as origin/main
	New  int    // commits that have come
	Lost int    // commits that it had before and has no more
	Made bool   // it was not known before; New and Lost are 0
}

// Follow brings the newest commits of the person's repository to where the clone fetches from, if a ref has changed there.
func (t Task) Follow(ctx context.Context) error {
	_, err := t.store().Follow(ctx, t.Repo, t.Git)
	return err
}

// Sync fetches the remote into the remote-tracking refs of the person's repository, with the person's login and without prompts, and
// brings what has come to where the clone fetches from. It moves no branch. It is a *Blocked if there is no such remote, and a
// *forge.Fault if the remote does not give anything.
func (t Task) Sync(ctx context.Context) (s Synced, err error) {
	ctx, stop := context.WithTimeout(ctx, SyncMax)
	defer stop()
	s.Remote = remoteName(t)
	release, err := t.lockFetch(ctx)
	if err != nil {
		return s, err
	}
	defer release()
	specs, err := t.trackingSpecs(ctx)
	if err != nil {
		return s, err
	}
	before, err := t.trackingRefs(ctx)
	if err != nil {
		return s, err
	}
	args := []string{
		"-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-prune", "--no-prune-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--no-auto-maintenance", "--refmap=", "--", s.Remote,
	}
	if _, err := t.atRemote(ctx, SyncMax, append(args, specs...)...); err != nil {
		if fault, is := errors.AsType[*forge.Fault](err); is {
			fault.Text += t.remedy(fault.Code)
		}
		return s, err
	}
	if err := t.Follow(ctx); err != nil {
		return s, err
	}
	after, err := t.trackingRefs(ctx)
	if err != nil {
		return s, err
	}
	return s, t.compare(ctx, &s, before, after)
}

// remedy says what a person does about a fetch that failed.
func (t Task) remedy(code forge.Code) string {
	byHand := fmt.Sprintf("git -C %s fetch %s", t.Repo, remoteName(t))
	switch code {
	case forge.Offline, forge.RateLimited:
		return "; try again when the remote answers, or see what `" + byHand + "` says"
	case forge.NotSignedIn:
		return "; Fairlead asks for no password: give git or ssh one that it keeps (a credential helper, ssh-add), until `" + byHand +
			"` asks for none"
	default:
		return "; see what `" + byHand + "` says"
	}
}

// lockFetch makes fetches of one repository wait for each other, also those of another workspace in it.
func (t Task) lockFetch(ctx context.Context) (release func(), err error) {
	type locked struct {
		release func()
		err     error
	}
	got := make(chan locked)
	go func() {
		release, err := file.Lock(filepath.Join(t.Git, fetchLock))
		select {
		case got <- locked{release, err}:
		case <-ctx.Done():
			if err == nil {
				release()
			}
		}
	}()
	select {
	case is := <-got:
		return is.release, is.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, &Blocked{fmt.Sprintf("another fetch in %s has not ended yet; try again when it has", t.Repo)}
	}
}

// trackingSpecs are the person's own settings of what is fetched from the remote, as far as they name remote-tracking refs; without any,
// the base.
func (t Task) trackingSpecs(ctx context.Context) (specs []string, err error) {
	name := "remote." + remoteName(t)
	said, err := t.ask(ctx, nil, "config", "--null", "--get-regexp", "^"+regexp.QuoteMeta(name)+`\.(url|fetch)$`)
	if err != nil && !worktree.GitHasNone(err) {
		return nil, err
	}
	url, names := false, false
	for _, entry := range worktree.Zeroed(said) {
		key, value, _ := strings.Cut(entry, "\n")
		_, to, _ := strings.Cut(value, ":")
		switch {
		case key == name+".url":
			url = true
		case strings.HasPrefix(value, "^"):
			specs = append(specs, value)
		case strings.HasPrefix(to, tracking):
			specs, names = append(specs, value), true
		}
	}
	if !url {
		return nil, &Blocked{noRemote(t)}
	}
	if !names {
		specs = []string{"+refs/heads/" + t.Base + ":" + tracking + remoteName(t) + "/" + t.Base}
	}
	return specs, nil
}

// trackingRefs are the remote-tracking refs with their commits. Those that only name another one are left out.
func (t Task) trackingRefs(ctx context.Context) (map[string]string, error) {
	said, err := t.ask(ctx, nil, "for-each-ref", "--format=%(refname) %(objectname) %(symref)", tracking)
	all := map[string]string{}
	for line := range strings.Lines(said) {
		if f := strings.Fields(line); len(f) == 2 {
			all[strings.TrimPrefix(f[0], tracking)] = f[1]
		}
	}
	return all, err
}

// compare says what has come, and where the base is.
func (t Task) compare(ctx context.Context, s *Synced, before, after map[string]string) error {
	base := remoteName(t) + "/" + t.Base
	var moved []string
	for name, commit := range after {
		if before[name] != commit {
			moved = append(moved, name)
		}
	}
	slices.SortFunc(moved, func(a, b string) int {
		if (a == base) != (b == base) { // the base first
			return map[bool]int{true: -1, false: 1}[a == base]
		}
		return strings.Compare(a, b)
	})
	if s.More = max(0, len(moved)-syncedMax); s.More > 0 {
		moved = moved[:syncedMax]
	}
	for _, name := range moved {
		one := SyncedBranch{Name: name, Made: before[name] == ""}
		if !one.Made {
			var err error
			if one.Lost, one.New, err = t.apart(ctx, before[name], after[name]); err != nil {
				return err
			}
		}
		s.Branches = append(s.Branches, one)
	}
	if s.Behind = -1; after[base] == "" {
		return nil
	}
	var err error
	s.Ahead, s.Behind, err = t.apart(ctx, "refs/heads/"+t.Base, after[base])
	return err
}

// apart counts the commits that only one of two has.
func (t Task) apart(ctx context.Context, one, other string) (ones, others int, err error) {
	said, err := t.ask(ctx, nil, "rev-list", "--left-right", "--count", one+"..."+other, "--")
	if err != nil {
		return 0, 0, err
	}
	left, right, _ := strings.Cut(strings.TrimSpace(said), "\t")
	ones, err = strconv.Atoi(left)
	others, fault := strconv.Atoi(right)
	return ones, others, errors.Join(err, fault)
}

// noRemote says that the repository has no such remote.
func noRemote(t Task) string {
	return fmt.Sprintf("the repository has no remote %s; add it with git remote add %s URL, or name another one with tasks.remote in fairlead.yaml",
		remoteName(t), remoteName(t))
}

// atRemote runs git about the remote, with the person's login and without prompts.
func (t Task) atRemote(ctx context.Context, most time.Duration, args ...string) (string, error) {
	env := []string{"GIT_NO_LAZY_FETCH=1"}
	if ssh, err := t.ask(ctx, nil, "config", "--get", "core.sshCommand"); err == nil && ssh != "" {
		env = append(env, "GIT_SSH_COMMAND="+ssh+" -o BatchMode=yes")
	}
	said, err := t.own().Run(ctx, most, env, nil, args...)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return said, err
	}
	code := forge.Words(err.Error())
	if errors.Is(err, context.DeadlineExceeded) {
		code = forge.Offline
	}
	return said, &forge.Fault{Code: code, Text: fmt.Sprintf("remote %s: %v", remoteName(t), err)}
}
