package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/network"
)

// folder creates a folder with the given files and returns its resolved path.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// contract is the file format that is promised to other programs.
const contract = `version: 1
team:
  lead: julian
  size: 8
  limits: {session: 2h, cost_per_day_usd: 50}
agents:
  coder:
    description: Writes and changes code
    driver: exec
    command: [python3, agent.py]
    workspace: .
    loop: fairlead
    env: {API_KEY: ${API_KEY}}
    session_prompt: Continue the work in PLAN.md.
    cleanup_prompt: Tidy up; no features.
    cleanup_every: 0
    turn_timeout: 60s
  reviewer:
    driver: script
    script: reviewer.script.yaml
channels:
  reviews: {agents: [coder, reviewer], lead: julian, humanInterruptMode: inject, maxRounds: 3, waitTimeoutSeconds: 300}
turnConfig: {defaultTimeoutSeconds: 60, humanInterruptMode: inject, announceTimeouts: true, announceDisconnects: true, autoDetectTurnEnd: false, autoDetectSilenceSeconds: 10}
notify: {webhook: ${NOTIFY_URL}}
listen: 127.0.0.1:7466
`

// An agent that is only described in .claude/agents gets no turns in a channel.
func TestChannelMembers(t *testing.T) {
	dir := folder(t, map[string]string{
		FileName:                      "version: 1\nagents: {coder: {command: [sh]}}\nchannels: {reviews: {agents: [described, coder], lead: described}}\n",
		".claude/agents/described.md": "",
	})
	cfg, err := Load(dir, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Channels[0].Agents; !slices.Equal(got, []string{"coder"}) {
		t.Errorf("in the channel: %q", got)
	}
	want := []Fault{
		{
			File: FileName, Line: 3, Column: 31, Path: "channels.reviews.agents[0]",
			Text: `"described" is described in .claude/agents and is not an agent of this file, so it gets no turn; to give it some, add it under agents`,
		},
		{
			File: FileName, Line: 3, Column: 56, Path: "channels.reviews.lead",
			Text: `"described" is not an agent of this file, so the agent that has the turn answers a person who interrupts`,
		},
	}
	if !slices.Equal(cfg.Notes, want) {
		t.Errorf("notes:\n%v\nwant\n%v", cfg.Notes, want)
	}
}

func TestContract(t *testing.T) {
	dir := folder(t, map[string]string{FileName: contract, "reviewer.script.yaml": "sessions: []\n"})
	vars := environment(map[string]string{"API_KEY": "k", "NOTIFY_URL": "https://example.org/x"})
	cfg, err := Load(dir, vars)
	if err != nil {
		t.Fatal(err)
	}
	coder, _ := cfg.Agent("coder")
	if got, err := coder.Env.Resolve(vars); err != nil || !slices.Equal(got, []string{"API_KEY=k"}) {
		t.Errorf("environment: %q, %v", got, err)
	}
	if got, err := cfg.Notify.Targets[0].Address(vars); err != nil || got != "https://example.org/x" {
		t.Errorf("webhook: %q, %v", got, err)
	}
	sum, err := Sum(dir)
	if err != nil || len(sum) != 16 || sum != cfg.Sum {
		t.Errorf("its identity is %q, and %q, %v", sum, cfg.Sum, err)
	}
	want := &Config{
		File: FileName, Sum: sum, Dir: dir, Version: 1,
		Team: Team{
			Lead: "julian", Size: 8, StatusTimeout: 30 * time.Second, HatchTimeout: 5 * time.Minute,
			Limits: Limits{Session: 2 * time.Hour, CostPerDayUSD: 50, OnOutput: OutputWaits}, DiskBytes: 20e9,
		},
		Agents: []Agent{
			{
				Name: "coder", Description: "Writes and changes code", Driver: DriverExec,
				Command: []string{"python3", "agent.py"}, Workspace: dir, Loop: LoopFairlead,
				Env:           Env{{"API_KEY", Secret{raw: "${API_KEY}"}}},
				SessionPrompt: "Continue the work in PLAN.md.", CleanupPrompt: "Tidy up; no features.",
				TurnTimeout: time.Minute, Seat: NoSeat, Limits: Limits{Session: 2 * time.Hour, OnOutput: OutputWaits},
				FailuresMax: 5, Instances: 3, Backoff: Backoff{time.Second, time.Minute}, Grace: 10 * time.Second,
				ReportWithin: 5 * time.Minute,
				Resume:       ResumeInterrupted, OnLost: "restart", MCP: true,
				Permissions: Permissions{Timeout: 30 * time.Minute, Otherwise: OtherwiseDeny},
				Sandbox:     AgentSandbox{Mode: SandboxOff}, Network: network.Setting{Model: true, Packages: true},
			},
			{
				Name: "reviewer", Driver: DriverScript, Script: filepath.Join(dir, "reviewer.script.yaml"),
				Workspace: filepath.Join(dir, "reviewer"), Loop: LoopFairlead, TurnTimeout: time.Minute,
				Seat: NoSeat, Limits: Limits{Session: 2 * time.Hour, OnOutput: OutputWaits}, FailuresMax: 5, Instances: 3,
				Backoff: Backoff{time.Second, time.Minute}, Grace: 10 * time.Second, ReportWithin: 5 * time.Minute,
				Resume: ResumeInterrupted, OnLost: "restart", MCP: true,
				Permissions: Permissions{Timeout: 30 * time.Minute, Otherwise: OtherwiseDeny},
				Sandbox:     AgentSandbox{Mode: SandboxOff}, Network: network.Setting{Model: true, Packages: true},
			},
		},
		Channels: []Channel{{
			Name: "reviews", Agents: []string{"coder", "reviewer"}, Lead: "julian",
			HumanInterruptMode: Inject, MaxRounds: 3, WaitTimeout: 5 * time.Minute,
		}},
		Dispatch: Dispatch{Sandbox: AgentSandbox{Mode: SandboxAuto}, Commits: true},
		Tasks: Tasks{
			Land: "squash", Branch: TaskBranch, Timeout: 30 * time.Minute, DiskBytes: 20e9, Remote: "origin",
			PR: PullRequests{PollDefault, "once"}, Most: 3, ChecksIn: "checkout", Network: network.Setting{Packages: true},
		},
		TurnConfig: TurnConfig{
			DefaultTimeoutSeconds: 60, HumanInterruptMode: Inject, AnnounceTimeouts: true,
			AnnounceDisconnects: true, AutoDetectSilenceSeconds: 10,
		},
		Notify: Notify{Webhook: Secret{raw: "${NOTIFY_URL}"}, Targets: []NotifyTarget{{Name: "webhook", URL: Secret{raw: "${NOTIFY_URL}"}}}},
		Listen: "127.0.0.1:7466",
		Notes: []Fault{
			{File: FileName, Line: 3, Column: 9, Path: "team.lead", Text: `"julian" is not an agent of this file, so Fairlead does not start it`},
			{
				File: FileName, Line: 22, Column: 46, Path: "channels.reviews.lead",
				Text: `"julian" is not an agent of this file, so the agent that has the turn answers a person who interrupts`,
			},
		},
	}
	if diff := cmp.Diff(want, cfg, cmp.AllowUnexported(Secret{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestStarterLoads(t *testing.T) {
	dir := folder(t, nil)
	for _, kind := range StarterKinds() {
		if err := os.WriteFile(filepath.Join(dir, string(kind)), Starter(kind), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := Load(dir, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Agents) != 1 || cfg.Agents[0].Driver != DriverScript || len(cfg.Notes) != 0 {
		t.Errorf("the starter gives %+v, notes %v", cfg.Agents, cfg.Notes)
	}
}

// The constants are the defaults of the tags.
func TestDefaults(t *testing.T) {
	cfg, err := Parse(FileName, folder(t, nil), []byte("version: 1\nagents: {a: {command: [x]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != ListenDefault || cfg.Agents[0].Grace != GraceDefault || cfg.Tasks.PR.Poll != PollDefault ||
		cfg.Tasks.Branch != TaskBranch {
		t.Errorf("the defaults are %+v", cfg)
	}
}
