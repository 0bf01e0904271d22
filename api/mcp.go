package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/tools"
)

// MCPPath is where agents find their tools, beside the API and not below it: the address is handed to
// programs of others, and who comes shows a token of his own.
const MCPPath = "/mcp"

const (
	mcpCallsMax   = 120         // of one agent in a minute: more is a loop that nobody meant
	mcpCallsIn    = time.Minute //
	mcpAtOnceMax  = 16          // calls of one session that wait at the same time
	mcpBeatEvery  = 10 * time.Second
	mcpHeardAgain = 10_000 // agents whose calls are counted; the counts of older ones are forgotten
)

// AgentBackend is what agents ask of an engine for themselves. *engine.Engine is the real one. Its
// errors are *engine.SessionOver where the session is not open any more, *machine.Refusal and
// *team.Unknown where the answer is no, and failures in words else.
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

var _ AgentBackend = (*controller.Supervisor)(nil)

// MCPOptions are what the tools stand on.
type MCPOptions struct {
	Engine  AgentBackend
	Key     MCPKey
	Log     *slog.Logger
	Version string
}

// MCP are the tools of a team, for the agents in its sessions, over the Model Context Protocol. Each
// request stands for itself: whoever asks is known by its token, so that a daemon that was started
// again goes on where the other one ended. Make it with NewMCP.
type MCP struct {
	engine AgentBackend
	key    MCPKey
	log    *slog.Logger
	http   http.Handler

	mu    sync.Mutex
	calls map[string]*callCount // by agent
	now   map[string]int        // by session: calls that are under way
}

// callCount are the calls of one agent in one stretch of time.
type callCount struct {
	since time.Time
	n     int
}

// NewMCP makes the tools. It starts nothing.
func NewMCP(opts MCPOptions) *MCP {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	m := &MCP{engine: opts.Engine, key: opts.Key, log: opts.Log, calls: map[string]*callCount{}, now: map[string]int{}}
	server := mcp.NewServer(
		&mcp.Implementation{Name: seam.ServerName, Title: "Fairlead", Version: cmpVersion(opts.Version)},
		&mcp.ServerOptions{
			Instructions: mcpInstructions,
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}, // the list never changes
		},
	)
	m.tools(server)
	m.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: bodyBytesMax,
		DisableLocalhostProtection: true, // the doors have looked at the host already, and know more names of ours
	})
	return m
}

type mcpKey struct{}

// mcpAsked is a request as the tools see it.
type mcpAsked struct {
	who  tools.AgentCaller
	gone context.Context // ends when the caller has gone
}

// ServeHTTP answers who shows the token of an open session.
func (m *MCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		problem(http.StatusBadRequest, "%s takes nothing in its address; send a token as `Authorization: Bearer TOKEN`, where no log keeps it", MCPPath).write(w)
		return
	}
	who, err := m.who(r)
	if err != nil {
		sendAway(w)
		m.refuse(w, err)
		return
	}
	// The server's limits are for answers that come at once. A caller that has gone is noticed anyway.
	rc := http.NewResponseController(w)
	if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil && !errors.Is(err, http.ErrNotSupported) {
		problem(http.StatusInternalServerError, "prepare a long answer: %s", err).write(w)
		return
	}
	m.http.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), mcpKey{}, mcpAsked{who, r.Context()})))
}

// otherSession says that a token was shown from within another session than its own.
type otherSession struct{ mine, shown string }

func (o *otherSession) Error() string {
	return fmt.Sprintf("this is the token of session %s, and it was shown from within %s: every session has its own, and speaks for nobody else [X10]", shorten(o.shown), shorten(o.mine))
}

// who looks at the token, and at who shows it.
func (m *MCP) who(r *http.Request) (tools.AgentCaller, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return tools.AgentCaller{}, errNoToken
	}
	who, err := m.key.Who(strings.TrimSpace(token))
	if err != nil {
		return who, err
	}
	if from := callerIn(r.Context()).session; from != "" && from != who.Session {
		return who, &otherSession{mine: from, shown: who.Session}
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerMax)
	defer cancel()
	return who, m.engine.ActOpen(ctx, who)
}

func (m *MCP) refuse(w http.ResponseWriter, err error) {
	var over *tools.SessionOver
	var other *otherSession
	switch {
	case errors.As(err, &other):
		problem(http.StatusForbidden, "%s", err).write(w)
	case errors.Is(err, errNoToken), errors.As(err, &over):
		w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead mcp"`)
		problem(http.StatusUnauthorized, "%s", err).write(w)
	default:
		problemOf(err).write(w)
	}
}

// enter counts a call. The error says which limit is reached.
func (m *MCP) enter(who tools.AgentCaller) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now()
	count := m.calls[who.Agent]
	if count == nil || at.Sub(count.since) >= mcpCallsIn {
		if len(m.calls) >= mcpHeardAgain {
			clear(m.calls)
		}
		count = &callCount{since: at}
		m.calls[who.Agent] = count
	}
	if count.n++; count.n > mcpCallsMax {
		left := (mcpCallsIn - at.Sub(count.since)).Round(time.Second)
		return fmt.Errorf("%s has made %d calls within a minute, which is the limit; go on in %s, and do not ask again and again for what takes its time: wait and ask_human wait for you", who.Agent, mcpCallsMax, max(left, time.Second))
	}
	if m.now[who.Session] >= mcpAtOnceMax {
		return fmt.Errorf("%d calls of this session are under way, which is the limit; wait for one of them", mcpAtOnceMax)
	}
	m.now[who.Session]++
	return nil
}

func (m *MCP) leave(who tools.AgentCaller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now[who.Session]--; m.now[who.Session] <= 0 {
		delete(m.now, who.Session)
	}
}

// mcp stands before everything else: its callers have tokens of their own, which open nothing else, and
// the token of the page is none here. What the doors ask of everybody they ask here, too.
func (s *Server) mcp(tools, next http.Handler) http.Handler {
	if tools == nil {
		tools = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			problem(http.StatusNotFound, "this fairlead offers no tools to agents").write(w)
		})
	}
	tools = s.whole(tools)
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != MCPPath {
			next.ServeHTTP(w, r)
			return
		}
		if _, tcp := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); tcp {
			if !s.addressed(r) {
				sendAway(w)
				problem(http.StatusMisdirectedRequest, "this is fairlead, and it is not called %q; use the address in FAIRLEAD_MCP_URL", shorten(r.Host)).write(w)
				return
			}
			if cross.Check(r) != nil || !fromHere(r) {
				sendAway(w)
				problem(http.StatusForbidden, "a page of another site asked; only programs in sessions of fairlead may").write(w)
				return
			}
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)() // a daemon that goes lets go of whoever waits
		tools.ServeHTTP(w, r.WithContext(ctx))
	})
}
