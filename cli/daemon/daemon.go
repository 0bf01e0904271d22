package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/login"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/configure"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/indexer"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/ui"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/logins"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Daemon is everything that `fairlead up` assembles: the workspace, the journal, the files, the
// controller and its servers.
type Daemon struct {
	Conf       *config.Config
	space      *workspace.Workspace
	log        *slog.Logger
	Engine     *app.App
	Url        string // of Mission Control; it contains no secret
	Logins     *login.Logins
	journal    journal.Journal
	search     *search.Index // nil: there is none
	startIndex func()
	lead       *lead    // nil: this repository is not that of a cluster
	beside     *engines // outlives the daemon; nil: it does not, and openDaemon makes it

	sockets  *caller.SessionSockets
	listener net.Listener // TCP; set before the start: it is open already
	address  string       // of door

	disk atomic.Value  // a string: see nearBudget
	look chan struct{} // capacity 1: notices look again

	choice *choice // nil: no person is asked about changes of fairlead.yaml

	reloads chan *config.Source // configurations to start again with; nil: this daemon cannot reload
	// reloadFault is why the daemon did not start with a changed configuration and runs with the one before.
	reloadFault error
	runsOnly    bool // no agent starts, except for a step of a run
	takesOver   bool // it begins because this host leads from now on

	Ran     chan error     // of the controller; gets one value
	closers []func() error // in the order in which things were opened
}

// Logs are the files that report changes to other programs.
var Logs = []struct {
	Name, Called string
	writer       func(*app.App) func(ctx context.Context, path string) error
}{
	{"transitions.jsonl", "the transition log", func(e *app.App) func(context.Context, string) error { return e.Transitions.LogTransitions }},
	{"turns.jsonl", "the log of turns", func(e *app.App) func(context.Context, string) error { return e.Transitions.LogTurns }},
}

// OpenDaemon locks the workspace and recovers the team. When it returns, orders are accepted, and
// everything that outlived the last daemon is known.
func OpenDaemon(ctx context.Context, conf *config.Config, listen string, log *slog.Logger) (*Daemon, error) {
	return openDaemon(ctx, &Daemon{Conf: conf, log: log}, listen)
}

// OpenForRuns is OpenDaemon for a process that only does runs: it starts no agent for anything else.
func OpenForRuns(ctx context.Context, a *cli.App, listen string, log *slog.Logger) (*Daemon, error) {
	if !cli.Exists(filepath.Join(a.Dir, config.FileName)) && !cli.Exists(filepath.Join(a.Dir, ".fairlead", keptName)) {
		conf, err := a.LoadOrNone()
		if err != nil {
			return nil, err
		}
		return openDaemon(ctx, &Daemon{Conf: conf, log: log, runsOnly: true}, listen)
	}
	g, source, err := settled(ctx, a, "")
	if err != nil {
		return nil, err
	}
	return openDaemon(ctx, &Daemon{Conf: source.Conf, choice: g, log: log, runsOnly: true}, listen)
}

// openDaemon opens a daemon from its fields.
func openDaemon(ctx context.Context, d *Daemon, listen string) (_ *Daemon, err error) {
	conf := d.Conf
	if err := mayOpen(d); err != nil {
		return nil, err
	}
	d.Ran, d.look = make(chan error, 1), make(chan struct{}, 1)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.listener != nil {
		d.closers = append(d.closers, ignoreClosed(d.listener))
	}
	if d.beside != nil && d.beside.space != nil {
		d.space = d.beside.space
	} else if d.space, err = workspace.OpenWorkspace(conf.Dir); err != nil {
		return nil, err
	} else {
		d.closers = append(d.closers, d.space.Close)
	}
	if d.listener == nil {
		if d.listener, err = d.listen(cmp.Or(listen, conf.Listen)); err != nil { // first, because a port in use is the most common failure
			return nil, err
		}
		d.closers = append(d.closers, ignoreClosed(d.listener))
	}
	d.address = "http://" + d.listener.Addr().String()
	if d.beside == nil {
		d.beside = &engines{}
		d.closers = append(d.closers, d.beside.Close)
	}
	if !d.runsOnly {
		if d.lead, err = openLead(ctx, conf, d.log, d.beside); err != nil {
			return nil, err
		}
	}
	if d.lead != nil {
		d.closers = append(d.closers, d.lead.Close)
	}
	if err := d.openEngine(ctx); err != nil {
		return nil, err
	}
	return d, d.serve(ctx)
}

