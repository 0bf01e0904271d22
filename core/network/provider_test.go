package network

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
)

// The rows of the table are complete, and lead to public hosts over TLS.
func TestProviders(t *testing.T) {
	names, keys := map[string]bool{}, map[string]bool{}
	for _, p := range Providers() {
		host, isTLS := strings.CutPrefix(p.Origin, "https://")
		if !isTLS || spelling(host) != plain || names[p.Name] || p.Name == "" {
			t.Errorf("%s: the origin %s, or the name", p.Name, p.Origin)
		}
		names[p.Name] = true
		if !slices.Contains(p.Hosts, Host{Name: host}) || slices.ContainsFunc(p.Hosts, func(h Host) bool {
			return h.Named || h.Port != 0 || spelling(h.Name) != plain
		}) {
			t.Errorf("%s: its hosts %v", p.Name, p.Hosts)
		}
		if len(p.Paths) == 0 || len(p.Keys) == 0 || p.Header == "" || p.Placeholder == "" {
			t.Errorf("%s is not complete: %+v", p.Name, p)
		}
		for _, start := range p.Paths {
			if !strings.HasPrefix(start, "/") || strings.HasSuffix(start, "/") || !p.Allows(start) {
				t.Errorf("%s: the path %s", p.Name, start)
			}
		}
		for _, key := range p.Keys {
			if keys[key] {
				t.Errorf("%s has two rows", key)
			}
			keys[key] = true
		}
	}
	for _, of := range programs {
		for _, key := range of.order {
			if !keys[key] {
				t.Errorf("%s: %s is of no provider", of.names[0], key)
			}
		}
		for _, b := range of.bases {
			for _, name := range b.providers {
				if !names[name] || b.variable == "" && len(b.arguments) == 0 {
					t.Errorf("%s: the base of %s", of.names[0], name)
				}
			}
		}
	}
}

// An agent's provider follows from its program and the variables that it has.
func TestProviderOf(t *testing.T) {
	for _, c := range []struct{ driver, command, env, want string }{
		{"claude", "claude", "", "anthropic"},
		{"claude", "/opt/claude", "OTHER", "anthropic"},
		{"claude", "my-wrapper", "ANTHROPIC_API_KEY", "anthropic ANTHROPIC_API_KEY ANTHROPIC_BASE_URL"},
		{"claude", "claude", "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN", "anthropic-token ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL"},
		{"claude", "claude", "CLAUDE_CODE_OAUTH_TOKEN ANTHROPIC_API_KEY", "anthropic ANTHROPIC_API_KEY ANTHROPIC_BASE_URL"},
		{"claude", "claude", "CLAUDE_CODE_OAUTH_TOKEN", "anthropic-token CLAUDE_CODE_OAUTH_TOKEN ANTHROPIC_BASE_URL"},
		{"claude", "claude", "CLAUDE_CODE_USE_BEDROCK ANTHROPIC_API_KEY", ""},
		{"codex", "codex", "", "openai"},
		{"codex", "codex", "OPENAI_API_KEY CODEX_API_KEY", `openai CODEX_API_KEY -c openai_base_url="http://x/openai/v1"`},
		{"acp", "codex-acp", "OPENAI_API_KEY", "openai OPENAI_API_KEY"},
		{"acp", "gemini --acp", "GEMINI_API_KEY", "google GEMINI_API_KEY GOOGLE_GEMINI_BASE_URL"},
		{"acp", "gemini --acp", "GEMINI_API_KEY GOOGLE_GENAI_USE_VERTEXAI", ""},
		{"acp", "qwen --acp", "", "qwen"},
		{"claude", "qwen", "OPENAI_API_KEY", "openai OPENAI_API_KEY OPENAI_BASE_URL"},
		{"acp", "qwen --acp", "OPENAI_API_KEY", "openai OPENAI_API_KEY OPENAI_BASE_URL"},
		{"acp", "qwen --acp", "DASHSCOPE_API_KEY", "qwen DASHSCOPE_API_KEY"},
		{"acp", "opencode acp", "", "opencode"},
		{"acp", "npx -y opencode-ai@1.18.33 acp", "OPENROUTER_API_KEY", "openrouter OPENROUTER_API_KEY OPENCODE_CONFIG_CONTENT"},
		{"acp", "opencode acp", "OPENROUTER_API_KEY OPENCODE_CONFIG_CONTENT", "openrouter OPENROUTER_API_KEY"},
		{"acp", "node /opt/opencode.js acp", "", "opencode"},
		{"acp", "agent --with gemini", "", "google"}, // a word of the first three
		{"acp", "agent --with x gemini", "", ""},
		{"exec", "python3 agent.py", "", ""},
		{"exec", "python3 agent.py", "GROQ_API_KEY", "groq GROQ_API_KEY"},
		{"exec", "", "", ""},
		{"script", "", "", ""},
	} {
		p, known := ProviderOf(c.driver, strings.Fields(c.command), strings.Fields(c.env))
		got := p.Name
		if known && c.env != "" && strings.Contains(c.want, " ") {
			got += " " + p.Keys[0]
			variable, value, arguments := p.Local("http://x")
			got = strings.TrimSpace(strings.Join(append([]string{got, variable}, arguments...), " "))
			got = strings.ReplaceAll(got, "  ", " ")
			if variable != "" && !strings.Contains(value, "http://x/"+p.Name+p.BasePath) || p.Replaceable() != (variable != "" || arguments != nil) {
				t.Errorf("%+v: %s=%s", c, variable, value)
			}
		}
		if got != c.want || known != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, known)
		}
	}
	p, _ := ProviderOf("claude", nil, []string{"ANTHROPIC_API_KEY"})
	if want := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}; !slices.Equal(p.Keys, want) {
		t.Errorf("the keys that lead to the same origin: %q", p.Keys)
	}
	if row, _ := ProviderNamed("anthropic"); len(row.Keys) != 1 || row.Replaceable() {
		t.Errorf("the row was changed: %+v", row)
	}
}

