package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

func TestVerdict(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	angeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Skip("this machine does not know the zones of the world")
	}
	for _, c := range []struct {
		name   string
		msg    string
		seen   limits
		reason string
		until  time.Time
	}{
		{
			"done", `{"subtype":"success","result":"429 tests pass, no rate limit was hit"}`,
			limits{word: "overloaded"},
			"completed",
			time.Time{},
		},
		{"an error as a success", `{"subtype":"success","result":"[API Error: 400 bad]"}`, limits{}, "failed", time.Time{}},
		{
			"the same, of Claude Code",
			`{"subtype":"success","result":"API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}"}`,
			limits{},
			"failed",
			time.Time{},
		},
		{"a status alone", `{"subtype":"success","result":"Error: 400 {\"error\":\"no such model\"}"}`, limits{}, "failed", time.Time{}},
		{"words about an error", `{"subtype":"success","result":"I fixed the API Error: 400"}`, limits{}, "completed", time.Time{}},
		{"refused", `{"subtype":"success","result":"no","stop_reason":"refusal"}`, limits{}, "refused", time.Time{}},
		{"turns", `{"subtype":"error_max_turns","is_error":true}`, limits{}, "max_turns", time.Time{}},
		{"budget", `{"subtype":"error_max_budget_usd","is_error":true}`, limits{}, "max_budget", time.Time{}},
		{"full", `{"subtype":"success","is_error":true,"result":"Prompt is too long"}`, limits{}, "context_exhausted", time.Time{}},
		{
			"full, says a field", `{"subtype":"success","is_error":true,"result":"sorry","terminal_reason":"prompt_too_long"}`,
			limits{},
			"context_exhausted",
			time.Time{},
		},
		{
			"no such conversation",
			`{"subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}`,
			limits{},
			"not_resumed",
			time.Time{},
		},
		{"held", `{"subtype":"error_during_execution","is_error":true,"errors":["this session is open in the background"],"startup_failure_reason":"session_held_by_background"}`, limits{}, "process_conflict", time.Time{}},
		{
			"limit by event", `{"subtype":"success","is_error":true,"result":"stop"}`,
			limits{rejected: true, until: now.Add(time.Hour)},
			"rate_limited", now.Add(time.Hour),
		},
		{
			"limit by status", `{"subtype":"success","is_error":true,"result":"stop","api_error_status":429}`,
			limits{},
			"rate_limited",
			time.Time{},
		},
		{
			"limit with a date", `{"is_error":true,"result":"You've hit your limit · resets Jul 23 at 6pm (America/Los_Angeles)"}`,
			limits{},
			"rate_limited", time.Date(2027, 7, 23, 18, 0, 0, 0, angeles),
		},
		{
			"limit, today", `{"is_error":true,"result":"5-hour limit reached ∙ resets 3pm", "api_error_status":429}`,
			limits{},
			"rate_limited",
			time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC),
		},
		{
			"limit, tomorrow", `{"is_error":true,"result":"You've hit your session limit · resets 1:30am (UTC)"}`,
			limits{},
			"rate_limited",
			time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC),
		},
		{
			"limit, nowhere", `{"is_error":true,"result":"You've hit your limit · resets 1am (Mars/Olympus)"}`,
			limits{},
			"rate_limited",
			time.Time{},
		},
		{
			"limit, older", `{"is_error":true,"result":"Claude AI usage limit reached|1800003600"}`,
			limits{},
			"rate_limited",
			time.Unix(1800003600, 0),
		},
		{"limit by word", `{"is_error":true,"result":"stop"}`, limits{word: "rate_limit"}, "rate_limited", time.Time{}},
		{"login by word", `{"is_error":true,"result":"stop"}`, limits{word: "oauth_org_not_allowed"}, "not_signed_in", time.Time{}},
		{
			"login by status", `{"is_error":true,"result":"stop","api_error_status":403}`,
			limits{word: "unknown"},
			"not_signed_in",
			time.Time{},
		},
		{
			"no credit is no login", `{"is_error":true,"result":"Credit balance is too low","api_error_status":400}`,
			limits{word: "billing_error"},
			"failed",
			time.Time{},
		},
		{"nothing said", `{"subtype":"error_during_execution","is_error":true,"result":null}`, limits{}, "failed", time.Time{}},
	} {
		m, err := read(json.RawMessage(c.msg))
		if err != nil {
			t.Fatal(c.name, err)
		}
		stop, until := verdict(m.result, m.Subtype, c.seen, adapter.APIError(endWords(m.result)), now)
		if stop.Reason != c.reason || stop.OK != (c.reason == "completed") || !until.Equal(c.until) {
			t.Errorf("%s: %+v until %v, want %s until %v", c.name, stop, until, c.reason, c.until)
		}
		if !stop.OK && stop.Detail == "" {
			t.Errorf("%s: a failure without a word about why", c.name)
		}
	}
}