// mayOpen refuses a daemon with a journal of its own where another host has the journal, or others have it, too.
func mayOpen(d *Daemon) error {
	is, err := hosts.Load(d.Conf.Dir)
	if err != nil {
		return err
	}
	if worker.Joined(d.Conf.Dir) {
		return errOfHost
	}
	facts, err := engine.LoadFacts(worker.Folder(d.Conf.Dir))
	switch {
	case err != nil || is == nil || d.beside.leading() != nil:
		return err
	case facts.Stream:
		return &cli.Coded{
			Code: cli.ExitRefused,
			Err:  errors.New("the journal of this team is replicated by its engine hosts; start the daemon first, with `fairlead up`"),
		}
	case is.Joined():
		return errOfHost
	}
	return nil
}

func (d *Daemon) openJournal(ctx context.Context) (journal.Journal, error) {
	path := d.space.Path("journal.db")
	if d.lead == nil {
		return sqlite.Open(ctx, path)
	}
	ctx, done := d.beside.untilAsked(ctx)
	defer done()
	j, err := d.beside.journal(ctx, path)
	if err != nil && errors.Is(context.Cause(ctx), errAsked) {
		return nil, errAsked
	}
	return j, err
}

// openEngine opens the journal and the files, and recovers.
func (d *Daemon) openEngine(ctx context.Context) error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(loop.Processors())
	}
	j, err := d.openJournal(ctx)
	if err != nil {
		return err
	}
	d.journal = j
	d.closers = append(d.closers, j.Close, d.beside.beginVerifying(j, d.lead.unfit))
	d.index(ctx, j) // closed after the engine: it takes the last changes
	files := agentstate.Watch(d.log)
	d.closers = append(d.closers, files.Close)
	documents := crewdocs.Watch(d.space.Path("agents"), d.log)
	d.closers = append(d.closers, documents.Close)
	folders, err := dispatchctl.WatchSessions(d.Conf.Dir, d.log)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, folders.Close)
	notices, err := d.openNotices()
	if err != nil {
		return err
	}
	scope, err := shim.EnterScope(d.Conf.Dir)
	if err != nil {
		d.log.Debug("sessions get no cgroups; their shims hold their limits", "why", err)
	}
	shims := &sessions.Shims{Folder: d.space.Path("sessions"), Workspace: d.Conf.Dir, Scope: scope}
	d.beside.shims.Store(shims)
	d.sockets = caller.NewSessionSockets()
	d.closers = append(d.closers, d.sockets.Close)
	d.Engine, err = app.Open(ctx, outside.Options{
		Confirmed: d.confirmed(), Include: d.include, Unconfirmed: d.waiting,
		Name: filepath.Base(d.Conf.Dir), Config: d.Conf, Journal: j, Files: files, Documents: documents, Sessions: folders,
		Drivers: cli.Drivers(),
		Host:    shims,
		Lookup:  lookupEnv, BootID: workspace.BootID(), Log: d.log, Notices: notices,
		ProcessConflicts: sessions.ProcessConflicts(d.Conf.Dir), Offer: d.offer, Sockets: d.sockets, RunsOnly: d.runsOnly,
		Room: sessions.Room(d.space.Path()), FreeDisk: func() (free, all uint64, err error) { return file.DiskFree(d.space.Path()) },
		Proxy:   func() (outside.ProxyConn, error) { return findProxy(sessions.ProxyFolder(d.space.Path(""))) },
		Cluster: d.lead.cluster(d.space.Path("hosts"), shims),
	})
	if err != nil {
		return err
	}
	if err := d.atStart(d.Engine.Loop.State().Governing); err != nil {
		d.Engine.Close(err)
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { d.Ran <- d.Engine.Run(run) }()
	d.closers = append(d.closers, func() error { cancel(); return <-d.Ran })
	select {
	case <-d.Engine.Loop.Ready():
	case err := <-d.Ran:
		d.Ran <- nil // for the closer
		return err
	}
	if err := d.begun(ctx); err != nil {
		return err
	}
	beside := func(do func(context.Context)) {
		ended := make(chan struct{})
		go func() { defer close(ended); do(run) }()
		d.closers = append(d.closers, func() error { cancel(); <-ended; return nil })
	}
	beside(d.watchSpace)
	beside(d.watchGoverning)
	beside(func(ctx context.Context) { logins.Watch(ctx, d.space.Path(), d.log) })
	if d.lead != nil && d.beside.leading() == nil {
		beside(func(ctx context.Context) { d.extendOwn(ctx, shims) })
	}
	beside(func(ctx context.Context) {
		if !retry.Rest(ctx, startOver) {
			return
		}
		if file, is := j.(*sqlite.Journal); is {
			file.Rest()
		}
		debug.FreeOSMemory()
	})
	if !d.runsOnly {
		beside(d.watchDisk)
	}
	for _, log := range Logs {
		logged := make(chan error, 1)
		go func() { logged <- log.writer(d.Engine)(run, d.space.Path("log", log.Name)) }()
		d.closers = append(d.closers, func() error { cancel(); return <-logged })
	}
	d.startIndex()
	d.closers = append(d.closers, d.lastGoverning, d.flushNotices) // before those above end the engine
	return nil
}

