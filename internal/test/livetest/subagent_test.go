package livetest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// The outcomes of a call of a subagent.
const (
	asked  = "asked"  // done after a yes, not done after a no
	free   = "free"   // done without a question
	denied = "denied" // not done and not asked for; the model reads why
)

// TestLiveSubagents checks what a subagent may do under the rules that Fairlead sets: no more without a
// question than its agent, and no call is waited for without a question.
func TestLiveSubagents(t *testing.T) {
	const role = "---\nname: helper\ndescription: helps with all that there is to do here\napprovalMode: yolo\n---\nYou do what you are told.\n"
	type row struct {
		program, way, mode        string
		more                      []string // arguments of the command
		role                      string   // a file of the project that defines a subagent, and its text is role
		runs, writes, reads, away string   // away: runs a command that writes outside
		says                      string   // what the model reads where a call is denied
	}
	for name, is := range map[string]row{
		"opencode": {runs: denied, writes: denied, reads: free, says: "a rule which prevents you from using this specific tool call"},
		"qwen":     {runs: denied, writes: denied, reads: denied, says: `"agent"`},
		"qwen, plan": {
			program: "qwen", way: "qwen", mode: "plan", role: ".qwen/agents/helper.md", runs: denied, writes: denied, reads: denied,
			says: `"agent"`,
		},
		"qwen, a role of the project": {
			program: "qwen", way: "qwen", role: ".qwen/agents/helper.md", runs: denied, writes: denied, reads: denied, says: `"agent"`,
		},
		"qwen, auto-edit":          {program: "qwen", way: "qwen", mode: "auto-edit", runs: asked, writes: free, reads: free},
		"qwen-stream":              {way: "qwen", runs: denied, writes: denied, reads: denied, says: `"agent"`},
		"claude":                   {runs: asked, writes: asked, reads: free},
		"claude in the background": {program: "claude", runs: asked, writes: asked, reads: free},
		"codex":                    {runs: free, writes: free, reads: free, away: denied, says: "Read-only file system"},
		"codex, read-only": {
			program: "codex", way: "codex", mode: "read-only", runs: denied, writes: denied, reads: free, away: denied,
			says: "Read-only file system",
		},
		"codex with names": {
			program: "codex", more: []string{"-c", "features.multi_agent_v2=true"}, runs: free, writes: free, reads: free, away: denied,
			says: "Read-only file system",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if is.program == "" {
				is.program = name
			}
			if is.way == "" {
				is.way = name
			}
			s := begin(t, livetest.Programs()[is.program])
			s.agent.Mode, s.agent.Command = is.mode, append(s.agent.Command, is.more...)
			way := livetest.Ways()[is.way]
			if is.role != "" {
				way.Args["subagent_type"] = "helper"
				if err := os.MkdirAll(filepath.Dir(s.path(is.role)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(s.path(is.role), []byte(role), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(s.path("read.txt"), []byte("ocarina\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s.subagent(way, is.runs, "do: bash echo ran > "+s.path("ran.txt"), s.path("ran.txt"), is.says)
			s.subagent(way, is.writes, "do: write "+s.path("written.txt")+" text", s.path("written.txt"), is.says)
			s.subagent(way, is.reads, "do: read "+s.path("read.txt"), "", is.says)
			if is.away != "" {
				const away = "/var/fairlead-subagent.txt"
				s.subagent(way, is.away, "do: bash echo ran > "+away, away, is.says)
				s.subagent(way, is.away,
					`do: tool exec_command {"cmd":"echo ran > `+away+
						`","sandbox_permissions":"require_escalated","justification":"it is outside"}`,
					away, "you cannot ask for escalated permissions")
			}
		})
	}
}

// subagent checks the outcome of one item that a subagent does; file is written by it.
func (s *story) subagent(way livetest.Subagents, want, does, file, says string) {
	s.Helper()
	if want == asked {
		s.attempt(way, want, does, file, says, "reject_once")
	}
	s.attempt(way, want, does, file, says, "allow_once")
}

func (s *story) attempt(way livetest.Subagents, want, does, file, says, answer string) {
	s.Helper()
	before := len(s.model.Requests())
	k := s.start(driver.Work, "", way.Start(does)+"do: say it is back")
	questions := 0
	var end driver.Stop
	for end.Reason == "" {
		f := k.until("it asks or ends", func(f driver.Fact) bool { return f.Kind == driver.PermissionAsked || f.Kind == driver.Stopped })
		if f.Kind == driver.Stopped {
			end = *f.Stop
			continue
		}
		if f.Tool == way.Tool { // whether it may start one
			k.answer(f, "allow_once")
			continue
		}
		questions++
		k.answer(f, answer)
	}
	k.process.Wait(s)
	did := s.sawSince(before, "ocarina")
	if file != "" {
		_, err := os.Stat(file)
		did = err == nil
	}
	if does := want == free || want == asked && answer == "allow_once"; did != does || (questions > 0) != (want == asked) ||
		want == denied && !s.sawSince(before, says) {
		s.Errorf("it should be %s: done %t, %d questions", want, did, questions)
	}
	if !end.OK || !strings.Contains(s.asked(), "say it is back") {
		s.Errorf("the session ended with %+v", end)
	}
	if s.Failed() {
		s.Fatalf("the subagent's list: %s, answers: %s; events:\n%s\nrequests:\n%s", does, answer, strings.Join(k.heard, "\n"), s.asked())
	}
}

// sawSince reports whether the model received a text as the result of a tool, after some requests.
func (s *story) sawSince(before int, text string) bool {
	for _, r := range s.model.Requests()[before:] {
		for _, turn := range r.Turns {
			if turn.Role == "tool" && strings.Contains(turn.Text, text) {
				return true
			}
		}
	}
	return false
}