// What takes the origin's place follows from an address that ends as the provider's own.
func TestBase(t *testing.T) {
	claude, _ := ProviderOf("claude", nil, []string{"ANTHROPIC_API_KEY"})
	qwen, _ := ProviderOf("acp", []string{"qwen"}, []string{"OPENAI_API_KEY"})
	opencode, _ := ProviderOf("acp", []string{"opencode"}, []string{"OPENAI_API_KEY"})
	for _, c := range []struct {
		p          Provider
		base, want string
	}{
		{claude, "http://localhost:4000", "http://localhost:4000"},
		{claude, "https://gateway.example.org/anthropic/", "https://gateway.example.org/anthropic"},
		{qwen, "https://gateway.example.org/x/v1/", "https://gateway.example.org/x"},
		{qwen, "https://gateway.example.org/x", ""},
		{qwen, "not an address/v1", ""},
		{opencode, `{"provider":{}}`, ""},
	} {
		if got, known := c.p.Base(c.base); known != (c.want != "") || known && got != c.want {
			t.Errorf("%s, %s: %q, %v", c.p.Name, c.base, got, known)
		}
	}
}

// Only calls of models are made with the key.
func TestAllows(t *testing.T) {
	anthropic, _ := ProviderNamed("anthropic")
	google, _ := ProviderNamed("google")
	for sent, want := range map[string]bool{
		"/v1/messages": true, "/v1/messages/count_tokens": true, "/v1/models": true, "/v1/models/claude-x": true,
		"/v1/messagesx": false, "/v1/files": false, "/v1/organizations/api_keys": false, "/v1": false, "/": false, "": false,
		"v1/messages": false, "/V1/messages": false, "/v1/messages/../files": false, "/v1/messages/%2e%2e/files": false,
		"/v1/messages/%2E./files": false, "/v1/messages//x": false, "//v1/messages": false, `/v1/messages/..\files`: false,
		"/v1/messages/x%2f..": false, "/v1/messages/%252e": false, "/v1/messages?x": false, "/v1/messages/batches": true,
	} {
		if got := anthropic.Allows(sent); got != want {
			t.Errorf("%s: %v", sent, got)
		}
	}
	if !google.Allows("/v1beta/models/gemini-x:streamGenerateContent") || google.Allows("/v1beta/files") || google.Allows("/upload/v1beta/files") {
		t.Error("calls of Gemini")
	}
}

// Property: however a server decodes and shortens the path of an allowed call, it stays one of the provider's.
func FuzzAllows(f *testing.F) {
	for _, seed := range []string{"/v1/messages", "/v1/messages/%2e%2e/files", "/v1/messages/..", "/v1/models/%2525", "/v1/models;/x", "/v1/models/%c0%ae"} {
		f.Add(seed)
	}
	providers := Providers()
	f.Fuzz(func(t *testing.T, sent string) {
		for _, p := range providers {
			if !p.Allows(sent) {
				continue
			}
			decoded := sent
			for range 3 { // servers behind each other
				if once, err := url.PathUnescape(decoded); err == nil {
					decoded = once
				}
			}
			for _, form := range []string{path.Clean(sent), path.Clean(decoded), path.Clean(strings.ReplaceAll(decoded, `\`, "/"))} {
				if !slices.ContainsFunc(p.Paths, func(start string) bool { return strings.HasPrefix(form, start) }) {
					t.Fatalf("%s allows %q, which can be read as %q", p.Name, sent, form)
				}
			}
		}
	})
}
