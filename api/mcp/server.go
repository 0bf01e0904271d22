package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/tools"

	"github.com/fairlead-dev/fairlead/api"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is the path of the tools. It is not below the API's path: it is given to other programs, and
// their tokens are not valid for the API.
const Path = "/mcp"

const (
	CallsMax      = 120         // of one agent in a minute; more is probably an unintended loop
	mcpCallsIn    = time.Minute //
	AtOnceMax     = 16          // waiting calls of one session at the same time
	mcpBeatEvery  = 10 * time.Second
	mcpHeardAgain = 10_000 // agents whose calls are counted; older counts are dropped
)

// AgentBackend is what the tools need from the controller. *tools.Controller is the real one.
// Its errors are *tools.SessionOver if the session is no longer open, *machine.Refusal or
// *team.Unknown if the request is refused, and other errors for failures.
type AgentBackend interface {
	ActOpen(ctx context.Context, c tools.AgentCaller) error
	ActSay(ctx context.Context, c tools.AgentCaller, channel, text string) (tools.ActSpoken, error)
	ActTurnComplete(ctx context.Context, c tools.AgentCaller, channel, message string) (tools.ActEnded, error)
	ActPass(ctx context.Context, c tools.AgentCaller, channel string) (tools.ActEnded, error)
	ActWait(ctx context.Context, c tools.AgentCaller, channel, why string, most time.Duration) (tools.ActWaited, error)
	ActAskHuman(ctx context.Context, c tools.AgentCaller, ask tools.AgentQuestion, most time.Duration) (tools.ActAnswer, error)
	ActReportStep(ctx context.Context, c tools.AgentCaller, report runs.AgentReport) (tools.ActReported, error)
	ActSetStatus(ctx context.Context, c tools.AgentCaller, text string) error
	ActWhoIsHere(ctx context.Context, c tools.AgentCaller, channel string) (tools.ActHere, error)
}

var _ AgentBackend = (*tools.Controller)(nil)

// Options configure the tools.
type Options struct {
	Engine  AgentBackend
	Log     *slog.Logger
	Version string
	Now     func() time.Time // for the limit of calls; nil: time.Now
}

// Tools serves a team's tools to the agents in its sessions over the Model Context Protocol. Each
// request is independent and identified by its token, so that a restarted daemon continues where the
// previous one stopped. Make it with NewMCP.
type Tools struct {
	engine AgentBackend
	log    *slog.Logger
	http   func() http.Handler // made for the first request: most daemons get none
	now    func() time.Time

	mu      sync.Mutex
	calls   map[string]*callCount // by agent
	running map[string]int        // calls, by session
}

// callCount is the number of calls of one agent in one period.
type callCount struct {
	since time.Time
	n     int
}

// New makes the tools. It starts nothing.
func New(opts Options) *Tools {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	m := &Tools{engine: opts.Engine, log: opts.Log, now: opts.Now, calls: map[string]*callCount{}, running: map[string]int{}}
	m.http = sync.OnceValue(func() http.Handler { return m.handler(opts.Version) })
	return m
}

func (m *Tools) handler(version string) http.Handler {
	server := sdk.NewServer(
		&sdk.Implementation{Name: driver.ToolServer, Title: "Fairlead", Version: api.VersionOrZero(version)},
		&sdk.ServerOptions{
			Instructions: mcpInstructions,
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}, // the list never changes
		},
	)
	m.tools(server)
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: api.BodyBytesMax,
		DisableLocalhostProtection: true, // the server has already checked the host, and accepts more names
	})
}

type peerKey struct{}

// WithCaller records who sent a request, found by its process: the token of another session is
// refused, and so is every token from a process that could not be found.
func WithCaller(ctx context.Context, caller func() caller.Identity) context.Context {
	return context.WithValue(ctx, peerKey{}, caller)
}

func callerIn(ctx context.Context) caller.Identity {
	if caller, ok := ctx.Value(peerKey{}).(func() caller.Identity); ok {
		return caller()
	}
	return caller.Identity{}
}