func TestOurCall(t *testing.T) {
	for _, c := range []struct {
		name, input      string
		tool, args, what string
		cut, paths       []string
	}{
		{
			"run_shell_command", `{"command":"date\n-u","description":"x"}`, "Bash", `{"command":"date\n-u","description":"x"}`, "date -u",
			nil, nil,
		},
		{"read_file", `{"absolute_path":"/a/b"}`, "Read", `{"file_path":"/a/b"}`, "/a/b", nil, []string{"/a/b"}},
		{
			"Write", `{"file_path":"../x/./y","content":"z"}`, "Write", `{"file_path":"../x/./y","content":"z"}`, "../x/./y", nil,
			[]string{"/work/x/y"},
		},
		{
			"Edit", `{"file_path":"/a","absolute_path":"/b"}`, "Edit", `{"file_path":"/a","absolute_path":"/b"}`, "/a",
			[]string{"file_path"},
			[]string{"/a", "/b"},
		},
		{"Grep", `{"pattern":"foo","path":"src"}`, "Grep", `{"pattern":"foo","path":"src"}`, "foo", nil, []string{"/work/repo/src"}},
		{"mcp__x__y", `{"text":"hi"}`, "mcp__x__y", `{"text":"hi"}`, "hi", nil, nil},
		{"Write", `{"file_path":7}`, "Write", `{"file_path":7}`, "", nil, nil},
		{"Write", `"no"`, "Write", ``, "", nil, nil},
		{"Bash", ``, "Bash", ``, "", nil, nil},
	} {
		got := ourCall(c.name, json.RawMessage(c.input))
		if got.Tool != c.tool || string(got.Args) != c.args || got.what() != c.what || !cmp.Equal(got.Cut, c.cut) ||
			!cmp.Equal(got.paths("/work/repo", ""), c.paths) {
			t.Errorf("%s %s: %s %s, %q, cut %q, paths %q", c.name, c.input, got.Tool, got.Args, got.what(), got.Cut,
				got.paths("/work/repo", ""))
		}
	}
}

// TestMeter checks that usage from several sources is counted once.
func TestMeter(t *testing.T) {
	use := func(in, out float64) *usage { return &usage{Input: adapter.Number(in), Output: adapter.Number(out)} }
	model := func(in, out float64) map[string]modelUsage {
		return map[string]modelUsage{"m": {Input: adapter.Number(in), Output: adapter.Number(out)}}
	}
	sum := func(all ...change.Usage) (s change.Usage) {
		for _, u := range all {
			s = add(s, u)
		}
		return s
	}
	m := meter{trusts: true}
	end := func(m *meter, r result) change.Usage { return sum(m.end(r)...) }
	got := sum(m.message("a", "m", use(10, 1)), m.message("a", "m", use(10, 5)), m.message("a", "m", use(10, 5)),
		m.message("b", "m", use(20, 1)), m.message("", "m", use(99, 9)),
		end(&m, result{Usage: use(30, 40), Cost: 0.5}))
	if want := (change.Usage{InputTokens: 30, OutputTokens: 40, CostUSD: 0.5}); got != want {
		t.Errorf("the first answer: %+v, want %+v", got, want)
	}
	got = sum(m.message("c", "m", use(5, 1)), end(&m, result{ModelUsage: model(100, 50), Usage: use(5, 2), Cost: 0.75}))
	if want := (change.Usage{InputTokens: 70, OutputTokens: 10, CostUSD: 0.25}); got != want {
		t.Errorf("the second, with a total of all: %+v, want %+v", got, want)
	}
	if got, want := end(&m, result{ModelUsage: model(10, 5), Cost: 0.1}),
		(change.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 0.1}); got != want {
		t.Errorf("totals that restarted: %+v, want %+v", got, want)
	}
	m = meter{}
	got = sum(m.message("a", "m", use(100, 20)), end(&m, result{Usage: use(300, 60)}))
	if want := (change.Usage{InputTokens: 100, OutputTokens: 20}); got != want {
		t.Errorf("a sum that is not to be trusted: %+v, want %+v", got, want)
	}
	if got, want := end(&m, result{Usage: use(7, 3)}), (change.Usage{InputTokens: 7, OutputTokens: 3}); got != want {
		t.Errorf("where messages say nothing: %+v, want %+v", got, want)
	}
}

