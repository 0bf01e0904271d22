package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/hosts/link"
)

// tokenBytesMax is how much of standard input is read for a token.
const tokenBytesMax = 16 << 10

// Joining are the flags of `host join`.
type Joining struct {
	Name     string
	Labels   []string
	Capacity int
	Engine   bool
	Listen   string // of an engine host
}

// Joined reads the settings of a machine that has joined a team; nil: it has not.
func Joined(dir string) (*worker.Config, error) {
	c, err := worker.LoadConfig(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &c, err
}

// Join makes the current folder the one of a host, by a token. "-" reads it from standard input.
func Join(ctx context.Context, a *cli.App, words []string, opts Joining) error {
	text := strings.Join(words, "")
	if text == "-" {
		read, err := io.ReadAll(io.LimitReader(a.In, tokenBytesMax))
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		text = string(read)
	}
	token, err := invite.ParseToken(strings.Join(strings.Fields(text), "")) // a terminal or a mail may have wrapped it
	if err != nil {
		return misused("%w; put it in quotation marks, or pipe it into `fairlead host join -`", err)
	}
	if err := person(a, "join"); err != nil {
		return err
	}
	w := worker.Config{Team: token.Team, Labels: slices.Compact(slices.Sorted(slices.Values(slices.Concat(token.Labels, opts.Labels))))}
	if w.Name, err = hostName(opts.Name); err != nil {
		return err
	}
	if w.Capacity, err = capacity(opts.Capacity); err != nil {
		return err
	}
	if err := checkLabels(w.Labels); err != nil {
		return err
	}
	if err := belongs(a.Dir); err != nil {
		return err
	}
	if err := opts.engine(a, token, w.Name); err != nil {
		return err
	}
	if workspace.BootID() == "" { // the host could not start, and the token would be used
		return refused("a host needs Linux, because this system has no boot id")
	}
	made, err := repository(ctx, a.Dir, token)
	if err != nil {
		return err
	}
	space, err := workspace.OpenWorkspace(a.Dir)
	if err != nil {
		return err
	}
	defer space.Close()
	if err := ca.Forget(worker.Folder(a.Dir)); err != nil { // of a command that was interrupted
		return err
	}
	id, err := ca.NewIdentity(worker.Folder(a.Dir), w.Name, time.Now)
	if err != nil {
		return err
	}
	joined, err := invite.Join(ctx, token, id, opts.Listen, time.Now)
	if err != nil {
		if _, ok := errors.AsType[*invite.Refused](err); ok {
			return &cli.Coded{Code: cli.ExitRefused, Err: err}
		}
		return err
	}
	for _, server := range joined.Servers {
		w.Addresses = append(w.Addresses, strings.TrimPrefix(server, "tls://"))
	}
	if opts.Engine {
		err = store(a.Dir,
			Cluster{Team: w.Team, Name: w.Name, Listen: opts.Listen, Capacity: w.Capacity, Labels: w.Labels, Leader: w.Addresses})
	} else {
		err = worker.SaveConfig(a.Dir, w)
	}
	if err != nil {
		return ca.Explain(err, w.Team, time.Now())
	}
	return a.Show(w, func() error {
		if made {
			fmt.Fprintln(a.Out, "The folder was empty: it is a git repository now. The leader sends what sessions need.")
		}
		fmt.Fprintf(a.Out, "This machine is host %s of team %s, with room for %s.\n\nNext:\n  fairlead up\n", w.Name, w.Team,
			cli.HowMany(w.Capacity, "session", "sessions"))
		return nil
	})
}

// engine checks the flags of an engine host.
func (j *Joining) engine(a *cli.App, token invite.Token, name string) error {
	is := token.Role == cluster.Engine
	switch {
	case is && !j.Engine:
		return misused("this invitation is for an engine host: add --engine and --listen ADDRESS:PORT, or make another one with `fairlead host invite`")
	case !is && j.Engine:
		return misused("this invitation is for a host that only runs sessions; `fairlead host invite --engine` makes one for an engine host")
	case !is && j.Listen != "":
		return misused("a host that only runs sessions opens no port: leave out --listen")
	case !is:
		return nil
	}
	on, _, err := net.SplitHostPort(j.Listen)
	if on == "localhost" {
		j.Listen = strings.Replace(j.Listen, on, "127.0.0.1", 1)
	}
	if ip := net.ParseIP(on); err != nil || on == "" || ip != nil && ip.IsUnspecified() {
		return misused("--listen needs the address and port at which the other engine hosts reach this machine, such as 192.168.1.7:4222, not %q", j.Listen)
	}
	routes, err := (cluster.EngineHost{Name: name, Address: j.Listen}).Routes()
	if err != nil {
		return misused("--listen: %w", err)
	}
	if _, err := a.Load(); err != nil {
		return fmt.Errorf("an engine host needs a clone of the team's repository with its fairlead.yaml: %w", err)
	}
	if own := journalFile(a.Dir); cli.Exists(own) {
		return refused("this folder has its own journal, %s, and an engine host stores the team's journal there; "+
			"use another clone, or move the file away with those beside it (-wal, -shm, -archive)", own)
	}
	listener, err := link.Listen(j.Listen) // otherwise the team has an address at which this host cannot start
	if err != nil {
		return misused("--listen: %w", err)
	}
	listener.Close()
	if listener, err = link.Listen(routes); err != nil {
		return misused("--listen: the server of an engine host needs the next port, too: %w", err)
	}
	listener.Close()
	return nil
}

// Leader says to a host at which addresses the leader is. Its keys and its sessions stay as they are.
func Leader(a *cli.App, addresses []string) error {
	if err := person(a, "leader"); err != nil {
		return err
	}
	w, err := Joined(a.Dir)
	if err != nil {
		return err
	}
	c, err := Load(a.Dir)
	if err != nil {
		return err
	}
	if c != nil {
		facts, err := engine.LoadFacts(worker.Folder(a.Dir))
		if err != nil {
			return err
		}
		if c.Joined() || facts.Stream {
			is := c.Worker(facts)
			w = &is
		}
	}
	if w == nil {
		return refused("this machine is no host of a team that another machine leads; `fairlead host join` makes it one")
	}
	w.Addresses = addresses
	if wrong := w.Wrong(); wrong != "" {
		return misused("%s", wrong)
	}
	then := "If Fairlead runs here, it uses them as soon as it has no connection."
	if c == nil {
		err = worker.SaveConfig(a.Dir, *w)
	} else {
		c.Leader, then = addresses, "If Fairlead runs here, `fairlead down` and `fairlead up` let it use them."
		err = store(a.Dir, *c)
	}
	if err != nil {
		return ca.Explain(err, w.Team, time.Now())
	}
	if !running(a) {
		then = "`fairlead up` connects to it."
	}
	return a.Say(w, "Host %s looks for the leader of team %s at %s. %s", w.Name, w.Team, strings.Join(addresses, ", "), then)
}

func checkLabels(labels []string) error {
	if bad := slices.IndexFunc(labels, func(l string) bool { return !host.IsWord(l) }); bad >= 0 {
		return misused("--label takes 1 to 63 characters a-z, 0-9 and -, not %q", labels[bad])
	}
	return nil
}

// repository checks that a folder can be a host's: the top of a repository with the team's history, or empty. An
// empty one becomes a repository.
func repository(ctx context.Context, dir string, token invite.Token) (made bool, err error) {
	git := worktree.Git{Dir: dir}
	top, err := git.Ask(ctx, "rev-parse", "--show-toplevel")
	if err == nil {
		top = filepath.Clean(strings.TrimSuffix(top, "\n"))
		if real, err := filepath.EvalSymlinks(top); err == nil {
			top = real
		}
	}
	names, rerr := os.ReadDir(dir)
	switch {
	case rerr != nil:
		return false, rerr
	case err == nil && top != dir && len(names) > 0:
		return false, refused("this folder is inside of the repository %s; run the command there, or in an empty folder elsewhere", top)
	case err != nil && !worktree.GitSaidNo(err) && !worktree.GitHasNone(err):
		return false, err // git is not installed
	case len(names) == 0:
		_, err = git.Ask(ctx, "init", "--quiet")
		return true, err
	case err != nil && slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() != ".fairlead" }):
		return false,
			refused("%s has files and is no git repository; run the command in an empty folder, or in a clone of the team's repository",
				dir)
	case err != nil: // of a command that was interrupted
		_, err = git.Ask(ctx, "init", "--quiet")
		return true, err
	}
	roots, err := git.Ask(ctx, "rev-list", "--max-parents=0", "--all")
	if err != nil {
		return false, err
	}
	if roots == "" && token.Root != "" && token.Role == cluster.Engine { // the leader's branches would come beside its files
		return false, refused("%s has no commit, and an engine host needs a clone of the repository of team %s", dir, token.Team)
	}
	if all := strings.Fields(roots); len(all) > 0 && token.Root != "" && !slices.Contains(all, token.Root) {
		return false,
			refused("%s is not the repository of team %s: its first commit is %.12s, not %.12s; run the command in an empty folder, or in a complete clone of the team's repository", dir, token.Team, all[0], token.Root)
	}
	return false, nil
}
