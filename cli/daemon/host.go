package daemon

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// errOfHost refuses what needs a journal of its own.
var errOfHost = &cli.Coded{
	Code: cli.ExitRefused,
	Err:  errors.New("this machine is a host of a team that another machine leads, and has no journal; `fairlead up` connects it, and then commands ask the leader"),
}

// IsHost reports whether this machine runs sessions for a leader elsewhere. An engine host may lead now, or not.
func IsHost(a *cli.App) (bool, error) {
	if err := a.Place(nil); err != nil {
		return false, err
	}
	is, err := hosts.Load(a.Dir)
	if err != nil || is == nil {
		return worker.Joined(a.Dir), err
	}
	d, err := workspace.FindDaemon(a.Dir)
	if errors.Is(err, os.ErrNotExist) || errors.As(err, new(*workspace.Unreadable)) {
		return is.Joined(), nil
	}
	return err == nil && d.Address == "", err // only a leader serves the page
}

// leadAgain is how long a host that could not lead leaves that to others.
const leadAgain = 30 * time.Second

// upHost runs a host until it is stopped, or the team refuses it. beside is of one that was an engine host until now.
func upHost(ctx context.Context, a *cli.App, opts UpOptions, beside *engines) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // closing a terminal must not end it
	if opts.Listen != "" && beside == nil {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  errors.New("this machine is a host and serves no page: leave out --listen; Mission Control is on the leader's machine"),
		}
	}
	conf, err := worker.LoadConfig(a.Dir)
	if err != nil {
		return err
	}
	return runHost(ctx, a, opts, conf, beside)
}

// runHost runs sessions for the leader until ctx ends. beside is of an engine host. It says that it is ready, unless the process has said
// so.
func runHost(ctx context.Context, a *cli.App, opts UpOptions, conf worker.Config, beside *engines) error {
	var said error
	err := worker.Run(ctx, worker.Options{
		Dir: a.Dir, Space: beside.locked(), Identity: beside.identity(), Config: conf, Log: a.Logger(opts.Verbose),
		Version: version.String(), Learned: beside.learned(), Other: beside.mayNotLead(),
		NoStore: func() string { return beside.noStore() }, AsOf: beside.asOf(), Setup: beside.setup(),
		Down: func() {
			if beside != nil {
				beside.stopping.Store(true)
			}
		},
		Ready: func() {
			if beside == nil || !beside.said {
				said = a.Say(map[string]any{"ready": true, "host": conf.Name, "team": conf.Team, "pid": os.Getpid()},
					"ready host %s of team %s", conf.Name, conf.Team)
				if beside != nil {
					beside.said = true
				}
			}
		},
	})
	if _, ok := errors.AsType[*worker.Gone](err); ok {
		return &cli.Coded{Code: cli.ExitRefused, Err: err}
	}
	return errors.Join(err, said)
}

// locked is the folder, if it is locked for more than one daemon; else nil.
func (e *engines) locked() *workspace.Workspace {
	if e == nil {
		return nil
	}
	return e.space
}

// identity is that of an engine host, which its server and its connection to the leader share; nil: it is none.
func (e *engines) identity() *ca.Identity {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.id
}

// setup says which configuration an engine host has; nil: it is none.
func (e *engines) setup() func() string {
	if e == nil || worker.Joined(e.dir) {
		return nil
	}
	return func() string {
		sum, err := config.Sum(e.dir)
		if err != nil {
			return "unreadable" // it is no other's
		}
		return sum
	}
}

// configs are the configurations of the leader and of this host. They are equal if that of the leader is not known, or this one led last.
func (e *engines) configs() (its, own string) {
	e.mu.Lock()
	facts, name := e.facts, e.is.Name
	e.mu.Unlock()
	if read := e.setup(); read != nil {
		own = read()
	}
	if facts.Leader == name || facts.Config == "" {
		return own, own
	}
	return facts.Config, own
}

// mayNotLead says why an engine host would not lead; nil: it is none.
func (e *engines) mayNotLead() func() *api.OtherConfig {
	if e == nil || worker.Joined(e.dir) {
		return nil
	}
	return func() *api.OtherConfig {
		its, own := e.configs()
		if its == own {
			return nil
		}
		is := &api.OtherConfig{Leader: e.known().Leader}
		ref := transfer.EngineRef(is.Leader)
		if text, err := (worktree.Git{Dir: e.dir}).Ask(e.ctx, "cat-file", "blob", ref+":"+config.FileName); err == nil &&
			config.SumOf([]byte(text)) == its {
			is.Ref = ref
		}
		return is
	}
}

// demote notes with which configuration the team was led, if that is why this host does not lead: its leader was lost before it could
// say so.
func (e *engines) demote(err error) {
	fenced, is := errors.AsType[*sessionhost.Fenced](err)
	if !is || fenced.Config == "" {
		return
	}
	e.learn(func() engine.Facts {
		facts := e.facts
		facts.Leader, facts.Config = fenced.Leader, fenced.Config
		return facts
	})
}

