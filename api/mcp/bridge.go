package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/retry"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	bridgeLine  = api.BodyBytesMax // of one message of the program
	bridgeStart = 20 * time.Second // for a daemon that is being restarted; programs wait for their tools about as long
	bridgeAgain = 60 * time.Second // the same, during a session
	bridgePause = 100 * time.Millisecond
	bridgeMost  = 2 * time.Second // between two attempts
)

// Bridge offers a team's tools to a program that supports MCP only over standard input and output.
// It outlives the daemon: a call while no daemon runs waits for the next one.
type Bridge struct {
	Dir     string // the repository, in which the daemon is found again after a restart at another address
	URL     string // FAIRLEAD_MCP_URL: used if there is no repository
	Token   string // FAIRLEAD_MCP_TOKEN; not needed in a session's view, which has a socket of its own
	Version string
}

// Run serves one program until it closes its side or ctx ends.
func (b *Bridge) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	if b.Token == "" && !client.InView() {
		return errors.New("FAIRLEAD_MCP_TOKEN is not set: this command is for programs in a session that fairlead started; for other programs see doc/mcp.md")
	}
	var list *sdk.ListToolsResult
	if err := b.asking(ctx, bridgeStart, func(ctx context.Context, s *sdk.ClientSession) (err error) {
		list, err = s.ListTools(ctx, nil)
		return err
	}); err != nil {
		return fmt.Errorf("ask fairlead for its tools: %w", err)
	}
	server := sdk.NewServer(
		&sdk.Implementation{Name: driver.ToolServer, Title: "Fairlead", Version: api.VersionOrZero(b.Version)},
		&sdk.ServerOptions{Instructions: mcpInstructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}},
	)
	for _, tool := range list.Tools {
		server.AddTool(tool, b.call)
	}
	if err := server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: bridgeLine}); err != nil && ctx.Err() == nil &&
		!errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve the program: %w", err)
	}
	return nil // the program has closed its side
}

// call passes one call to the daemon.
func (b *Bridge) call(ctx context.Context, req *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
	ctx, cancel := context.WithCancel(ctx)
	beating := make(chan struct{})
	go func() { defer close(beating); beat(ctx, req) }()
	defer func() { cancel(); <-beating }()
	args := req.Params.Arguments
	if args == nil {
		args = json.RawMessage("{}")
	}
	asked := false
	err = b.asking(ctx, bridgeAgain, func(ctx context.Context, s *sdk.ClientSession) (err error) {
		if asked && !harmlessTwice[req.Params.Name] {
			return &notAgain{req.Params.Name}
		}
		asked = true
		result, err = s.CallTool(ctx, &sdk.CallToolParams{Name: req.Params.Name, Arguments: args})
		return err
	})
	if err != nil {
		result = &sdk.CallToolResult{}
		result.SetError(err)
	}
	return result, nil
}

// harmlessTwice are the tools that may be called again if it is unknown whether a call was received.
var harmlessTwice = map[string]bool{"wait": true, "ask_human": true, "who_is_here": true, "set_status": true, "report_step": true}

// notAgain says that a call was interrupted and is not repeated.
type notAgain struct{ tool string }

func (n *notAgain) Error() string {
	return "fairlead was restarted while " + n.tool +
		" was running, so the call may or may not have taken effect; check with who_is_here before you call it again"
}

// asking connects to the daemon and sends a request; while no daemon answers it retries for a
// limited time.
func (b *Bridge) asking(ctx context.Context, patience time.Duration, ask func(context.Context, *sdk.ClientSession) error) error {
	until := time.Now().Add(patience)
	for again := (retry.Pauses{First: bridgePause, Most: bridgeMost}); ; {
		err := b.once(ctx, ask)
		switch {
		case err == nil, ctx.Err() != nil, errors.As(err, new(*knownNo)), errors.As(err, new(*notAgain)), time.Now().After(until):
			return err
		}
		if !again.Rest(ctx) {
			return err
		}
	}
}

// knownNo is an error that a retry cannot resolve.
type knownNo struct{ why error }

func (k *knownNo) Error() string { return k.why.Error() }
func (k *knownNo) Unwrap() error { return k.why }

func (b *Bridge) once(ctx context.Context, ask func(context.Context, *sdk.ClientSession) error) error {
	transport, endpoint, err := b.connect()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	shown := &tokenShown{token: b.Token, next: transport}
	c := sdk.NewClient(&sdk.Implementation{Name: "fairlead mcp", Version: api.VersionOrZero(b.Version)}, nil)
	session, err := c.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: endpoint, DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{
			Transport: shown,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		}, // redirects are not followed: the token must not be sent elsewhere
	}, nil)
	if err == nil {
		defer session.Close()
		err = ask(ctx, session)
	}
	if no := shown.no(); err != nil && no != nil {
		return &knownNo{no}
	}
	return err
}

// connect returns the transport and address of the daemon: the socket of its repository, which does not
// change, or the address that the session was given.
func (b *Bridge) connect() (*http.Transport, string, error) {
	if b.Dir != "" || client.InView() {
		c, err := client.Dial(b.Dir)
		if err == nil {
			_ = c.Close() // only the path to the daemon is needed
			return &http.Transport{DialContext: c.DialContext}, "http://fairlead" + Path, nil
		}
		if b.URL == "" {
			return nil, "", err
		}
	}
	at, err := url.Parse(b.URL)
	if err != nil || at.Scheme != "http" || at.Host == "" {
		return nil, "",
			&knownNo{errors.New("FAIRLEAD_MCP_URL is not the address of a fairlead daemon, and --dir has no running daemon; start one with `fairlead up`")}
	}
	return &http.Transport{}, b.URL, nil
}

// tokenShown adds the token to every request, and keeps the daemon's last refusal.
type tokenShown struct {
	token string
	next  http.RoundTripper

	mu      sync.Mutex
	against error
}

func (t *tokenShown) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.next.RoundTrip(r)
	if err == nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		defer resp.Body.Close()
		why := client.ReadProblem(resp)
		t.mu.Lock()
		t.against = why
		t.mu.Unlock()
		return nil, why
	}
	return resp, err
}

func (t *tokenShown) no() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.against
}
