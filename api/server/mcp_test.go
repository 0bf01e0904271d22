package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/mcp"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/tools"
)

// actor is an AgentBackend that notes who asked for what.
type actor struct {
	mu     sync.Mutex
	open   map[string]string // agent by session
	did    []string
	err    error
	wait   time.Duration // that wait and ask_human take
	begun  chan struct{} // gets one when such a call waits
	gaveUp chan error    // gets how it ended
	bug    bool
}

func newActor(t *testing.T) *actor {
	t.Helper()
	return &actor{
		open: map[string]string{"coder-1": "coder", "rev.iewer-2": "rev.iewer"}, begun: make(chan struct{}, 64),
		gaveUp: make(chan error, 64),
	}
}

func (a *actor) note(c tools.AgentCaller, format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bug {
		panic("somebody slipped")
	}
	a.did = append(a.did, c.Agent+" in "+c.Session+": "+fmt.Sprintf(format, args...))
	return a.err
}

func (a *actor) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.did) == 0 {
		return ""
	}
	return a.did[len(a.did)-1]
}

func (a *actor) close(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, session)
}

func (a *actor) ActOpen(_ context.Context, c tools.AgentCaller) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[c.Session] != c.Agent || !c.Own && c.TokenHash != sessions.HashOfToken(mcpToken(c.Agent, c.Session)) {
		return &tools.SessionOver{AgentCaller: c}
	}
	return nil
}

func (a *actor) ActSay(_ context.Context, c tools.AgentCaller, channel, text string) (tools.ActSpoken, error) {
	return tools.ActSpoken{Channel: "reviews", Turn: 3, Message: 7}, a.note(c, "say %q in %q", text, channel)
}

func (a *actor) ActTurnComplete(_ context.Context, c tools.AgentCaller, channel, message string) (tools.ActEnded, error) {
	return tools.ActEnded{Channel: "reviews", Turn: 3}, a.note(c, "turn_complete %q %q", channel, message)
}

func (a *actor) ActPass(_ context.Context, c tools.AgentCaller, channel string) (tools.ActEnded, error) {
	return tools.ActEnded{Channel: "reviews", Turn: 3, Over: true, Next: "dev"}, a.note(c, "pass %q", channel)
}

func (a *actor) blocks(ctx context.Context, most time.Duration) error {
	a.begun <- struct{}{}
	select {
	case <-ctx.Done():
		a.gaveUp <- ctx.Err()
		return ctx.Err()
	case <-time.After(min(a.wait, most)):
		return nil
	}
}

func (a *actor) ActWait(ctx context.Context, c tools.AgentCaller, channel, why string, most time.Duration) (tools.ActWaited, error) {
	if err := a.note(c, "wait %q %q %s", channel, why, most); err != nil {
		return tools.ActWaited{}, err
	}
	return tools.ActWaited{Channel: "reviews", Turn: 3, State: tools.ActStillWaiting}, a.blocks(ctx, most)
}

func (a *actor) ActAskHuman(ctx context.Context, c tools.AgentCaller, ask tools.AgentQuestion, most time.Duration) (tools.ActAnswer,
	error,
) {
	if err := a.note(c, "ask_human %q %q %q %s", ask.ID, ask.Text, ask.Options, most); err != nil {
		return tools.ActAnswer{}, err
	}
	return tools.ActAnswer{ID: "q17", State: tools.ActAnswered, Option: "2", By: "ann"}, a.blocks(ctx, most)
}

func (a *actor) ActReportStep(_ context.Context, c tools.AgentCaller, r runs.AgentReport) (tools.ActReported, error) {
	text, _ := json.Marshal(r) // texts can be written
	return tools.ActReported{Run: "f8c1", Step: "build", Status: r.Status, Path: "reports/f8c1__build.json"},
		a.note(c, "report_step %s", text)
}

func (a *actor) ActSetStatus(_ context.Context, c tools.AgentCaller, text string) error {
	return a.note(c, "set_status %q", text)
}

func (a *actor) ActWhoIsHere(_ context.Context, c tools.AgentCaller, channel string) (tools.ActHere, error) {
	return tools.ActHere{
		You: tools.ActYou{Agent: c.Agent, Session: c.Session, For: "channels", Channel: "reviews", Turn: 3},
		Channels: []tools.ActChannel{{
			Name: "reviews", Holder: c.Agent, Turn: 3, Queue: []string{},
			States: map[string]string{c.Agent: "ACTIVE"},
		}},
		Agents: []tools.ActAgent{{Name: c.Agent, Works: true}},
	}, a.note(c, "who_is_here %q", channel)
}

