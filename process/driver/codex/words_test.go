package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

func TestFailed(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, zone)
	for _, c := range []struct {
		text, reason string
		until        time.Time
	}{
		{"exceeded retry limit, last status: 429 Too Many Requests", "rate_limited", time.Time{}},
		{
			"You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), or try again at 3:42 PM.", "rate_limited",
			time.Date(2026, 11, 21, 15, 42, 0, 0, zone),
		},
		{"You've hit your usage limit. … or try again at 12:16 AM.", "rate_limited", time.Date(2026, 11, 22, 0, 16, 0, 0, zone)},
		{"You've hit your usage limit. … try again at 12:05 PM.", "rate_limited", time.Date(2026, 11, 22, 12, 5, 0, 0, zone)},
		{"You've hit your usage limit. … try again at Mar 10th, 2027 3:39 AM.", "rate_limited", time.Date(2027, 3, 10, 3, 39, 0, 0, zone)},
		{"You've hit your usage limit. … try again at Foo 10th, 2027 3:39 AM.", "rate_limited", time.Time{}},
		{
			"You've hit your usage limit. Upgrade to Pro or try again in 2 hours 13 minutes.", "rate_limited",
			now.Add(2*time.Hour + 13*time.Minute),
		},
		{"Rate limit reached for gpt on tokens per min. Please try again in 1.3s.", "rate_limited", now.Add(time.Second)},
		{"You've hit your usage limit. Try again in 3 days 1 hour.", "rate_limited", now.Add(73 * time.Hour)},
		{"You've hit your usage limit. Try again in 99999999999 days.", "rate_limited", time.Time{}},
		{"Your input exceeds the context window of this model.", "context_exhausted", time.Time{}},
		{"Error: thread/resume: thread/resume failed: no rollout found for thread id 01a1 (code -32600)", "not_resumed", time.Time{}},
		{"unexpected status 401 Unauthorized: Missing bearer or basic authentication in header", "not_signed_in", time.Time{}},
		{"We’re currently experiencing high demand, which may cause temporary errors.", "failed", time.Time{}},
		{"", "failed", time.Time{}},
	} {
		stop, until := failed(c.text, now)
		if stop.OK || stop.Reason != c.reason || !until.Equal(c.until) {
			t.Errorf("%q: %+v until %v, want %s until %v", c.text, stop, until, c.reason, c.until)
		}
	}
}

func TestUnwrapped(t *testing.T) {
	for in, want := range map[string]string{
		`/bin/bash -lc 'echo ran > ran.txt; ls'`:                   `echo ran > ran.txt; ls`,
		`/bin/bash -lc "printf '%s\\n' 'hello codex' > hello.txt"`: `printf '%s\n' 'hello codex' > hello.txt`,
		`bash -lc ls`:                `ls`,
		`/usr/bin/zsh -c 'it'"'"'s'`: `it's`,
		`sh -c a\ b`:                 `a b`,
		`bash -lc 'one' two`:         `bash -lc 'one' two`,
		`bash -lc "$HOME"`:           `bash -lc "$HOME"`,
		"bash -lc \"`id`\"":          "bash -lc \"`id`\"",
		`bash -lc 'open`:             `bash -lc 'open`,
		`bash -lc "open`:             `bash -lc "open`,
		`bash -lc \`:                 `bash -lc \`,
		`git status`:                 `git status`,
		``:                           ``,
	} {
		if got := unwrapped(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestCommand checks that the token is not where other users can read it.
func TestCommand(t *testing.T) {
	const token = "swordfish"
	part := adapter.Part{
		Command: []string{"/usr/bin/codex", "-c", "a=b"}, Model: "gpt-6", Mode: "read-only",
		MCP: driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: token, Stdio: []string{"/usr/bin/fairlead", "mcp"}},
	}
	first, again := command(part, "", nil), command(part, "01a1", nil)
	want := []string{
		"/usr/bin/codex", "-c", "a=b", "exec", "--json", "--skip-git-repo-check", "-c", `sandbox_mode="read-only"`, "-c",
		`approval_policy="never"`, "--model", "gpt-6",
		"-c", `mcp_servers.fairlead.url="http://127.0.0.1:1/mcp"`, "-c", `mcp_servers.fairlead.bearer_token_env_var="FAIRLEAD_MCP_TOKEN"`,
		"-c", `mcp_servers.fairlead.default_tools_approval_mode="approve"`, "-c", `mcp_servers.fairlead.tool_timeout_sec=1800`,
		"-c", `shell_environment_policy.set.FAIRLEAD_MCP_TOKEN=""`, "-",
	}
	if d := cmp.Diff(want, first.Argv); d != "" {
		t.Error(d)
	}
	if got := strings.Join(again.Argv, " "); !strings.Contains(got, "exec resume --json") || !strings.HasSuffix(got, " 01a1 -") {
		t.Error(got)
	}
	images := []string{"/run/a.png", "/run/b,c.png"} // a comma divides paths
	if got := strings.Join(command(part, "", images).Argv, " "); !strings.Contains(got, "exec --image /run/a.png --json") ||
		strings.Contains(got, "b,c") {
		t.Error(got)
	}
	if got := strings.Join(command(part, "01a1", images).Argv, " "); strings.Contains(got, "--image") {
		t.Errorf("a resumed conversation gets its images again: %s", got)
	}
	if strings.Contains(strings.Join(first.Argv, " "), token) ||
		!strings.Contains(strings.Join(first.Env, " "), "FAIRLEAD_MCP_TOKEN="+token) {
		t.Error("the token is not only in the environment")
	}
	for mode, want := range map[string][2]string{
		"":          {"workspace-write", "danger-full-access"},
		"read-only": {"read-only", "danger-full-access"},
	} {
		free, walled := command(adapter.Part{Command: []string{"codex"}, Mode: mode}, "", nil),
			command(adapter.Part{Command: []string{"codex"}, Mode: mode, Walled: true}, "", nil)
		for i, c := range []adapter.Command{free, walled} {
			if !slices.Contains(c.Argv, `sandbox_mode="`+want[i]+`"`) {
				t.Errorf("mode %q: %q has not the mode %s", mode, c.Argv, want[i])
			}
		}
	}
	part.MCP.URL = "" // on another host
	c := command(part, "", nil)
	if got := strings.Join(c.Argv,
		" "); !strings.Contains(got, `mcp_servers.fairlead.command="/usr/bin/fairlead" -c mcp_servers.fairlead.args=["mcp"]`) ||
		strings.Join(c.Env, " ") != "FAIRLEAD_MCP_TOKEN="+token {
		t.Error(got, c.Env)
	}
	part.MCP = driver.MCP{URL: "http://127.0.0.1:1/mcp"}
	if c := command(part, "", nil); strings.Contains(strings.Join(c.Argv, " "), "mcp") || len(c.Env) > 0 {
		t.Error("tools are configured without a token")
	}
}

func TestLastTotal(t *testing.T) {
	line := func(in, out string) string {
		return `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":` + in +
			`,"output_tokens":` + out + `}}}}` + "\n"
	}
	for record, want := range map[string]change.Usage{
		line("100", "20") + line("300", "60") + `{"type":"other"}` +
			"\n": {InputTokens: 300, OutputTokens: 60},
		line("100", "20") + `{"payload":{"type":"token_count","info":null}}` + "\n" +
			`{"payload":{"type":"token_count","i`: {InputTokens: 100, OutputTokens: 20},
		`half a line "token_count"`: {},
		"":                          {},
		"\n\n":                      {},
	} {
		got, ok := lastTotal([]byte(record))
		if got != want || ok != (want != change.Usage{}) {
			t.Errorf("%q: %+v %t, want %+v", record, got, ok, want)
		}
	}
}