// TestMeterByModel checks that the parts of all models are the total, whatever the program sends, and that
// each part has the model that the program named.
func TestMeterByModel(t *testing.T) {
	m := meter{trusts: true}
	use := func(in, out float64) *usage { return &usage{Input: adapter.Number(in), Output: adapter.Number(out)} }
	m.message("a", "opus", use(100, 20))
	parts := m.end(result{Cost: 0.9, Usage: use(100, 25), ModelUsage: map[string]modelUsage{
		"opus": {Input: 100, Output: 25, Cost: 0.8}, "haiku": {Input: 40, Output: 4, Cost: 0.1},
	}})
	want := []change.Usage{{Model: "haiku", InputTokens: 40, OutputTokens: 4, CostUSD: 0.1}, {Model: "opus", OutputTokens: 5, CostUSD: 0.8}}
	if !cmp.Equal(parts, want) {
		t.Errorf("%+v, want %+v", parts, want)
	}
	parts = m.end(result{
		Cost:       1.4,
		ModelUsage: map[string]modelUsage{"opus": {Input: 200, Output: 30, Cost: 1.2}, "haiku": {Input: 40, Output: 4, Cost: 0.1}},
	})
	if want := []change.Usage{{Model: "opus", InputTokens: 100, OutputTokens: 5, CostUSD: 0.4}, {CostUSD: 0.1}}; !cmp.Equal(parts, want) {
		t.Errorf("a cost that no model has: %+v, want %+v", parts, want)
	}

	for seed := range uint64(400) {
		dice := rand.New(rand.NewPCG(seed, 3))
		one, by := meter{trusts: seed%2 == 0}, meter{trusts: seed%2 == 0}
		names := []string{"opus", "haiku", "", "other"}
		totals, cost := map[string]modelUsage{}, 0.0
		for n := range 1 + dice.IntN(5) {
			var all, whole change.Usage
			for i := range dice.IntN(6) {
				id, name, u := fmt.Sprint(n, i%3), names[dice.IntN(len(names))], use(float64(dice.IntN(500)), float64(dice.IntN(90)))
				all, whole = add(all, by.message(id, name, u)), add(whole, one.message(id, "", u))
			}
			if dice.IntN(5) == 0 {
				totals, cost = map[string]modelUsage{}, 0 // as after a reset
			}
			for range dice.IntN(4) {
				name := names[dice.IntN(len(names))]
				t := totals[name]
				t.Input, t.Output, t.Cost = t.Input+adapter.Number(dice.IntN(900)), t.Output+adapter.Number(dice.IntN(90)),
					t.Cost+adapter.Number(dice.IntN(8))/8
				totals[name] = t
			}
			cost += float64(dice.IntN(10)) / 8
			r := result{Cost: adapter.Number(cost), Usage: use(float64(dice.IntN(900)), 9), ModelUsage: maps.Clone(totals)}
			for _, part := range by.end(r) {
				all = add(all, part)
			}
			whole = add(whole, one.rest(r))
			if all.InputTokens != whole.InputTokens || all.OutputTokens != whole.OutputTokens ||
				math.Abs(all.CostUSD-whole.CostUSD) > 1e-6 {
				t.Fatalf("seed %d: the parts are %+v, the whole is %+v", seed, all, whole)
			}
		}
	}
}