// testTokens are the tokens of the sessions of these tests, one each.
var testTokens sync.Map

func mcpToken(agent, session string) string {
	token, _ := testTokens.LoadOrStore(agent+" "+session, mcp.NewToken(agent, session))
	return token.(string)
}

// tools serves the tools as the listeners do, and gives their address and what was logged.
func toolServer(t *testing.T, a *actor) (url string, logged *lockedBuffer) {
	t.Helper()
	logged = &lockedBuffer{}
	log := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := New(Options{Log: log, Token: "the token of the page", Version: "1.2.3"})
	now := time.Now() // does not change, so that a slow machine reaches the limit of calls in a minute
	tools := mcp.New(mcp.Options{Engine: a, Log: log, Version: "1.2.3", Now: func() time.Time { return now }})
	server := httptest.NewUnstartedServer(s.headers(s.mcp(tools, http.NotFoundHandler())))
	server.Config.ConnContext = s.withCaller
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = s.Close() })
	return server.URL + mcp.Path, logged
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// connect gives an MCP client of the SDK that shows a token.
// withToken is a transport that sends a token with each request.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

func connectMCP(t *testing.T, url, token string) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "0"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: withToken(token)}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func textOf(r *sdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// Every tool is listed with a description and a schema, does what it says for whom the token names, and
// answers in words and as data.
func TestEveryTool(t *testing.T) {
	a := newActor(t)
	url, _ := toolServer(t, a)
	session := connectMCP(t, url, mcpToken("coder", "coder-1"))
	cases := []struct {
		tool string
		args map[string]any
		did  string
		says string
	}{
		{"turn_complete", nil, `turn_complete "" ""`, "ends with this answer"},
		{"turn_complete", map[string]any{"channel": "reviews", "message": "done"}, `turn_complete "reviews" "done"`, "Turn 3 in #reviews"},
		{"pass", nil, `pass ""`, "dev has the turn now"},
		{"wait", map[string]any{"reason": "for ann", "seconds": 1}, `wait "" "for ann" 1s`, "still_waiting"},
		{"say", map[string]any{"text": "half way"}, `say "half way" in ""`, "message 7"},
		{
			"report_step",
			map[string]any{"status": "COMPLETED", "metrics": map[string]any{"tests": 12}},
			`report_step {"status":"COMPLETED","metrics":{"tests":12}}`, "End your answer now",
		},
		{"set_status", map[string]any{"text": "testing"}, `set_status "testing"`, "The status is set"},
		{
			"ask_human",
			map[string]any{"question": "Ship it?", "options": []string{"no", "yes"}},
			`ask_human "" "Ship it?" ["no" "yes"] 50s`,
			"option 2 (yes)",
		},
		{"ask_human", map[string]any{"id": "q17", "seconds": 240}, `ask_human "q17" "" [] 4m0s`, "answered by ann"},
		{"who_is_here", nil, `who_is_here ""`, `"agent":"coder"`},
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, tool := range list.Tools {
		known[tool.Name] = true
		if len(tool.Description) < 100 || tool.InputSchema == nil || tool.OutputSchema == nil {
			t.Errorf("%s: a model does not learn from this what it does: %q", tool.Name, tool.Description)
		}
	}
	if len(known) != 8 {
		t.Errorf("there are %d tools, want 8: %v", len(known), known)
	}
	for _, c := range cases {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			t.Fatalf("%s: %v", c.tool, err)
		}
		if want := "coder in coder-1: " + c.did; a.last() != want {
			t.Errorf("%s: did %s\nwant %s", c.tool, a.last(), want)
		}
		if text := textOf(result); result.IsError || !strings.Contains(text, c.says) {
			t.Errorf("%s: says %q (error %t), want %q in it", c.tool, text, result.IsError, c.says)
		}
		if result.StructuredContent == nil {
			t.Errorf("%s: gives no data", c.tool)
		}
	}
}

// A call that does not fit the schema gets an error for the model, and never reaches the engine.
func TestToolsTakeNothingElse(t *testing.T) {
	a := newActor(t)
	url, _ := toolServer(t, a)
	session := connectMCP(t, url, mcpToken("coder", "coder-1"))
	for _, c := range []struct {
		tool string
		args any
	}{
		{"say", nil},
		{"say", map[string]any{"text": ""}},
		{"say", map[string]any{"text": strings.Repeat("x", 65537)}},
		{"say", map[string]any{"text": "hi", "agent": "reviewer"}},
		{"say", map[string]any{"text": "hi", "channel": "../reviews"}},
		{"turn_complete", map[string]any{"channel": 3}},
		{"turn_complete", map[string]any{"turn": 3}},
		{"wait", map[string]any{"seconds": 0}},
		{"wait", map[string]any{"seconds": 241}},
		{"wait", map[string]any{"seconds": "10"}},
		{"report_step", map[string]any{"status": "PENDING"}},
		{"report_step", map[string]any{"status": "COMPLETED", "run_id": "other"}},
		{"report_step", map[string]any{"status": "COMPLETED", "metrics": map[string]any{"x": []int{1}}}},
		{"set_status", map[string]any{"text": strings.Repeat("x", 201)}},
		{"ask_human", nil},
		{"ask_human", map[string]any{"question": "a", "id": "q1"}},
		{"ask_human", map[string]any{"question": "a", "options": []string{""}}},
		{"pass", []int{1}},
	} {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		if err == nil && !result.IsError {
			t.Errorf("%s took %v", c.tool, c.args)
		}
	}
	if did := a.last(); did != "" {
		t.Errorf("somebody was asked all the same: %s", did)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "release_hold"}); err == nil {
		t.Error("a tool that there is not was called")
	}
}

