// Package livetest prepares real agent programs for tests that drive them.
//
// Each program gets a home folder that is removed after the test, an environment with only what it
// needs, a dummy key, and scriptmodel on a loopback port as its model. The proxy that the programs
// are configured to use refuses every connection and records the attempt. After the test, livetest
// checks that all processes have ended.
//
// The programs are pinned in package.json and are not part of the build: `npm ci --ignore-scripts`
// and `node node_modules/opencode-ai/postinstall.mjs` in this folder install them. They are
// tested only with FAIRLEAD_LIVE=1, because that takes minutes. Then a program that is not installed fails its
// tests. FAIRLEAD_RECORD=1 beside it renews the recordings of the drivers; RecordTroubles makes those of a provider that fails.
//
// The one promise: apart from the program under test, nothing is real.
package livetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
)

// Variable is the environment variable that requires the tests of real programs with the value 1.
const Variable = "FAIRLEAD_LIVE"

const noteBytesMax = 600 // size of the placeholder for opencode before its postinstall script has run

// Program is an agent program that is ready to be started.
type Program struct {
	Name    string   // opencode
	Driver  string   // acp, claude or codex: the driver that runs it
	Command []string // the first element is an absolute path
	Env     []string // its variables in addition to Bare
	Home    string   // a temporary folder; it also identifies the processes that the program starts
	Way     *Way     // the proxy that records attempts to connect
	May     []string // requests that no setting prevents, as the proxy records them
}

// Bare is the base environment of every program: where programs are found, and nothing from the
// user's own environment.
func Bare(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"), "LANG=C.UTF-8", "TERM=dumb"}
}

// Programs returns all programs: three by ACP, one of them also with the protocol of Claude Code,
// codex, and Claude Code.
func Programs() map[string]func(testing.TB, *scriptmodel.Server) Program {
	return map[string]func(testing.TB, *scriptmodel.Server) Program{
		"opencode": Opencode, "qwen": Qwen, "qwen-stream": QwenStream, "codex": Codex, "claude": Claude, "gemini": Gemini,
	}
}

// Opencode runs by ACP. The driver decides what it may do without asking.
func Opencode(t testing.TB, model *scriptmodel.Server) Program {
	t.Helper()
	p := ready(t, "opencode", "acp", Find(t, "opencode"), "acp")
	p.write(t, ".config/opencode/opencode.json", map[string]any{
		"autoupdate": false, "share": "disabled",
		"model": "parrot/" + scriptmodel.Name, "small_model": "parrot/" + scriptmodel.Name,
		"provider": map[string]any{"parrot": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Parrot",
			"options": map[string]any{"baseURL": model.URL, "apiKey": scriptmodel.Key},
			"models":  map[string]any{scriptmodel.Name: map[string]any{"name": "Parrot"}},
		}},
	})
	p.Env = append(
		p.Env, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1",
		"npm_config_registry="+p.Way.URL,
	)
	p.May = []string{"GET /@opencode-ai%2fplugin HTTP/1.1"} // for its plugins; it continues without them
	return p
}

// Qwen runs by ACP.
func Qwen(t testing.TB, model *scriptmodel.Server) Program {
	t.Helper()
	return qwen(t, model, "acp", "--acp")
}

// QwenStream is the same program with the protocol of Claude Code: JSON lines in both directions.
func QwenStream(t testing.TB, model *scriptmodel.Server) Program {
	t.Helper()
	return qwen(t, model, "claude")
}

func qwen(t testing.TB, model *scriptmodel.Server, driver string, args ...string) Program {
	t.Helper()
	p := ready(t, "qwen", driver, append([]string{Find(t, "qwen")}, args...)...)
	p.write(t, ".qwen/settings.json", map[string]any{
		"security":  map[string]any{"auth": map[string]any{"selectedType": "openai"}},
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		"general":   map[string]any{"disableAutoUpdate": true, "disableUpdateNag": true, "enableAutoUpdate": false},
	})
	p.Env = append(
		p.Env, "OPENAI_API_KEY="+scriptmodel.Key, "OPENAI_BASE_URL="+model.URL, "OPENAI_MODEL="+scriptmodel.Name,
		"QWEN_CODE_NO_RELAUNCH=true",
	)
	return p
}

// Gemini runs by ACP, in folders that it trusts.
func Gemini(t testing.TB, model *scriptmodel.Server) Program {
	t.Helper()
	p := ready(t, "gemini", "acp", Find(t, "gemini"), "--acp")
	p.write(t, ".gemini/settings.json", map[string]any{
		"security":  map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		"general":   map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
	})
	p.Env = append(
		p.Env, "GEMINI_API_KEY="+scriptmodel.Key, "GOOGLE_GEMINI_BASE_URL="+strings.TrimSuffix(model.URL, "/v1"),
		"GEMINI_MODEL="+scriptmodel.Name,
		"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true",
	)
	return p
}

