package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// hostTeam is what the connections to other hosts need of the team.
type hostTeam interface {
	Members() cluster.Members
	Admit(ctx context.Context, j invite.Joiner) error
	Renew(ctx context.Context, name string, in wire.RenewIn) (wire.RenewOut, error)
	Grant(ctx context.Context, name string, in wire.GrantIn) (host.Grant, error)
	Leave(ctx context.Context, name string) error
	Differs(name string) bool     // its fairlead.yaml is another one than the leader's
	HostOf(session string) string // on which a session is placed; empty: on none
}

// lead is a leader's end of the connections to the team's other hosts, and the server at which they join. Without
// cluster.json a daemon has none.
type lead struct {
	is          hosts.Cluster
	dir         string
	log         *slog.Logger
	id          *ca.Identity
	authority   *ca.Authority
	sum         string // the identity of the fairlead.yaml with which this daemon runs
	invitations *invite.Store
	listener    net.Listener // bound, so that a port in use is found first; it answers from begin on
	beside      *engines

	team hostTeam
	port *invite.Port
	hub  *link.Hub
	ctx  context.Context //nolint:containedctx // it ends with Close
	end  context.CancelFunc

	mu    sync.Mutex
	joins sync.WaitGroup
	open  bool
}

// openLead opens the port of a leader; nil: this repository is not that of a cluster.
func openLead(ctx context.Context, conf *config.Config, log *slog.Logger, beside *engines) (*lead, error) {
	dir := conf.Dir
	is, err := hosts.Load(dir)
	if is == nil || err != nil {
		return nil, err
	}
	l := &lead{is: *is, dir: dir, log: log, beside: beside, sum: conf.Sum}
	l.ctx, l.end = context.WithCancel(context.Background())
	if l.authority, err = ca.Load(worker.Folder(dir)); err != nil {
		return nil, err
	}
	if l.id, err = is.Identify(dir, l.authority); err != nil {
		return nil, err
	}
	if l.invitations, err = invite.OpenStore(hosts.BookFile(dir), time.Now); err != nil {
		return nil, err
	}
	if l.listener, err = link.Listen(is.Listen); err != nil {
		return nil, fmt.Errorf("the address in .fairlead/cluster/cluster.json: %w", err)
	}
	if err := beside.begin(ctx, dir, *is, l.id, log); err != nil {
		return nil, errors.Join(err, l.listener.Close())
	}
	return l, nil
}

// engines takes in which engine hosts the team has now.
func (l *lead) engines(read func() (now []cluster.EngineHost, gone []string)) {
	l.beside.learn(func() engine.Facts {
		now, gone := read()
		l.beside.removeMembers(gone)
		return engine.Facts{Engines: now, Leader: l.is.Name, Config: l.sum}
	})
}

// begin answers hosts. programs serves the API to programs on another host.
func (l *lead) begin(team hostTeam, programs func(host string, placedOn func(session string) string) http.Handler) {
	l.team = team
	l.port = invite.Share(l.listener)
	routes := http.NewServeMux()
	routes.Handle("POST "+wire.CertificateRoute, link.Certificates(l.authority, team.Members(), time.Now))
	routes.Handle("POST "+wire.RenewRoute, ofHost(team.Renew))
	routes.Handle("POST "+wire.GrantRoute, ofHost(team.Grant))
	routes.Handle("POST "+wire.LeaveRoute, ofHost(func(ctx context.Context, name string, _ struct{}) (struct{}, error) {
		return struct{}{}, team.Leave(ctx, name)
	}))
	routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		programs(link.HostOf(r.Context()), team.HostOf).ServeHTTP(w, r)
	})
	o := link.Options{Identity: l.id, Members: team.Members(), Handler: routes, Log: l.log}
	if leads := l.beside.leading(); leads != nil {
		o.Confirmed = leads.Confirmed
	}
	hub := link.Serve(l.port, o)
	l.mu.Lock()
	l.hub = hub
	l.mu.Unlock()
	if l.invitations.Until().After(time.Now()) { // invitations of before a restart
		l.serveJoins()
	}
}