// A no explains itself to the model.
func TestToolsSayWhyNot(t *testing.T) {
	a := newActor(t)
	a.err = &table.Refusal{
		Subject: "coder in #reviews", Event: "turn_complete", State: "QUEUED", Row: "N3", Reason: "turn 3 is over",
		Takes: []string{"granted"},
	}
	url, _ := toolServer(t, a)
	session := connectMCP(t, url, mcpToken("coder", "coder-1"))
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "turn_complete"})
	if err != nil {
		t.Fatal(err)
	}
	want := "coder in #reviews: cannot take turn_complete while QUEUED: turn 3 is over [N3] (takes granted)"
	if !result.IsError || textOf(result) != want {
		t.Errorf("the model reads %q, want %q", textOf(result), want)
	}
}

// A bug in one call ends that call.
func TestToolBug(t *testing.T) {
	a := newActor(t)
	a.bug = true
	url, logged := toolServer(t, a)
	session := connectMCP(t, url, mcpToken("coder", "coder-1"))
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "pass"})
	if err != nil || !result.IsError || !strings.Contains(textOf(result), "bug") {
		t.Errorf("%v, %v", result, err)
	}
	if !strings.Contains(logged.String(), "somebody slipped") {
		t.Error("the log does not say which")
	}
	a.bug = false
	if result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "pass"}); err != nil || result.IsError {
		t.Errorf("after it nothing works any more: %v, %v", result, err)
	}
}

