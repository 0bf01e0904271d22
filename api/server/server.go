package server

import (
	"context"
	"crypto/sha256"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/loop"

	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/controller/status"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/view"
)

// Backend is what the server asks of an engine. *controller.Supervisor is the real one. Its errors
// are *machine.Refusal and *team.Unknown where the answer is no, loop.ErrClosed where
// nobody answers any more, and failures in words else.
type Backend interface {
	Team(ctx context.Context) (view.TeamView, error)
	Agent(ctx context.Context, name string) (view.AgentView, error)
	Why(ctx context.Context, name string) (view.WhyView, error)
	Order(ctx context.Context, by seam.Actor, agent, desired, note string) (uint64, view.AgentView, error)
	EndAgentSession(ctx context.Context, by seam.Actor, agent string) (uint64, error)
	Hold(ctx context.Context, by seam.Actor, on bool, note string) (uint64, error)
	Stop(ctx context.Context, by seam.Actor, now bool) error
	Status(ctx context.Context) (status.Status, error)
	Journal() journal.Journal
	Changes(ctx context.Context, after uint64, entity string) iter.Seq2[journal.Change, error]
	Session(ctx context.Context, id string) (sessions.SessionInfo, error)

	// Output follows while the session runs. Its reader lets go of a Read when ctx ends.
	Output(ctx context.Context, session string, offset int64) (io.ReadCloser, sessions.SessionInfo, error)
	Facts(ctx context.Context, session string, tail int, wait time.Duration) ([]driver.Fact, error)

	RunBackend
	ChannelBackend
	CrewBackend
	FolderBackend
	QuestionBackend
}

var _ Backend = (*controller.Supervisor)(nil)

// Options are what a server stands on.
type Options struct {
	Engine  Backend
	UI      http.Handler // Mission Control; nil: there is none
	Token   string       // what callers over TCP must show; empty: nobody is let in there
	Hosts   []string     // HOST or HOST:PORT that --listen says; loopback names with our port are always right
	Log     *slog.Logger
	Version string
	Dir     string       // the repository
	Store   string       // what keeps the journal: sqlite, memory
	MCP     http.Handler // the tools that agents use (NewMCP); nil: there are none
	User    string       // who people are in the journal; empty: whom this process belongs to
}

// Server answers for one engine. Make it with New; Close lets its watchers go.
type Server struct {
	engine Backend
	ui     http.Handler
	token  [sha256.Size]byte
	closed bool // to everybody over TCP: there is no token
	hosts  []string
	log    *slog.Logger
	opts   Options
	room   int // connections of one door
	waits  waits
	polls  polls
	books  dispatchBooks

	mux     *http.ServeMux
	openapi []byte

	streams  atomic.Int64 // that are open, of any kind
	watchers atomic.Int64 // of these, those of the journal

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu   sync.Mutex
	feed *feed
	gone bool
}

// New makes a server. It starts nothing: what it needs begins with the first watcher.
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
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mux, s.openapi = s.routes()
	return s
}

// Handler serves callers over TCP, who have to show the token.
func (s *Server) Handler() http.Handler {
	return s.headers(s.mcp(s.opts.MCP, s.guard(straight(s.whole(s.mux)))))
}

// SocketHandler serves callers over the unix socket: the same routes. Whoever mounts it
// has looked at the peer (see ListenSocket).
func (s *Server) SocketHandler() http.Handler {
	return s.headers(s.mcp(s.opts.MCP, entered(doorSocket, straight(s.whole(s.mux)))))
}

// Close tells every watcher goodbye and ends what runs for them. Requests still get their
// answer, as long as the engine gives one.
func (s *Server) Close() error {
	s.mu.Lock()
	s.gone = true
	f := s.feed
	s.mu.Unlock()
	s.cancel()
	if f != nil {
		<-f.ended
	}
	return nil
}

// live gives the feed, and starts it for the first who asks.
func (s *Server) live(head uint64) (*feed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, loop.ErrClosed
	}
	if s.feed == nil || s.feed.failed() {
		s.feed = newFeed(head)
		go s.feed.run(s.ctx, s.engine.Changes)
	}
	return s.feed, nil
}

// owner is the login name of whom this process belongs to.
func owner() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}
