package server

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/login"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/origin"
	"github.com/fairlead-dev/fairlead/read/search"
)

// Options configure a server.
type Options struct {
	Engine  *app.App
	UI      http.Handler    // Mission Control; nil: none
	Token   string          // the token for programs over TCP; empty: it opens nothing
	Logins  *login.Logins   // the browsers that are signed in; nil: none can sign in
	Hosts   []string        // HOST or HOST:PORT from --listen; loopback names with our port are always accepted
	Origins []origin.Origin // where the page is opened through a tunnel or a proxy; only browsers' secrets count there
	Log     *slog.Logger
	Version string
	Dir     string        // the repository
	Address string        // of the page: http://127.0.0.1:7466
	Store   string        // the journal's store: sqlite or memory
	MCP     http.Handler  // the tools for agents (NewMCP); nil: none
	Search  *search.Index // nil: there is none, and searches are answered with 503
	User    string        // the name of people in the journal; empty: the owner of this process

	// Reload loads fairlead.yaml again. It returns what changed before the change takes effect; nil: this
	// daemon cannot reload. The error is a *api.Problem, or a *machine.Refusal.
	Reload    func(ctx context.Context, by change.Actor, want api.ReloadBody) (changes []string, err error)
	Listed    []string        // those that the fairlead.yaml lists with which this daemon runs: programs on other hosts may name only these
	Workflows func() []string // the paths of workflows that fairlead.yaml names; nil: none
	Editor    AgentEditor     // changes agents of fairlead.yaml; nil: they cannot be changed here

	// Invite makes an invitation for a host; nil: this daemon leads no cluster. Its errors are *api.Problem.
	Invite func(ctx context.Context, by string, labels []string, engine bool) (*api.Invitation, error)
	// Stop stops the daemon as Engine.Stop does. unwritten is what could not be stored, if the daemon ends all the same; nil: Engine.Stop.
	Stop func(ctx context.Context, by change.Actor, now bool) (unwritten string, err error)
	// Lead hands the lead over to another engine host; nil: this daemon leads no cluster. Its errors are *api.Problem.
	Lead func(ctx context.Context, name string) error

	// Leader says whether this daemon knows the present state of the team; nil: it does.
	Leader func() api.Leader

	// Past opens the team as it was at an earlier moment, for reading; nil: the past cannot be shown. end closes it.
	Past func(ctx context.Context, at Moment) (engine *app.App, end func() error, err error)

	// ReloadFault is why the daemon did not start with a changed fairlead.yaml and runs with the one before.
	ReloadFault error
}

// Server is the API server. Make it with New; Close ends its streams.
type Server struct {
	engine    *app.App
	ui        http.Handler
	token     [sha256.Size]byte
	closed    bool // to all callers over TCP, because there is no token
	hosts     []string
	log       *slog.Logger
	opts      Options
	room      int // maximum connections of one listener
	waits     waits
	polls     polls
	histories dispatchHistories
	past      moments

	routed func() *http.ServeMux // routes, made for the first request: a run without a daemon gets none

	streams  atomic.Int64 // open streams of all kinds
	watchers atomic.Int64 // those of the journal among them

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// New makes a server.
func New(opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.User == "" {
		opts.User = owner()
	}
	s := &Server{
		engine: opts.Engine, ui: opts.UI, token: sha256.Sum256([]byte(opts.Token)), closed: opts.Token == "",
		hosts: opts.Hosts, log: opts.Log, opts: opts, room: room(opts.Log), waits: waitsUsual,
		past: moments{pen: make(chan struct{}, 1)},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.routed = sync.OnceValue(s.routes)
	return s
}

// Handler serves callers over TCP, which need the token or the secret of a login.
func (s *Server) Handler() http.Handler {
	return s.headers(s.mcp(s.opts.MCP, s.guard(straight(s.whole(ours(dated(http.HandlerFunc(s.route))))))))
}

// SocketHandler serves the same routes to callers over the unix socket. The listener must have
// checked the peer (see ListenSocket).
func (s *Server) SocketHandler() http.Handler {
	return s.headers(s.mcp(s.opts.MCP, entered(entranceSocket, straight(s.whole(ours(dated(http.HandlerFunc(s.route))))))))
}

// route answers a request that was checked.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	s.routed().ServeHTTP(w, r)
}

// Close ends every stream with a goodbye. Other requests are still answered as long as the loop
// runs.
func (s *Server) Close() error {
	s.cancel()
	return s.past.closeAll()
}

// owner returns the login name of the owner of this process.
func owner() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}