// begun stores what outlives a daemon that has begun to serve: the configuration that it obeys, and what it knows as a leader.
func (d *Daemon) begun(ctx context.Context) error {
	if err := d.keep(); err != nil {
		return err
	}
	if d.lead != nil && d.beside.known().Lost {
		if _, err := d.Engine.Cluster.KeepAlone(ctx, change.Actor{Kind: "human", ID: "cluster leave --others-lost"}); err != nil {
			return err
		}
	}
	if d.beside.leading() != nil {
		epoch := uint64(0)
		if err := d.Engine.Loop.View(ctx, func(t *team.Team) { epoch = t.Epoch }); err != nil {
			return err
		}
		if err := worker.KeepEpoch(d.Conf.Dir, epoch); err != nil {
			return err
		}
	}
	return nil
}

// extendOwn moves the deadline of sessions on this machine that began while another one could lead. Now none can, so they end only
// if no daemon runs here.
func (d *Daemon) extendOwn(ctx context.Context, shims *sessions.Shims) {
	for leased := true; leased; {
		if err := d.Engine.Loop.View(ctx, func(t *team.Team) { leased = t.Hosts.Placed(d.lead.is.Name) > 0 }); err != nil || !leased {
			return
		}
		if err := shims.Extend(ctx, boottime.Now()+host.EndAfter); err != nil && ctx.Err() == nil {
			d.log.Warn("a session on this machine did not accept its new deadline; it ends unless a later deadline reaches it", "error",
				err)
		}
		if !retry.Rest(ctx, time.Duration(host.RenewEvery)) {
			return
		}
	}
}

