package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/livetest"
)

// runClient runs another vendor's client with an empty environment.
func runClient(t *testing.T, program string, words ...string) (out string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	home := t.TempDir()
	cmd := exec.CommandContext(ctx, program, words...)
	cmd.Env, cmd.Dir = livetest.Bare(home), home
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		t.Fatalf("%s does not end: %s%s", program, said.String(), complained.String())
	}
	if err != nil {
		return said.String() + complained.String(), true
	}
	return said.String(), false
}

// The inspector of the Model Context Protocol, as npm has it, lists the tools of a real daemon and calls
// them; with a token that was cut it does neither.
func TestLiveMCPInspector(t *testing.T) {
	t.Parallel()
	inspector := livetest.Find(t, "mcp-inspector-cli")
	h, at, token := newHouse(t)
	ask := func(token string, words ...string) (string, bool) {
		return runClient(t, inspector,
			append([]string{"--cli", at, "--transport", "http", "--header", "Authorization: Bearer " + token}, words...)...)
	}
	text, failed := ask(token, "--method", "tools/list")
	var list struct {
		Tools []struct {
			Name        string
			Description string
			InputSchema map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || failed || len(list.Tools) != 8 {
		t.Fatalf("tools/list: %v, %t: %s", err, failed, text)
	}
	var result struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	text, failed = ask(token, "--method", "tools/call", "--tool-name", "set_status", "--tool-arg", "text=looked at by the inspector")
	if err := json.Unmarshal([]byte(text), &result); err != nil || failed || result.IsError || len(result.Content) == 0 ||
		result.Content[0].Text != "The status is set." {
		t.Errorf("set_status: %v, %t: %s", err, failed, text)
	}
	text, failed = ask(token, "--method", "tools/call", "--tool-name", "who_is_here")
	if failed || !strings.Contains(text, "looked at by the inspector") {
		t.Errorf("who_is_here: %t: %s", failed, text)
	}
	result.IsError = false
	text, _ = ask(token, "--method", "tools/call", "--tool-name", "turn_complete", "--tool-arg", "message=done")
	if err := json.Unmarshal([]byte(text), &result); err != nil || !result.IsError || !strings.Contains(text, "without a turn") {
		t.Errorf("turn_complete without a turn: %v: %s", err, text)
	}
	if text, failed = ask(token[:len(token)-1], "--method", "tools/list"); !failed {
		t.Errorf("with a token that was cut: %s", text)
	}
	text, failed = runClient(t, inspector, "--cli", "-e", "FAIRLEAD_MCP_TOKEN="+token,
		program, "mcp", "--dir", h.dir, "--method", "tools/call", "--tool-name", "who_is_here")
	if failed || !strings.Contains(text, "looked at by the inspector") {
		t.Errorf("over standard input and output: %t: %s", failed, text)
	}
}

// The official conformance suite, as far as it asks for what every server has: its other scenarios
// are about tools, resources and prompts of a server of its own.
func TestLiveMCPConformance(t *testing.T) {
	t.Parallel()
	conformance := livetest.Find(t, "conformance")
	_, at, token := newHouse(t)
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	to.Path = ""
	// It knows no tokens; who stands between adds ours, and leaves the rest as it was.
	between := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		host := r.In.Host
		r.SetURL(to)
		if !strings.HasPrefix(host, "127.0.0.1") && !strings.HasPrefix(host, "localhost") {
			r.Out.Host = host // what is not ours stays so
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
		if origin := r.In.Header.Get("Origin"); strings.Contains(origin, r.In.Host) {
			r.Out.Header.Set("Origin", "http://"+to.Host)
		}
	}, ModifyResponse: func(r *http.Response) error { r.Header.Del("Connection"); return nil }})
	t.Cleanup(between.Close)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"} {
		text, failed := runClient(t, conformance, "server", "--url", between.URL+"/mcp", "--scenario", scenario)
		if failed || strings.Contains(text, "FAILURE") {
			t.Errorf("%s: %s", scenario, text)
		}
	}
}