// cluster is how the controllers reach the other hosts; nil: there are none.
func (l *lead) cluster(folder string, shims *sessions.Shims) *outside.Cluster {
	if l == nil {
		return nil
	}
	is := &outside.Cluster{
		Team: l.is.Team, Name: l.is.Name, Labels: l.is.Labels, Capacity: l.is.Capacity, Key: l.id.PublicKey(),
		Address: l.is.Addresses()[0], Stream: l.beside.known().Stream, Lost: l.beside.known().Lost, Folder: folder, Dial: l.dial,
		Connected: l.from, Foreign: l.foreign, Engines: l.engines, Copies: l.beside.copiesSeen, Unreplicated: l.beside.gap.is,
		Recheck: l.recheck,
	}
	if leads := l.beside.leading(); leads != nil {
		is.Confirmed, is.Deadline, is.StartLeased = leads.Confirmed, leads.Deadline, shims.StartLeased
		is.NoteLease = func(lease host.Lease) error { return local.NoteLease(shims.Folder, lease.Token, lease.OnLost) }
	}
	return is
}

// links returns the connections of hosts; nil before begin.
func (l *lead) links() *link.Hub {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hub
}

func (l *lead) dial(ctx context.Context, name string) (client *http.Client, base string, err error) {
	hub := l.links()
	if hub == nil {
		return nil, "", &link.Away{Name: name}
	}
	for {
		if client, base, err = hub.Client(name); !errors.As(err, new(*link.Away)) {
			return client, base, err
		}
		if err := hub.Await(ctx, name); err != nil {
			return nil, "", err
		}
	}
}

func (l *lead) from(name string) string {
	if hub := l.links(); hub != nil {
		return hub.From(name)
	}
	return ""
}

func (l *lead) foreign(name string) string {
	if hub := l.links(); hub != nil {
		return hub.Foreign(name)
	}
	return ""
}

func (l *lead) recheck() {
	if hub := l.links(); hub != nil {
		hub.Recheck()
	}
}

// ofHost is a route of a host. Nothing behind the body is read.
func ofHost[In, Out any](do func(context.Context, string, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		err := wire.ReadRequest(r, &in)
		if err == nil {
			var out Out
			if out, err = do(r.Context(), link.HostOf(r.Context()), in); err == nil {
				wire.Answer(w, out)
				return
			}
		}
		wire.Fail(w, err)
	}
}

// Invite makes an invitation and listens for who has it.
func (l *lead) Invite(ctx context.Context, by string, labels []string, engine bool) (*api.Invitation, error) {
	role := cluster.Host
	if engine {
		role = cluster.Engine
	}
	at := l.is.Addresses()[0]
	token, err := l.invitations.Invite(by, role, labels, at, l.authority)
	if full, is := errors.AsType[*invite.Full](err); is {
		return nil, &table.Refusal{Subject: "the team", Event: "invite", State: "full", Reason: full.Error()}
	}
	if err != nil {
		return nil, err
	}
	token.Root = root(ctx, l.dir)
	l.serveJoins()
	l.log.Info("a host was invited", "invitation", token.ID, "by", by)
	return &api.Invitation{
		Token: token.Text(), Team: token.Team, Address: at, Loopback: l.is.Loopback(),
		Labels: append([]string{}, labels...), ExpiresAt: token.Expires,
	}, nil
}

// root is the first commit of the repository; empty: it has none, or git cannot say.
func root(ctx context.Context, dir string) string {
	all, _ := worktree.Git{Dir: dir}.Ask(ctx, "rev-list", "--max-parents=0", "HEAD")
	first, _, _ := strings.Cut(all, "\n")
	return first
}