// learned is how a host that does not lead learns of engine hosts; nil: it does not need them.
func (e *engines) learned() func(wire.RenewOut) {
	if e == nil || worker.Joined(e.dir) {
		return nil
	}
	return func(out wire.RenewOut) {
		switch {
		case len(out.Engines) == 0:
		case out.Alone && out.Host.Engine == "":
			ring(e.plain)
		default:
			e.learn(func() engine.Facts {
				return engine.Facts{Engines: out.Engines, Stream: out.Stream, Leader: out.Leader, Config: out.Config}
			})
		}
	}
}

// asOf is until when the journal's copy on this host has all; nil: it has none.
func (e *engines) asOf() func() time.Time {
	if e == nil {
		return nil
	}
	return func() (at time.Time) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.copy != nil {
			_, at = e.copy.AsOf()
		}
		return at
	}
}

// mayLead begins what an engine host runs beside its daemon, and reports whether it leads now. One whose journal is replicated
// leads when it has claimed that.
func (e *engines) mayLead(ctx context.Context, a *cli.App, opts UpOptions, first bool) (bool, error) {
	is, err := hosts.Load(a.Dir)
	if err != nil || is == nil {
		return true, err
	}
	if e.space == nil { // before anything listens, and for as long as this process works here, as a leader or a host
		if e.space, err = workspace.OpenWorkspace(a.Dir); err != nil {
			e.space = nil
			return false, err
		}
	}
	authority, err := ca.Load(worker.Folder(a.Dir))
	if err != nil {
		return false, err
	}
	id, err := is.Identify(a.Dir, authority)
	if err == nil {
		err = e.begin(ctx, a.Dir, *is, id, a.Logger(opts.Verbose))
	}
	if err != nil {
		return false, err
	}
	if !e.known().Stream {
		return !is.Joined(), nil
	}
	if first {
		asking, done := e.untilAsked(ctx)
		e.again(asking)
		done()
	}
	return e.leading() != nil, nil
}

// againWithin is how long a host waits for the servers when it starts, to see whether it was the last to lead.
const againWithin = 5 * time.Second

// again claims the lead at once if this host was the last to lead, since no other daemon of it runs.
func (e *engines) again(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, againWithin)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.server != nil {
		name, revision, err := e.server.Leader(ctx)
		if err == nil && name == e.is.Name {
			var leads *engine.Lead
			if leads, err = e.server.Claim(ctx, revision); err == nil {
				e.keep(leads)
			}
		}
		if err == nil || !retry.Rest(ctx, mirrorAgain/4) {
			return
		}
	}
}

// errPlain ends the daemon of an engine host that is an ordinary host from now on.
var errPlain = errors.New("this machine is no longer an engine host")

// follow runs an engine host that does not lead, until it is asked to end or has claimed the lead. It does not claim that
// before some time. The error is errPlain if it has become an ordinary host.
func (e *engines) follow(ctx context.Context, a *cli.App, opts UpOptions, signals <-chan os.Signal, after time.Duration) (claimed bool,
	err error,
) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() {
		if e.await(running, after) == nil {
			stop()
		}
	})
	plain := false
	work.Go(func() {
		select {
		case <-e.plain:
			plain = true
			stop()
		case <-running.Done():
		}
	})
	work.Go(func() {
		select {
		case <-signals:
			e.stopping.Store(true)
			stop()
		case <-running.Done():
		}
	})
	work.Go(func() { e.mirror(running, filepath.Join(a.Dir, ".fairlead", "journal.db")) })
	err = runHost(running, a, opts, e.is.Worker(e.known()), e)
	stop()
	work.Wait()
	if plain && err == nil && !e.stopping.Load() {
		e.release()
		if err = e.stopReplica(); err == nil {
			err = errPlain
		}
	}
	return e.leading() != nil && !e.stopping.Load(), err
}

// deposedBy reports whether a daemon ended because it does not lead any longer, as far as it knows.
func (e *engines) deposedBy(err error) bool {
	return e.known().Stream &&
		(errors.Is(err, errDeposed) || errors.As(err, new(*journal.Conflict)) || errors.As(err, new(*jetstream.Unproven)) ||
			errors.As(err, new(*jetstream.Damage)) || errors.As(err, new(*sessionhost.Fenced)))
}

// goesOn reports whether this host goes on as one that does not lead when its daemon has ended. A person who starts it sees instead
// why it cannot lead, unless another host does.
func (e *engines) goesOn(err error, first bool) bool {
	if err == nil || e.leading() == nil || e.stopping.Load() || e.space != nil && e.space.Lost() != nil {
		return false
	}
	return !first || e.said || e.deposedBy(err)
}

// errDeposed ends a daemon whose host does not lead any longer.
var errDeposed = errors.New("another engine host leads the team now")