// index prepares the search index, which startIndex keeps up to date beside everything else. It is a
// cache: nothing waits for it, and a fault of it is reported and stops nothing.
func (d *Daemon) index(ctx context.Context, j journal.Journal) {
	if d.runsOnly {
		d.startIndex = func() {}
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	scope, err := shim.EnterScope(d.Conf.Dir)
	if err != nil {
		d.log.Debug("sessions get no cgroups; their shims hold their limits", "why", err)
	}
	shims := &sessions.Shims{Folder: d.space.Path("sessions"), Workspace: d.Conf.Dir, Scope: scope}
	d.search = search.New(d.space.Path("search.db"), search.BytesMax)
	keeper := indexer.New(indexer.Options{
		Index: d.search, Journal: j, Drivers: cli.Drivers(), Output: shims.Output, Size: shims.OutputBytes, Log: d.log,
		Driver: func(agent string) string {
			for i := range d.Conf.Agents {
				if d.Conf.Agents[i].Name == agent {
					return d.Conf.Agents[i].Driver
				}
			}
			return ""
		},
	})
	var running sync.WaitGroup
	d.startIndex = func() { running.Go(func() { keeper.Run(ctx) }) }
	d.closers = append(d.closers, func() error {
		cancel()
		running.Wait()
		if err := d.search.Close(); err != nil {
			d.log.Warn("the search index could not be closed; the next start continues", "error", err)
		}
		return nil
	})
}

// startOver is when the memory that only the start needed is returned to the system: the readers of the journal have
// finished, and the search index has followed it. It costs one collection of garbage.
const startOver = 10 * time.Second

// spaceLook is how often a daemon checks that its folder still exists; a check is one system call.
const spaceLook = time.Second

// watchSpace stops the daemon if its folder is gone: otherwise it would acknowledge orders that are
// not stored, and no command would find it.
func (d *Daemon) watchSpace(ctx context.Context) {
	tick := time.NewTicker(spaceLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.space.Lost(); err != nil {
			d.Engine.Loop.Fail(err)
			return
		}
		d.space.Keep(d.log)
	}
}

// serve starts both listeners: TCP for the page and programs, the socket for Fairlead's own
// commands.
func (d *Daemon) serve(ctx context.Context) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	if d.Logins, err = login.Open(d.space.Path("logins.json"), d.log); err != nil {
		return err
	}
	announce := func(socket string) error {
		return d.space.Announce(workspace.Daemon{
			PID: os.Getpid(), Address: d.address, Socket: socket, Version: version.String(),
			Origins: originsOf(d.Conf),
		})
	}
	socket, err := server.KeepSocket(d.Conf.Dir, d.log, announce)
	if err != nil {
		return err
	}
	store := "sqlite"
	if d.lead != nil && d.beside.known().Stream {
		store = "jetstream"
	}
	server := server.New(server.Options{
		Engine: d.Engine, UI: ui.Handler(), Token: token, Logins: d.Logins, Log: d.log, Version: version.String(), Dir: d.Conf.Dir,
		Store: store,
		Hosts: []string{d.listener.Addr().String()}, Address: d.address,
		Origins: d.Conf.Origins,
		Reload:  d.reloader(), Editor: d.editor(), Workflows: d.namedWorkflows, Listed: d.Conf.Workflows, ReloadFault: d.reloadFault,
		Past: offline.Past(d.Conf, cli.Drivers(), d.Engine.Loop.Journal()), Search: d.search, Invite: d.lead.inviter(), Stop: d.stop,
		Lead: d.lead.leader(), Leader: d.beside.state,
		MCP: mcp.New(mcp.Options{Engine: d.Engine.Tools, Log: d.log, Version: version.String()}),
	})
	if d.lead != nil {
		d.lead.begin(d.Engine.Cluster, server.HostHandler)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, d.listener, socket, d.sockets) }()
	d.closers = append(d.closers, func() error { stop(); return <-served })
	d.Url = d.address + "/"
	return announce(socket.Addr().String())
}

// namedWorkflows are the workflows that the fairlead.yaml in force names.
func (d *Daemon) namedWorkflows() []string { return d.Conf.Workflows }

// originsOf are the addresses of the page besides the listener's, as texts.
func originsOf(conf *config.Config) (all []string) {
	for _, o := range conf.Origins {
		all = append(all, o.String())
	}
	return all
}