// TestCommand checks that the token is not where other users can read it.
func TestCommand(t *testing.T) {
	const token = "swordfish"
	mcp := driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: token}
	for _, c := range []struct {
		part adapter.Part
		args string // after the program's own arguments
		vars bool
	}{
		{
			adapter.Part{Command: []string{"/usr/bin/claude"}, MCP: mcp},
			`--permission-mode default --allowedTools mcp__fairlead --mcp-config {"mcpServers":{"fairlead":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer ${FAIRLEAD_MCP_TOKEN}"}}}}`, true,
		},
		{adapter.Part{Command: []string{"/usr/bin/qwen"}, MCP: mcp}, `--approval-mode default --exclude-tools agent`, false},
		{
			adapter.Part{Command: []string{"/usr/bin/qwen"}, MCP: driver.MCP{URL: mcp.URL, Token: token, Stdio: []string{"/f", "mcp"}}},
			`--approval-mode default --exclude-tools agent --allowed-tools mcp__fairlead --mcp-config {"mcpServers":{"fairlead":{"command":"/f","args":["mcp"]}}}`, true,
		},
		{
			adapter.Part{Command: []string{"/usr/bin/claude"}, MCP: driver.MCP{Token: token, Stdio: []string{"/f", "mcp"}}},
			`--permission-mode default --allowedTools mcp__fairlead --mcp-config {"mcpServers":{"fairlead":{"type":"stdio","command":"/f","args":["mcp"],"env":{"FAIRLEAD_MCP_TOKEN":"${FAIRLEAD_MCP_TOKEN}"}}}}`, true,
		}, // on another host
		{
			adapter.Part{Command: []string{"/usr/bin/node", "/x/qwen.js", "--debug"}, Mode: "yolo", Model: "m", Resume: "r"},
			`--approval-mode yolo --model m --resume=r`, false,
		},
		{adapter.Part{Command: []string{"/usr/bin/qwen"}, Mode: "plan"}, `--approval-mode plan --exclude-tools agent`, false},
		{adapter.Part{Command: []string{"/usr/bin/qwen"}, Mode: "auto-edit"}, `--approval-mode auto-edit`, false},
		{adapter.Part{Command: []string{"/usr/bin/claude-next"}, MCP: driver.MCP{URL: mcp.URL}}, `--permission-mode default`, false},
	} {
		p := known(c.part.Command)
		got := p.command(c.part)
		line := strings.Join(got.Argv, " ")
		if want := strings.Join(append(append(c.part.Command, p.args...), c.args), " "); line != want {
			t.Errorf("%s\nwant\n%s", line, want)
		}
		if strings.Contains(line, token) {
			t.Error("the token is in the arguments, where every user of the machine reads it")
		}
		if told := strings.Contains(strings.Join(got.Env, " "), "FAIRLEAD_MCP_TOKEN="+token); told != c.vars {
			t.Errorf("%s: the token is in the environment: %t", line, told)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		command []string
		says    string
	}{
		{nil, "command claude is not in the PATH"},
		{[]string{"claude", "--yolo"}, "use `mode: yolo`"},
		{[]string{"claude", "--output-format=json"}, "remove it"},
		{[]string{"no-such-program-anywhere"}, "PATH"},
		{[]string{"/bin/sh", "--add-dir", "/x"}, ""},
	} {
		err := Driver{}.Check(driver.Agent{Name: "coder", Command: c.command, Workspace: t.TempDir()})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.command, err, c.says)
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
	good := script("claude",
		`case "$1" in --version) echo "2.1.287 (Claude Code)";; *) echo "--input-format --output-format --permission-mode --resume --mcp-config";; esac`)
	odd := script("qwen", `echo what`)
	dead := script("claude-dead", `echo "no node here" >&2; exit 127`)
	got, err := Driver{}.Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{good}, Workspace: dir})
	want := driver.Probed{
		Program: "claude 2.1.287", Path: good, Speaks: "stream-json", Resumes: true, MCP: []string{"stdio", "http"},
		Enforced: "asks before it writes and runs, except for what its own rules allow",
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	got, err = Driver{}.Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{odd}, Mode: "whatever", Workspace: dir})
	if err != nil || len(got.Warnings) != 7 {
		t.Errorf("%v, %d warnings: %q", err, len(got.Warnings), got.Warnings)
	}
	if _, err = (Driver{}).Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{dead}, Workspace: dir}); err == nil ||
		!strings.Contains(err.Error(), "no node here") {
		t.Errorf("a program that does not start: %v", err)
	}
}

// A prompt with images has them behind its text; one without is plain text, which every program knows.
func TestPromptImages(t *testing.T) {
	with, err := json.Marshal(prompt("look", []adapter.Image{{Type: "image/png", Data: []byte("pixels")}}, "7"))
	without, err2 := json.Marshal(prompt("look", nil, "7"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	const head = `{"message":{"content":`
	const foot = `,"role":"user"},"parent_tool_use_id":null,"session_id":"","type":"user","uuid":"7"}`
	if d := cmp.Diff(head+
		`[{"text":"look","type":"text"},{"source":{"data":"cGl4ZWxz","media_type":"image/png","type":"base64"},"type":"image"}]`+foot,
		string(with)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(head+`"look"`+foot, string(without)); d != "" {
		t.Error(d)
	}
}
