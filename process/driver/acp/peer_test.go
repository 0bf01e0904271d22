package acp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// peerVerb starts this test binary as an agent program.
const peerVerb = "__peer"

func peerMain([]string) int {
	servePeer(os.Stdout, os.Stdin)
	return 0
}

func servePeer(out io.Writer, in io.Reader) {
	p, gate := &peer{}, gated{in, make(chan struct{})}
	p.conn = sdk.NewAgentSideConnection(p, out, gate)
	p.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(gate.open)
	<-p.conn.Done()
}

// gated is input that becomes readable when its gate is opened, because the library begins to read
// before it is ready.
type gated struct {
	io.Reader
	open chan struct{}
}

func (g gated) Read(b []byte) (int, error) {
	<-g.open
	return g.Reader.Read(b)
}

// peer is an agent built with an independent library, which checks the driver's messages. The
// prompt says what it does.
type peer struct {
	conn *sdk.AgentSideConnection
	mode string
}

var _ sdk.Agent = (*peer)(nil)

func (p *peer) Initialize(_ context.Context, r sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	if r.ClientCapabilities.Fs.ReadTextFile || r.ClientCapabilities.Fs.WriteTextFile || r.ClientCapabilities.Terminal {
		return sdk.InitializeResponse{}, fmt.Errorf("unsupported capabilities are offered: %+v", r.ClientCapabilities)
	}
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "peer", Version: "1.0"},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession: true, McpCapabilities: sdk.McpCapabilities{Http: true},
			SessionCapabilities: sdk.SessionCapabilities{Resume: &sdk.SessionResumeCapabilities{}},
		},
	}, nil
}

func (p *peer) modes() *sdk.SessionModeState {
	return &sdk.SessionModeState{
		CurrentModeId:  sdk.SessionModeId(p.mode),
		AvailableModes: []sdk.SessionMode{{Id: "ask", Name: "Ask"}, {Id: "auto", Name: "Auto"}},
	}
}

func (p *peer) NewSession(_ context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	p.mode = "auto"
	return sdk.NewSessionResponse{SessionId: "peer-1", Modes: p.modes()}, nil
}

func (p *peer) LoadSession(context.Context, sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	return sdk.LoadSessionResponse{}, fmt.Errorf("nothing is kept")
}

func (p *peer) ResumeSession(_ context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	if r.SessionId != "peer-0" {
		return sdk.ResumeSessionResponse{}, fmt.Errorf("no conversation %s", r.SessionId)
	}
	p.mode = "auto"
	return sdk.ResumeSessionResponse{Modes: p.modes()}, nil
}

func (p *peer) SetSessionMode(_ context.Context, r sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	p.mode = string(r.ModeId)
	return sdk.SetSessionModeResponse{}, nil
}

func (p *peer) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	text := r.Prompt[0].Text.Text
	say := func(s string) {
		_ = p.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: r.SessionId, Update: sdk.UpdateAgentMessageText(s)})
	}
	switch {
	case strings.Contains(text, "refuse"):
		return sdk.PromptResponse{StopReason: sdk.StopReasonRefusal}, nil
	case strings.Contains(text, "fail"):
		return sdk.PromptResponse{}, fmt.Errorf("it went wrong")
	case strings.Contains(text, "wait"):
		say("I wait.\n")
		<-ctx.Done()
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case strings.Contains(text, "ask"):
		_ = p.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: r.SessionId, Update: sdk.StartToolCall(
			"call-1", "Run the tests", sdk.WithStartKind(sdk.ToolKindExecute), sdk.WithStartStatus(sdk.ToolCallStatusPending),
			sdk.WithStartRawInput(map[string]any{"command": "go test"}),
		)})
		got, err := p.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
			SessionId: r.SessionId, ToolCall: sdk.ToolCallUpdate{ToolCallId: "call-1"},
			Options: []sdk.PermissionOption{
				{OptionId: "allow", Name: "Yes", Kind: sdk.PermissionOptionKindAllowOnce},
				{OptionId: "deny", Name: "No", Kind: sdk.PermissionOptionKindRejectOnce},
			},
		})
		switch {
		case err != nil:
			return sdk.PromptResponse{}, err
		case got.Outcome.Selected == nil:
			return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
		}
		text = string(got.Outcome.Selected.OptionId)
	}
	say("You said: ")
	say(text)
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

func (p *peer) Cancel(context.Context, sdk.CancelNotification) error { return nil }

func (p *peer) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

func (p *peer) CloseSession(context.Context, sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, nil
}

func (p *peer) ListSessions(context.Context, sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	return sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}, nil
}

func (p *peer) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, fmt.Errorf("there are none")
}

// TestPeer checks that an independent library accepts the driver's messages.
func TestPeer(t *testing.T) {
	serve := func(f *fake) { servePeer(f.out, f.in) }
	for name, c := range map[string]struct {
		prompt, resume string
		cancel         bool
		ok             bool
		reason, said   string
	}{
		"words":      {prompt: "hello", ok: true, reason: "completed", said: "You said: hello\n"},
		"allowed":    {prompt: "ask", ok: true, reason: "completed", said: "You said: allow\n"},
		"fails":      {prompt: "fail", reason: "failed"},
		"cancelled":  {prompt: "wait", cancel: true, reason: "cancelled", said: "I wait.\n"},
		"resumed":    {prompt: "hello", resume: "peer-0", ok: true, reason: "completed", said: "You said: hello\n"},
		"not there":  {prompt: "hello", resume: "peer-9", reason: session.ReasonNotResumed},
		"mcp server": {prompt: "hello", ok: true, reason: "completed", said: "You said: hello\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, driver.Work, c.prompt)
			s.part.Resume, s.part.Mode = c.resume, "ask"
			s.part.MCP = driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "a.b.c", Stdio: []string{"/bin/x"}}
			s.onEvent = func(s *scene, e driver.Fact) {
				switch {
				case e.Kind == driver.PermissionAsked:
					s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "allow"})
				case e.Kind == driver.Said && c.cancel:
					s.order(speech.Order{Type: speech.OrderCancel})
				}
			}
			s.play(serve)
			s.ended(c.ok, c.reason, "")
			if got := s.text(driver.Said); got != c.said {
				t.Errorf("said %q, want %q", got, c.said)
			}
		})
	}
}
