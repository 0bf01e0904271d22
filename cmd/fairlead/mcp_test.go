package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/tools"
)

// house is a repository with a daemon of its own, which may be killed and started again.
type house struct {
	t      *testing.T
	dir    string
	daemon *exec.Cmd
}

const mcpYAML = `
version: 1
agents:
  coder:
    driver: exec
    command: [sh, -c, 'echo "$FAIRLEAD_MCP_URL $FAIRLEAD_MCP_TOKEN" > where.new; mv where.new where; exec sleep 1000']
channels:
  reviews: {agents: [coder]}
`

// newHouse has one agent at work, whose session was told where its tools are.
func newHouse(t *testing.T) (h *house, url, token string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(mcpYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	h = &house{t: t, dir: dir}
	h.up()
	t.Cleanup(func() {
		stopDaemons(dir)
		_ = h.daemon.Wait() // it was told to go
	})
	if _, err := h.client().Command(t.Context(), api.Once, "coder", ""); err != nil {
		t.Fatal(err)
	}
	h.until("the session says where its tools are", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "where"))
		url, token, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
		return err == nil && token != ""
	})
	return h, url, token
}

func (h *house) up() {
	h.t.Helper()
	h.daemon = exec.Command(program, "up", "--dir", h.dir, "--listen", "127.0.0.1:0", "--no-browser")
	h.daemon.Stderr = os.Stderr
	out, err := h.daemon.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.daemon.Start(); err != nil {
		h.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready ") {
		h.t.Fatalf("the daemon did not get ready: %q, %v", line, err)
	}
}

// kill ends the daemon without a word; its session works on.
func (h *house) kill() {
	h.t.Helper()
	if err := h.daemon.Process.Signal(syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	_ = h.daemon.Wait() // by a signal
}

func (h *house) client() *apiclient.Client {
	h.t.Helper()
	client, err := apiclient.Dial(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (h *house) until(what string, is func() bool) {
	h.t.Helper()
	wait.Until(h.t, what, is)
}

// shows shows a token with every request.
type shows struct{ token string }

func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return http.DefaultTransport.RoundTrip(r)
}

func (h *house) connect(transport sdk.Transport) *sdk.ClientSession {
	h.t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "0"}, nil).Connect(h.t.Context(), transport, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = session.Close() })
	return session
}

func overHTTP(url, token string) sdk.Transport {
	return &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: shows{token}}, DisableStandaloneSSE: true,
		MaxRetries: -1,
	}
}

// did calls a tool, and gives what it says and the data that came with it.
func (h *house) did(s *sdk.ClientSession, tool string, args any, into any) (text string, no bool) {
	h.t.Helper()
	result, err := s.CallTool(h.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range result.Content {
		if is, ok := c.(*sdk.TextContent); ok {
			text += is.Text
		}
	}
	if into != nil && !result.IsError {
		data, _ := json.Marshal(result.StructuredContent) // it came as JSON
		if err := json.Unmarshal(data, into); err != nil {
			h.t.Fatalf("%s: %v in %s", tool, err, data)
		}
	}
	return text, result.IsError
}

func (h *house) question() (q view.QuestionView) {
	h.t.Helper()
	h.until("a question waits", func() bool {
		asked, err := apiclient.Get[api.Questions](h.t.Context(), h.client(), "/questions", nil)
		open := asked.Questions
		if err != nil || len(open) != 1 {
			return false
		}
		q = open[0]
		return true
	})
	return q
}

// A session finds its tools by what stands in its environment; they say what is true and do what they
// say; the same token is good after the daemon was killed and started again, over HTTP at the same
// address and over standard input and output in the middle of a call; and it is void when the session
// is over.
func TestToolsOfADaemon(t *testing.T) {
	t.Parallel()
	h, url, token := newHouse(t)
	s := h.connect(overHTTP(url, token))
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 8 {
		t.Fatalf("there are %d tools, %v", len(list.Tools), err)
	}
	var here tools.ActHere
	if text, no := h.did(s, "who_is_here", nil, &here); no || here.You.Agent != "coder" || here.You.Session != "coder-1" ||
		len(here.Channels) != 1 {
		t.Errorf("who is here: %s, %+v", text, here)
	}
	if text, no := h.did(s, "set_status", map[string]any{"text": "counting sheep"}, nil); no {
		t.Error(text)
	}
	if view, err := h.client().Why(t.Context(), "coder"); err != nil || view.Agent.Says == nil || view.Agent.Says.Text != "counting sheep" {
		t.Errorf("people see %+v, %v", view.Agent.Says, err)
	}
	if text, no := h.did(s, "turn_complete", nil, nil); !no || !strings.Contains(text, "coder: cannot take turn_complete") {
		t.Errorf("without a turn: %s", text)
	}
	if text, no := h.did(s, "report_step", map[string]any{"status": "COMPLETED"}, nil); !no || !strings.Contains(text, "no step") {
		t.Errorf("without a step: %s", text)
	}

	bridged := h.bridge(token)
	answered := make(chan tools.ActAnswer, 1)
	go func() {
		var answer tools.ActAnswer
		_, _ = h.did(bridged, "ask_human", map[string]any{"question": "Ship it?", "seconds": 60}, &answer)
		answered <- answer
	}()
	q := h.question()
	h.kill()
	h.up()
	if again := h.question(); again.ID != q.ID {
		t.Errorf("after the restart it is another question: %s, %s", q.ID, again.ID)
	}
	if _, err := h.client().Questions.Answer(t.Context(), q.ID, view.QuestionAnswer{Text: "on Monday"}); err != nil {
		t.Fatal(err)
	}
	if answer := <-answered; answer.State != tools.ActAnswered || answer.Text != "on Monday" || answer.ID != q.ID {
		t.Errorf("the answer: %+v", answer)
	}

	again := h.connect(overHTTP(url, token)) // the same address
	if text, no := h.did(again, "who_is_here", nil, &here); no || here.You.Session != "coder-1" {
		t.Errorf("after the restart: %s", text)
	}
	if _, err := h.client().Down(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	_ = h.daemon.Wait() // it was told to go
	h.up()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.client().Daemon().Address+mcp.Path,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(withHeaders(req, token))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), "is over") {
		t.Errorf("after its session the token gets %s: %s", resp.Status, text)
	}
}

func withHeaders(r *http.Request, token string) *http.Request {
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// bridge is `fairlead mcp` in this process.
func (h *house) bridge(token string) *sdk.ClientSession {
	h.t.Helper()
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	ctx, cancel := context.WithCancel(h.t.Context())
	over := make(chan error, 1)
	go func() {
		over <- (&mcp.Bridge{Dir: h.dir, Token: token}).Run(ctx, theirIn, theirOut)
		theirOut.Close()
	}()
	h.t.Cleanup(func() {
		cancel()
		ourOut.Close()
		if err := <-over; err != nil {
			h.t.Errorf("the bridge ended with %v", err)
		}
	})
	return h.connect(&sdk.IOTransport{Reader: ourIn, Writer: ourOut})
}
