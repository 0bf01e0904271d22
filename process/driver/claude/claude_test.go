package claude_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the time zones of the recordings, on every machine

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
)

const pretend = "__pretend" // runs this test binary as a program that speaks Claude Code's protocol

func TestMain(m *testing.M) {
	time.Local = time.UTC
	adapter.Intercept(claude.Driver{})
	if len(os.Args) > 1 && os.Args[1] == pretend {
		play()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == tools {
		serve()
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every program here would wait a second at its end
	os.Exit(m.Run())
}

// play is a program that repeats each prompt, and asks for permission if the prompt contains
// "please".
func play() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	for in.Scan() {
		var m struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
			Message   struct{ Content string }
			Response  struct {
				Response struct{ Behavior string }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			os.Exit(3)
		}
		switch m.Type {
		case "control_request":
			say(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`, m.RequestID)
			continue
		case "control_response":
			m.Message.Content = m.Response.Response.Behavior
		default:
			say(`{"type":"system","subtype":"init","session_id":"c1","model":"m1","permissionMode":"default","claude_code_version":"0.0.1"}`)
			if m.Message.Content == "flood" {
				flood()
				continue
			}
			if strings.Contains(m.Message.Content, "please") {
				say(`{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","tool_use_id":"t1","input":{"command":"date"}}}`)
				continue
			}
		}
		say(`{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":%q}],"usage":{"input_tokens":7,"output_tokens":2}}}`,
			m.Message.Content)
		say(`{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":3}}`)
	}
}

// TestDialogues plays the output of real programs (qwen-*), and output according to Claude Code's
// documentation (claude-*).
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogues/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no dialogues", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		part := adapter.Part{Command: []string{"/usr/bin/" + name[:strings.Index(name, "-")]}, What: driver.Work}
		if strings.Contains(name, "-talk-") {
			part.What = driver.Turn
		}
		if strings.Contains(name, "-resume") {
			part.Resume = resumed
		}
		if strings.Contains(name, "-tools") {
			part.MCP = driver.MCP{URL: "http://127.0.0.1:7466/mcp", Token: "a-secret-token"}
			if strings.Contains(name, "-bridge") {
				part.MCP.Stdio = []string{"/usr/bin/fairlead", "mcp"}
			}
		}
		drivertest.Dialogue(t, claude.Driver{}, part, file)
	}
}

func TestDriver(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()) // the default program may be installed on this machine
	agent := driver.Agent{Name: "coder", Command: []string{me, pretend}}
	named := `conversation_named `
	drivertest.Run(
		t, claude.Driver{},
		drivertest.Case{
			Name: "answers", Agent: agent, Session: driver.Session{ID: "coder-1", Kind: driver.Work, Prompt: "hello", Attempt: 1},
			Facts: []string{named, "said hello", "usage_reported ", "usage_reported ", "stopped completed"}, OK: true,
		},
		drivertest.Case{
			Name: "asks", Agent: agent, Session: driver.Session{ID: "coder-2", Kind: driver.Work, Prompt: "the date please", Attempt: 1},
			OK: true,
			Tell: func(t *testing.T, p *drivertest.Process, c driver.Conversation, f driver.Fact) {
				if f.Kind == driver.PermissionAsked {
					if err := c.Answer(t.Context(), f.Ask.ID, "allow"); err != nil {
						t.Error(err)
					}
				}
			},
			Facts: []string{
				named, "tool_called date", "permission_asked Bash date", "permission_answered allow", "said allow",
				"usage_reported ", "usage_reported ", "stopped completed",
			},
		},
	)
}
