package sessions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// entered is a launch in a view with a network.
func entered(t *testing.T, box sessionhost.Confinement, argv []string, env ...string) spawn.Launch {
	t.Helper()
	return inNetwork(spawn.Launch{Argv: argv, Env: env, View: &sandbox.View{By: sandbox.ByNamespaces}}, box, "/state/proxy")
}

func parsed(t *testing.T, words ...string) network.Setting {
	t.Helper()
	s, err := network.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeyGoesToTheProxy checks for each program that it gets no key where it can be led to the proxy, and keeps it elsewhere.
func TestKeyGoesToTheProxy(t *testing.T) {
	t.Parallel()
	const secret = "the-real-key"
	for name, c := range map[string]struct {
		command  []string
		driver   string
		env      []string
		argv     []string // nil: as it was
		want     string   // a variable that leads to the proxy; empty: none does
		provider string   // of the key that the proxy has; empty: none
		base     string
	}{
		"claude": {
			nil, "claude",
			[]string{"ANTHROPIC_API_KEY=" + secret},
			nil,
			"ANTHROPIC_BASE_URL=http://127.0.0.1:61080/anthropic", "anthropic", "",
		},
		"claude with two keys": {
			nil, "claude",
			[]string{"ANTHROPIC_API_KEY=" + secret, "CLAUDE_CODE_OAUTH_TOKEN=" + secret},
			nil,
			"ANTHROPIC_BASE_URL=http://127.0.0.1:61080/anthropic", "anthropic", "",
		},
		"claude at a gateway": {
			nil, "claude",
			[]string{"ANTHROPIC_AUTH_TOKEN=" + secret, "ANTHROPIC_BASE_URL=http://llm.office:8080/gate"},
			nil,
			"ANTHROPIC_BASE_URL=http://127.0.0.1:61080/anthropic-token", "anthropic-token", "http://llm.office:8080/gate",
		},
		"codex": {
			nil, "codex",
			[]string{"OPENAI_API_KEY=" + secret},
			[]string{"/bin/program", "-c", `openai_base_url="http://127.0.0.1:61080/openai/v1"`, "exec"},
			"", "openai", "",
		},
		"codex by another command": {
			[]string{"npx", "codex"},
			"codex",
			[]string{"OPENAI_API_KEY=" + secret},
			[]string{"/bin/program", "codex", "-c", `openai_base_url="http://127.0.0.1:61080/openai/v1"`, "exec"},
			"", "openai", "",
		},
		"gemini": {
			[]string{"gemini"}, "acp", []string{"GEMINI_API_KEY=" + secret}, nil, "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:61080/google", "google", "",
		},
		"qwen": {
			[]string{"qwen"}, "acp", []string{"OPENAI_API_KEY=" + secret}, nil, "OPENAI_BASE_URL=http://127.0.0.1:61080/openai/v1", "openai", "",
		},
		"opencode": {
			[]string{"opencode"},
			"acp",
			[]string{"OPENROUTER_API_KEY=" + secret},
			nil,
			`OPENCODE_CONFIG_CONTENT={"provider":{"openrouter":{"options":{"baseURL":"http://127.0.0.1:61080/openrouter/api/v1"}}}}`, "openrouter", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			argv := append([]string{"/bin/program"}, "exec")
			if len(c.command) > 1 {
				argv = slices.Concat([]string{"/bin/program"}, c.command[1:], []string{"exec"})
			}
			box := sessionhost.Confinement{Agent: "coder", Driver: c.driver, Command: c.command, Network: network.Default()}
			got := entered(t, box, argv, append(c.env, "PATH=/bin")...)
			want := c.argv
			if want == nil {
				want = argv
			}
			if !slices.Equal(got.Argv, want) || c.want != "" && !slices.Contains(got.Env, c.want) {
				t.Errorf("it is led by %q and %q", got.Argv, got.Env)
			}
			if strings.Contains(strings.Join(append(got.Env, got.Argv...), " "), secret) {
				t.Errorf("the program gets the key: %q %q", got.Env, got.Argv)
			}
			if len(got.Network.Keys) != 1 || got.Network.Keys[0].Provider != c.provider || got.Network.Keys[0].Value != secret ||
				got.Network.Keys[0].Base != c.base {
				t.Errorf("the proxy has %v of %q at %q", got.Network.Keys, c.provider, c.base)
			}
		})
	}
}