// errUnknown says that a caller was gone before it could be identified. It may have been another agent.
var errUnknown = errors.New("the process that sent this ended before it could be identified, so it may have been another agent; repeat the request and keep the process alive until the answer [X10]")

type mcpKey struct{}

// mcpAsked is a request in the form that the tools use.
type mcpAsked struct {
	who  tools.AgentCaller
	gone context.Context // ends when the caller is gone
}

// ServeHTTP answers callers with the token of an open session.
func (m *Tools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		api.NewProblem(http.StatusBadRequest,
			"%s has no query parameters; send the token as `Authorization: Bearer TOKEN`, so that it does not appear in logs",
			Path).Write(w)
		return
	}
	who, err := m.who(r)
	if err != nil {
		w.Header().Set("Connection", "close") // a caller without a token does not keep a connection
		m.refuse(w, err)
		return
	}
	// The server's limits are for short answers. A caller that is gone is noticed without them.
	rc := http.NewResponseController(w)
	if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		api.NewProblem(http.StatusInternalServerError, "prepare a long answer: %s", err).Write(w)
		return
	}
	m.http().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), mcpKey{}, mcpAsked{who, r.Context()})))
}

// otherSession says that a token was used in another session than its own.
type otherSession struct{ mine, shown string }

func (o *otherSession) Error() string {
	return fmt.Sprintf("the token of session %s was used from within %s: a session may use only its own token [X10]", api.Shorten(o.shown),
		api.Shorten(o.mine))
}

// who checks the token and the process that sent it.
func (m *Tools) who(r *http.Request) (tools.AgentCaller, error) {
	if from := callerIn(r.Context()); from.Own {
		ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
		defer cancel()
		who := tools.AgentCaller{Agent: from.Agent(), Session: from.Session, Own: true}
		return who, m.engine.ActOpen(ctx, who)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return tools.AgentCaller{}, errNoToken
	}
	who, err := callerOf(strings.TrimSpace(token))
	if err != nil {
		return who, err
	}
	switch from := callerIn(r.Context()); {
	case from.Foreign != "":
		return who, &otherSession{mine: from.Foreign + " of another repository", shown: who.Session}
	case from.Unknown:
		return who, errUnknown
	case from.Session != "" && from.Session != who.Session:
		return who, &otherSession{mine: from.Session, shown: who.Session}
	}
	ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
	defer cancel()
	return who, m.engine.ActOpen(ctx, who)
}

func (m *Tools) refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.As(err, new(*otherSession)), errors.Is(err, errUnknown):
		api.NewProblem(http.StatusForbidden, "%s", err).Write(w)
	case errors.Is(err, errNoToken), errors.As(err, new(*tools.SessionOver)):
		w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead mcp"`)
		api.NewProblem(http.StatusUnauthorized, "%s", err).Write(w)
	default:
		api.ProblemOf(err).Write(w)
	}
}

// enter counts a call. The error says which limit is reached.
func (m *Tools) enter(who tools.AgentCaller) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.now()
	count := m.calls[who.Agent]
	if count == nil || at.Sub(count.since) >= mcpCallsIn {
		if len(m.calls) >= mcpHeardAgain {
			clear(m.calls)
		}
		count = &callCount{since: at}
		m.calls[who.Agent] = count
	}
	if count.n++; count.n > CallsMax {
		left := (mcpCallsIn - at.Sub(count.since)).Round(time.Second)
		return fmt.Errorf("%s has made %d calls within a minute, which is the limit; continue in %s, and do not poll: wait and ask_human return when there is an answer", who.Agent, CallsMax, max(left, time.Second))
	}
	if m.running[who.Session] >= AtOnceMax {
		return fmt.Errorf("%d calls of this session are running, which is the limit; wait for one of them", AtOnceMax)
	}
	m.running[who.Session]++
	return nil
}

func (m *Tools) leave(who tools.AgentCaller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[who.Session]--; m.running[who.Session] <= 0 {
		delete(m.running, who.Session)
	}
}