// postMCP sends a plain HTTP request, as an attacker would.
func postMCP(t *testing.T, url string, header http.Header, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, values := range header {
		req.Header[name] = values
		if name == "Host" {
			req.Host = values[0]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // the readable part
	return resp.StatusCode, string(text)
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// A token of another agent, a truncated, expired or invalid token gives no access; and no token appears in
// a log.
func TestForgedTokens(t *testing.T) {
	a := newActor(t)
	url, logged := toolServer(t, a)
	good := mcpToken("coder", "coder-1")
	parts := strings.Split(good, ".")
	forged := map[string]string{
		"another secret":   mcp.NewToken("coder", "coder-1"),
		"another agent":    "reviewer." + parts[1] + "." + parts[2],
		"another session":  parts[0] + ".coder-2." + parts[2],
		"cut":              good[:len(good)-1],
		"longer":           good + "A",
		"other last bits":  good[:len(good)-1] + nextLetter(good[len(good)-1]),
		"no proof":         parts[0] + "." + parts[1] + ".",
		"two parts":        parts[0] + "." + parts[2],
		"four parts":       "x." + good,
		"empty":            "",
		"dots":             "..",
		"huge":             strings.Repeat("a", 5000) + good,
		"of the page":      "the token of the page",
		"of a closed one":  mcpToken("coder", "coder-9"),
		"unknown agent":    mcpToken("unknown", "unknown-1"),
		"agents exchanged": mcpToken("rev.iewer", "coder-1"),
		"upper case":       strings.ToUpper(good),
	}
	for name, token := range forged {
		if status, text := postMCP(t, url, bearer(token), listTools); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _ := postMCP(t, url, http.Header{"Authorization": {"Basic " + good}}, listTools); status != http.StatusUnauthorized {
		t.Errorf("another scheme: %d", status)
	}
	if status, _ := postMCP(t, url+"?token="+good, nil, listTools); status != http.StatusBadRequest {
		t.Errorf("in the address: %d", status)
	}
	if status, _ := postMCP(t, url+"?token="+good, bearer(good), listTools); status != http.StatusBadRequest {
		t.Errorf("also in the address: %d", status)
	}
	if status, text := postMCP(t, url, bearer(good), listTools); status != http.StatusOK || !strings.Contains(text, "turn_complete") {
		t.Errorf("the right one: %d %s", status, text)
	}
	dotted := mcpToken("rev.iewer", "rev.iewer-2")
	if status, _ := postMCP(t, url, bearer(dotted), listTools); status != http.StatusOK {
		t.Errorf("one with dots in its names: %d", status)
	}
	a.close("coder-1")
	if status, text := postMCP(t, url, bearer(good), listTools); status != http.StatusUnauthorized || !strings.Contains(text, "is over") {
		t.Errorf("after its session: %d %s", status, text)
	}
	for _, secret := range append([]string{good, parts[2], dotted}, forged["another secret"]) {
		if strings.Contains(logged.String(), secret) {
			t.Error("the log holds a token")
		}
	}
	if did := a.last(); did != "" {
		t.Errorf("somebody was asked: %s", did)
	}
}

func nextLetter(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(letters[(strings.IndexByte(letters, c)+1)%64])
}

// What the listeners themselves refuse is checked here, too.
func TestMCPListeners(t *testing.T) {
	url, _ := toolServer(t, newActor(t))
	good := bearer(mcpToken("coder", "coder-1"))
	with := func(name, value string) http.Header {
		h := good.Clone()
		h.Set(name, value)
		return h
	}
	for _, c := range []struct {
		header http.Header
		body   string
		status int
	}{
		{with("Host", "evil.example:80"), listTools, http.StatusMisdirectedRequest},
		{with("Origin", "http://evil.example"), listTools, http.StatusForbidden},
		{with("Sec-Fetch-Site", "cross-site"), listTools, http.StatusForbidden},
		{with("Content-Type", "text/plain"), listTools, http.StatusUnsupportedMediaType},
		{good, strings.Repeat(" ", api.BodyBytesMax) + listTools, http.StatusRequestEntityTooLarge},
		{good, `{"jsonrpc":"2.0"`, http.StatusBadRequest},
		{good, `[]`, http.StatusBadRequest},
		{good, listTools, http.StatusOK},
	} {
		if status, text := postMCP(t, url, c.header, c.body); status != c.status {
			t.Errorf("%v: %d %.200s, want %d", c.header, status, text, c.status)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = good.Clone()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

// Who calls without end is told so, and what waits is bounded.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	url, _ := toolServer(t, a)
	session := connectMCP(t, url, mcpToken("coder", "coder-1"))
	full := ""
	for range mcp.CallsMax + 1 {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "pass"})
		if err != nil {
			t.Fatal(err)
		}
		if result.IsError {
			full = textOf(result)
			break
		}
	}
	if !strings.Contains(full, "120 calls within a minute") {
		t.Errorf("the last of %d calls says %q", mcp.CallsMax+1, full)
	}
	reviewer := connectMCP(t, url, mcpToken("rev.iewer", "rev.iewer-2"))
	a.wait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits sync.WaitGroup
	for range mcp.AtOnceMax {
		waits.Add(1)
		go func() {
			defer waits.Done()
			_, _ = reviewer.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}) // it is given up below
		}()
	}
	for range mcp.AtOnceMax {
		<-a.begun
	}
	result, err := reviewer.CallTool(t.Context(), &sdk.CallToolParams{Name: "pass"})
	if err != nil || !result.IsError || !strings.Contains(textOf(result), "are running, which is the limit") {
		t.Errorf("one more: %v, %v", result, err)
	}
	cancel()
	waits.Wait()
	for range mcp.AtOnceMax {
		<-a.gaveUp // no call waits for a caller that has disconnected
	}
}

// If a program with an older protocol cancels a call, or dies, the call does not keep waiting.
func TestCallerGoes(t *testing.T) {
	a := newActor(t)
	a.wait = time.Hour
	url, _ := toolServer(t, a)
	for _, version := range []string{"", "2025-06-18", "2025-11-25"} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = bearer(mcpToken("coder", "coder-1"))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if version != "" {
			req.Header.Set("Mcp-Protocol-Version", version)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		<-a.begun
		cancel()
		<-over
		if err := <-a.gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