// TestKeyStays checks that a program which cannot be led to the proxy has what it had.
func TestKeyStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		env     []string
	}{
		"an unknown program":               {[]string{"mine"}, []string{"ANTHROPIC_API_KEY=k"}},
		"no key":                           {[]string{"claude"}, nil},
		"an empty key":                     {[]string{"claude"}, []string{"ANTHROPIC_API_KEY="}},
		"a key that no header carries":     {[]string{"claude"}, []string{"ANTHROPIC_API_KEY=a\xffb"}},
		"settings of a person's own":       {[]string{"opencode"}, []string{"OPENROUTER_API_KEY=k", "OPENCODE_CONFIG_CONTENT={}"}},
		"another address than the usual":   {[]string{"qwen"}, []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://127.0.0.1:8080/other"}},
		"a provider that it is not led to": {[]string{"qwen"}, []string{"DASHSCOPE_API_KEY=k"}},
		"variables of others":              {[]string{"claude"}, []string{"OPENAI_API_KEY=k", "AWS_SECRET_ACCESS_KEY=s"}},
	} {
		box := sessionhost.Confinement{Driver: "acp", Command: c.command, Network: network.Default()}
		got := entered(t, box, []string{"/bin/program"}, c.env...)
		for _, kv := range c.env {
			if !slices.Contains(got.Env, kv) {
				t.Errorf("%s: %q is not in %q", name, kv, got.Env)
			}
		}
		if len(got.Network.Keys) > 0 || len(got.Argv) != 1 {
			t.Errorf("%s: keys %v, %q", name, got.Network.Keys, got.Argv)
		}
	}
}

// TestNetworkOfSession checks that the words of fairlead.yaml reach the proxy.
func TestNetworkOfSession(t *testing.T) {
	t.Parallel()
	authorities := filepath.Join(t.TempDir(), "office.pem")
	if err := os.WriteFile(authorities, []byte("a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	box := sessionhost.Confinement{
		Agent: "coder", Driver: "claude", Local: []int{5432},
		Network: parsed(t, "model", "registry.office:5000", "localhost:11434", "example.org"),
	}
	got := entered(t, box, []string{"claude"}, "HTTPS_PROXY=http://me:secret@proxy.office:3128", "no_proxy=.office", "NODE_EXTRA_CA_CERTS="+authorities,
		"MINE=1")
	to := got.Network
	if to.Folder != "/state/proxy" || to.Agent != "coder" || to.Upstream.Proxy != "http://me:secret@proxy.office:3128" ||
		to.Upstream.NoProxy != ".office" || string(to.Upstream.Authorities) != "a certificate\n" {
		t.Errorf("%+v", to)
	}
	if !slices.Equal(to.Rules.Local, []int{5432, 11434}) {
		t.Errorf("ports of this machine: %v", to.Rules.Local)
	}
	for _, at := range []struct {
		name string
		port int
		want network.Answer
	}{
		{"api.anthropic.com", 443, network.Allowed},
		{"registry.office", 5000, network.Allowed},
		{"example.org", 443, network.Allowed},
		{"registry.npmjs.org", 443, network.Ask},
	} {
		if v := to.Rules.Decide(at.name, at.port); v.Answer != at.want {
			t.Errorf("%s:%d: %v", at.name, at.port, v)
		}
	}
	if want := sandbox.InsideOf(to.Rules); len(got.View.Network.More) != len(want.More) || len(want.More) != 4 {
		t.Errorf("sockets: %v", got.View.Network.More)
	}
	for _, kv := range []string{"HTTPS_PROXY=http://127.0.0.1:61080", "no_proxy=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1", "MINE=1"} {
		if !slices.Contains(got.Env, kv) {
			t.Errorf("%q is not in %q", kv, got.Env)
		}
	}
	if strings.Contains(strings.Join(got.Env, " "), "secret") {
		t.Errorf("the password of the proxy is in %q", got.Env)
	}
	if none := entered(t, sessionhost.Confinement{Network: parsed(t, "none")}, []string{"claude"}).Network.Rules; !none.None {
		t.Errorf("none: %+v", none)
	}
}

// TestNetworkHoles checks what is said of openings.
func TestNetworkHoles(t *testing.T) {
	t.Parallel()
	var env config.Env
	conf := config.Agent{Driver: "acp", Command: []string{"codex-acp"}, Network: parsed(t, "all"), Env: env}
	conf.Sandbox.Mode, conf.Sandbox.Local = config.SandboxWorkspace, []int{5432}
	got := strings.Join(HolesOf(&conf), "\n")
	for _, want := range []string{"every public host", "port 5432 of this machine"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