// TestModelOfRecord checks that the model of the last answer is read from codex's record.
func TestModelOfRecord(t *testing.T) {
	home, thread := t.TempDir(), "019a-thread-1"
	env := []string{"CODEX_HOME=" + home}
	if got := modelOf(env, thread); got != "" {
		t.Errorf("model %q without a record", got)
	}
	dir := filepath.Join(home, "sessions", "2026", "11", "25")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	record := `{"type":"turn_context","payload":{"cwd":"/a","model":"gpt-5-codex"}}` + "\n" +
		`{"type":"turn_context","payload":{"cwd":"/a","model":"gpt-5.1\u001b[2J"}}` + "\n" +
		`{"type":"response_item","payload":{"text":"\"turn_context\"","model":"fake"}}` + "\n" + `{"type":"turn_context","pay`
	if err := os.WriteFile(filepath.Join(dir, "rollout-1-"+thread+".jsonl"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := modelOf(env, thread); !strings.HasPrefix(got, "gpt-5.1") {
		t.Errorf("%q", got)
	}
}

func TestCheck(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		command []string
		mode    string
		says    string
	}{
		{nil, "", "command codex is not in the PATH"},
		{[]string{"codex", "exec"}, "", "remove it"},
		{[]string{"codex", "--sandbox=read-only"}, "", "mode: WORD"},
		{[]string{"codex"}, "yolo", "no mode"},
		{[]string{"/bin/sh"}, "read-only", ""},
	} {
		err := Driver{}.Check(driver.Agent{Name: "coder", Command: c.command, Mode: c.mode, Workspace: t.TempDir()})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q in %q: %v, want %q", c.command, c.mode, err, c.says)
		}
	}
}

// TestProbe probes shell scripts.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := script("codex",
		`case "$1" in --version) echo "codex-cli 0.169.0";; sandbox) echo it-holds;; *) echo "--json --config --skip-git-repo-check --model";; esac`)
	odd := script("codex-odd", `echo what`)
	dead := script("codex-dead", `echo "no binary for this machine" >&2; exit 1`)
	got, err := Driver{}.Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{good}, Workspace: dir})
	want := driver.Probed{
		Program: "codex 0.169.0", Path: good, Speaks: "exec --json", Resumes: true, MCP: []string{"http", "stdio"},
		Enforced: modes["workspace-write"],
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	got, err = Driver{}.Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{odd}, Mode: "whatever", Workspace: dir})
	if err != nil || len(got.Warnings) != 7 {
		t.Errorf("%v, %d warnings: %q", err, len(got.Warnings), got.Warnings)
	}
	if _, err = (Driver{}).Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{dead}, Workspace: dir}); err == nil ||
		!strings.Contains(err.Error(), "no binary for this machine") {
		t.Errorf("the error for a program that does not start: %v", err)
	}
}