// reloader is how the API reloads; nil if nothing waits for configurations.
func (d *Daemon) reloader() func(context.Context, change.Actor, api.ReloadBody) ([]string, error) {
	if d.reloads == nil {
		return nil
	}
	return d.reload
}

// editor changes the agents of fairlead.yaml for the API; nil if nothing waits for configurations.
func (d *Daemon) editor() server.AgentEditor {
	if d.reloads == nil {
		return nil
	}
	return &configure.Editor{Dir: d.Conf.Dir, Lookup: lookupEnv, Reload: func(ctx context.Context, want api.ReloadBody) ([]string, error) {
		return d.reload(ctx, change.Actor{Kind: "human", ID: "configure"}, want)
	}, Sessions: func(ctx context.Context, agent string) (ids []string) {
		is, err := d.Engine.Status.Agent(ctx, agent)
		if err != nil {
			return nil // it is only a note
		}
		for _, s := range is.Sessions {
			ids = append(ids, s.ID)
		}
		return ids
	}}
}

// listen opens the TCP listener. A host that takes the lead over takes any free port if that of the page is in use: the team needs
// a leader more than the page needs its address.
func (d *Daemon) listen(addr string) (net.Listener, error) {
	listener, err := listenAgain(d.Conf.Dir, addr)
	taken := &server.PortTaken{}
	if !d.takesOver || !errors.As(err, &taken) {
		return listener, err
	}
	host, _, _ := net.SplitHostPort(addr) // it was parsed to find the port in use
	listener, err = server.Listen(net.JoinHostPort(host, "0"))
	if err == nil {
		d.log.Warn("the page uses another port while this host leads", "address", listener.Addr(), "why", taken)
	}
	return listener, err
}

// listenAgain opens the TCP listener. If any port will do, it reuses the previous daemon's port if
// that is free, because sessions that outlived it have that address for their tools.
func listenAgain(dir, listen string) (net.Listener, error) {
	if host, port, err := net.SplitHostPort(listen); err == nil && port == "0" {
		before, err := workspace.FindDaemon(dir)
		at, cut := strings.CutPrefix(before.Address, "http://"+net.JoinHostPort(host, ""))
		if err == nil && cut {
			if listener, err := server.Listen(net.JoinHostPort(host, at)); err == nil {
				return listener, nil
			}
		}
	}
	return server.Listen(listen)
}

// offer returns where an agent finds its tools in one session.
func (d *Daemon) offer(agent, session string) driver.MCP {
	self, err := os.Executable()
	if err != nil {
		self = "fairlead" // the one in the PATH
	}
	return driver.MCP{URL: d.address + mcp.Path, Token: mcp.NewToken(agent, session), Stdio: []string{self, "mcp", "--dir", d.Conf.Dir}}
}

func ignoreClosed(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// token returns the workspace's token for programs. It stays the same over restarts.
func (d *Daemon) token() (string, error) {
	path := d.space.Path("token")
	// A token that others could have read, or that came with a cloned repository, is replaced.
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 {
		if text, err := os.ReadFile(path); err == nil && len(strings.TrimSpace(string(text))) >= 32 {
			return strings.TrimSpace(string(text)), nil
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("remove an invalid token: %w", err)
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	token := base64.RawURLEncoding.EncodeToString(secret)
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("store the token: %w", err)
	}
	return token, nil
}

// Close closes everything, last opened first. Agents keep running.
func (d *Daemon) Close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// findProxy connects to the proxy of the sessions, if one runs.
func findProxy(folder string) (outside.ProxyConn, error) {
	real, err := wire.Folder(folder)
	if err != nil {
		return nil, err // no session has needed one yet
	}
	c, err := wire.Find(real, wire.RoleWatcher)
	if err != nil {
		return nil, err
	}
	return c, nil
}