// serveJoins listens until the last invitation has expired, unless it is open.
func (l *lead) serveJoins() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open || l.ctx.Err() != nil {
		return
	}
	l.open = true
	server := &invite.Server{
		Store: l.invitations, Authority: l.authority, Members: l.team.Members(), Servers: l.is.Addresses(), Now: time.Now, Log: l.log,
		Admit: func(ctx context.Context, j invite.Joiner) error {
			err := l.team.Admit(ctx, j)
			l.recheck() // the host may have had other keys
			return err
		},
	}
	listener := l.port.JoinListener()
	l.joins.Go(func() {
		err := server.Serve(l.ctx, listener, l.id.JoinTLS())
		if err != nil && l.ctx.Err() == nil {
			l.log.Error("the listener for hosts that join has ended", "error", err)
		}
		l.mu.Lock()
		l.open = false
		again := l.invitations.Until().After(time.Now()) // one was made meanwhile
		l.mu.Unlock()
		if err == nil && again {
			l.serveJoins()
		}
	})
}

// Lead hands the lead over to another engine host.
func (l *lead) Lead(ctx context.Context, name string) error {
	leads := l.beside.leading()
	if no := l.unfit(leads, name); no != "" {
		return &table.Refusal{Subject: "host " + api.Shorten(name), Event: "lead", State: string(no), Reason: no.words(name)}
	}
	if err := leads.Give(ctx, name); err != nil {
		return api.NewProblem(http.StatusServiceUnavailable, "another host could not take over: %s", err)
	}
	return nil
}

// unfit is why the lead cannot be handed over to a host now.
type unfit string

const (
	notReplicated unfit = "not_replicated"
	leadsAlready  unfit = "leads"
	noEngine      unfit = "no_engine_host"
	otherConfig   unfit = "other_config"
	notConnected  unfit = "not_connected"
)

// unfit says why the lead cannot be handed over to a host; empty: it can.
func (l *lead) unfit(leads *engine.Lead, name string) unfit {
	hub := l.links() // there is one from begin on, and then a team
	is := slices.ContainsFunc(l.beside.known().Engines, func(e cluster.EngineHost) bool { return e.Name == name })
	switch {
	case leads == nil:
		return notReplicated
	case name == l.is.Name:
		return leadsAlready
	case !is:
		return noEngine
	case hub != nil && l.team.Differs(name):
		return otherConfig
	case hub == nil || hub.From(name) == "":
		return notConnected
	}
	return ""
}

func (u unfit) words(name string) string {
	return map[unfit]string{
		notReplicated: "the journal is on this machine alone, so no other host can lead; it is replicated when three engine hosts run",
		leadsAlready:  "it leads already",
		noEngine:      "it is no engine host of the team; `fairlead hosts` lists them",
		otherConfig: "its " + config.FileName +
			" differs from the one here, so it cannot lead; copy this machine's file to it, then run `fairlead reload` here",
		notConnected: "it is not connected; start Fairlead there with `fairlead up`",
	}[u]
}

// leader is how the API hands the lead over; nil if this daemon answers no hosts.
func (l *lead) leader() func(context.Context, string) error {
	if l == nil {
		return nil
	}
	return l.Lead
}

// inviter is how the API invites; nil if this daemon answers no hosts.
func (l *lead) inviter() func(context.Context, string, []string, bool) (*api.Invitation, error) {
	if l == nil {
		return nil
	}
	return l.Invite
}

// Close ends all connections of hosts.
func (l *lead) Close() error {
	l.end()
	var err error
	if l.hub != nil {
		err = l.hub.Close()
	}
	if closed := l.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = cmp.Or(err, closed)
	}
	l.joins.Wait()
	return err
}

// clusterChanges says what is different in cluster.json since the daemon began.
func (d *Daemon) clusterChanges() ([]string, error) {
	now, err := hosts.Load(d.Conf.Dir)
	switch {
	case err != nil:
		return nil, err
	case now == nil && d.lead != nil:
		return []string{"this machine no longer leads a cluster"}, nil
	case now != nil && (d.lead == nil || !reflect.DeepEqual(d.lead.is, *now)):
		return []string{fmt.Sprintf("host %s leads team %s, and listens for hosts on %s", now.Name, now.Team, now.Listen)}, nil
	}
	return nil, nil
}