// Age makes the conversations of Gemini CLI in its folder older than a minute. It names the file of a
// conversation by the minute: a conversation that is resumed within the minute of its start gets
// the same file and is not found in it. People resume later than that. For other programs Age does
// nothing.
func Age(t testing.TB, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "tmp", "*", "chats", "session-*"))
	if err != nil {
		t.Fatal(err)
	}
	year := regexp.MustCompile(`session-\d{4}`)
	for i, file := range files {
		// in the order in which they are listed, the oldest first
		older := year.ReplaceAllString(filepath.Base(file), fmt.Sprintf("session-%04d", 2000+i))
		if err := os.Rename(file, filepath.Join(filepath.Dir(file), older)); err != nil {
			t.Fatal(err)
		}
	}
}

// Claude is Claude Code, with JSON lines.
func Claude(t testing.TB, model *scriptmodel.Server) Program {
	t.Helper()
	// Its own folder has the program; the file beside it needs an install script.
	p := ready(t, "claude", "claude",
		Find(t, "../@anthropic-ai/claude-code-"+runtime.GOOS+"-"+map[string]string{"amd64": "x64"}[runtime.GOARCH]+"/claude"))
	p.Env = append(
		p.Env, "ANTHROPIC_BASE_URL="+strings.TrimSuffix(model.URL, "/v1"), "ANTHROPIC_API_KEY="+scriptmodel.Key, "IS_SANDBOX=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	)
	return p
}

// Codex runs by the JSON lines of `codex exec`.
func Codex(t testing.TB, model *scriptmodel.Server) Program {
	t.Helper()
	p := ready(t, "codex", "codex", Find(t, "codex"))
	home := filepath.Join(p.Home, ".codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	config := strings.Join([]string{
		`model = "` + scriptmodel.Name + `"`,
		`model_provider = "parrot"`,
		`check_for_update_on_startup = false`,
		`[model_providers.parrot]`,
		`name = "Parrot"`,
		`base_url = "` + model.URL + `"`,
		`env_key = "PARROT_KEY"`,
		`wire_api = "responses"`,
		`supports_websockets = false`,
		`request_max_retries = 0`,
		`stream_max_retries = 0`,
		`[analytics]`,
		`enabled = false`,
		`[feedback]`,
		`enabled = false`,
		`[features]`,
		`plugins = false`,
		`apps = false`,
		"",
	}, "\n")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "PARROT_KEY="+scriptmodel.Key)
	return p
}

// ready prepares the folders and the environment of a program.
func ready(t testing.TB, name, driver string, command ...string) Program {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	way := Watch(t)
	env := []string{"HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"), "XDG_RUNTIME_DIR=" + filepath.Join(home, "tmp")}
	for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, v+"="+way.URL, strings.ToLower(v)+"="+way.URL)
	}
	const here = "127.0.0.1,localhost,::1"
	return Program{Name: name, Driver: driver, Command: command, Home: home, Way: way, Env: append(env, "NO_PROXY="+here, "no_proxy="+here)}
}

// Use returns the scriptmodel item by which the program uses one of the team's tools.
func (p Program) Use(tool, args string) string {
	use := "do: mcp " + tool + " " + args
	search, is := map[string]string{"qwen": "tool_search", "claude": "ToolSearch"}[p.Name]
	if is { // these programs show their model no tool of a server before a search for it
		use = "do: tool " + search + ` {"query":"select:mcp__fairlead__` + tool + "\"}\n" + use
	}
	return use
}

func (p Program) write(t testing.TB, name string, v any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(p.Home, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Find returns the absolute path of a program that npm installed.
func Find(t testing.TB, name string) string {
	t.Helper()
	const how = "in internal/test/livetest run `npm ci --ignore-scripts && node node_modules/opencode-ai/postinstall.mjs`"
	path := filepath.Join(folder(t), "node_modules", ".bin", name) // by its name, as people start it
	if os.Getenv(Variable) != "1" {
		t.Skipf("drives the real %s, which takes minutes; only with %s=1; to install it, %s", name, Variable, how)
	}
	if !whole(path) {
		t.Fatalf("%s is not installed, but %s requires it; %s", name, Variable, how)
	}
	return path
}

// folder returns the folder of this package and its programs.
func folder(t testing.TB) string {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the folder of this package is not known")
	}
	return filepath.Dir(here)
}

// whole reports whether a program is installed, and not only its placeholder.
func whole(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > noteBytesMax
}
