package claude_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	resumed = "0b7c5a8e-5d1e-4f6e-9a51-7c2a7e0f1c11" // conversation ID in recordings
	tools   = "__tools"                              // runs this test binary as a stdio tool server
)

// scene is a conversation with a real program.
type scene struct {
	name   string
	prompt string // REPO is the workspace
	more   []string
	allow  []string // tools that are allowed; others are denied
	cancel string   // cancel after this text
	steer  string   // sent during the first call, or with the prompt if there is none
	talk   bool
	resume string // conversation ID; "last" is the previous conversation
	tools  bool
	again  int  // earlier attempts of the session; Claude Code ignores a prompt whose ID its conversation has already
	long   bool // only in the long form, and for recording

	full   int // percent of the model's context that is said to be filled at the end
	reason string
	says   []string // text of the agent
	wrote  []string // files
	not    []string // files that must not exist
}

var scenes = []scene{
	{
		name:   "qwen-asks",
		prompt: "do: think a plan\ndo: write REPO/a.txt one\ndo: bash echo two > b.txt\ndo: say I have done it",
		allow:  []string{"Write"}, reason: "completed", says: []string{"I have done it"}, wrote: []string{"a.txt"}, not: []string{"b.txt"},
	},
	{
		name: "qwen-talk-two", prompt: "do: say one", more: []string{"do: say two"}, talk: true, reason: "completed",
		says: []string{"one", "two"}, long: true,
	},
	{name: "qwen-resume", prompt: "do: say again", resume: "last", reason: "completed", says: []string{"again"}, long: true},
	{name: "qwen-resume-unknown", prompt: "do: say never", resume: resumed, reason: "not_resumed", long: true},
	{name: "qwen-cancel", prompt: "do: hold I begin", cancel: "I begin", reason: "cancelled", long: true},
	{name: "qwen-error", prompt: "do: error 400", reason: "failed", long: true},
	{
		name:   "qwen-tools-bridge",
		prompt: "do: tool tool_search {\"query\":\"select:mcp__fairlead__say\"}\ndo: mcp say {\"text\":\"hello team\"}\ndo: say told",
		tools:  true, reason: "completed", says: []string{"told"}, long: true,
	},
}

// TestLive holds conversations with a real program and a scripted model. FAIRLEAD_RECORD=1 records
// them as the dialogues that TestDialogues plays.
func TestLive(t *testing.T) {
	t.Parallel()
	record := os.Getenv("FAIRLEAD_RECORD") != ""
	model := scriptmodel.Start(t)
	program := livetest.QwenStream(t, model)
	repo, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, s := range scenes {
		if s.long && !record && !testsize.Long() {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), s.name+".jsonl")
			if record && s.reason != "not_resumed" { // the reason is on standard error, which is not recorded
				file = filepath.Join("testdata", "dialogues", s.name+".jsonl")
			}
			last = s.play(t, program, repo, file, last)
		})
	}
	if tried := program.Way.Tried(); len(tried) > 0 {
		t.Errorf("a connection outside was attempted: %q", tried)
	}
}

// TestLiveClaude holds conversations with Claude Code itself. They are not recorded: the dialogues of the other
// program have the same form.
func TestLiveClaude(t *testing.T) {
	t.Parallel()
	model := scriptmodel.Start(t)
	program := livetest.Claude(t, model)
	repo, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, s := range []scene{
		{
			name:   "asks",
			prompt: "do: think a plan\ndo: write REPO/a.txt one\ndo: bash echo two > b.txt\ndo: say I have done it",
			allow:  []string{"Write"}, reason: "completed", says: []string{"I have done it"}, wrote: []string{"a.txt"},
			not: []string{"b.txt"},
		},
		{name: "resume", prompt: "do: say again", resume: "last", again: 1, reason: "completed", says: []string{"again"}},
		{name: "resume-unknown", prompt: "do: say never", resume: resumed, reason: "not_resumed"},
		{name: "talk", prompt: "do: say one", more: []string{"do: say two"}, talk: true, reason: "completed", says: []string{"one", "two"}},
		{name: "cancel", prompt: "do: hold I begin", cancel: "I begin", reason: "cancelled"},
		{name: "error", prompt: "do: error 400", reason: "failed"},
		{
			name: "steer", prompt: "do: bash touch one\ndo: bash touch two\ndo: say now I end", allow: []string{"Bash"},
			steer: "use the v2 client", reason: "completed", says: []string{"now I end"}, wrote: []string{"one", "two"},
		},
		{name: "full", prompt: "do: usage 850000 10\ndo: say much", full: 85, reason: "completed", says: []string{"much"}},
		{name: "steer-late", prompt: "do: say only words", steer: "use the v3 client", reason: "completed", says: []string{"only words"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			last = s.play(t, program, repo, filepath.Join(t.TempDir(), s.name+".jsonl"), last)
		})
	}
	readAt := func(text, answer string) bool { // the model was asked with the text and gave this answer
		return slices.ContainsFunc(model.Requests(), func(r scriptmodel.Request) bool {
			return strings.Contains(r.Answer, answer) &&
				slices.ContainsFunc(r.Turns, func(turn scriptmodel.Turn) bool { return strings.Contains(turn.Text, text) })
		})
	}
	if !readAt("use the v2 client", "touch two") {
		t.Error("the model did not get the text during its answer")
	}
	if !readAt("use the v3 client", "only words") {
		t.Error("the model did not get the text that came too late for the answer")
	}
	if tried := program.Way.Tried(); len(tried) > 0 {
		t.Errorf("a connection outside was attempted: %q", tried)
	}
}

func (s scene) play(t *testing.T, program livetest.Program, repo, file, last string) (conversation string) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	part := adapter.Part{
		Kind: "claude", Name: "coder", Session: "coder-17", Attempt: 1 + s.again, What: driver.Work,
		Command: program.Command, Dir: repo, Resume: s.resume,
	}
	if s.talk {
		part.What = driver.Turn
	}
	if s.resume == "last" {
		part.Resume = last
	}
	if s.tools {
		part.MCP = driver.MCP{URL: "http://127.0.0.1:7466/mcp", Token: "a-secret-token", Stdio: []string{me, tools}}
	}
	var said, read []string
	more := s.more
	steer := func() (orders []speech.Order) {
		if s.steer != "" {
			orders = append(orders, speech.Order{Type: speech.OrderSteer, ID: "7", Text: s.steer})
		}
		s.steer = ""
		return orders
	}
	steers := s.steer
	tell := func(e driver.Fact) (orders []speech.Order) {
		switch {
		case e.Kind == "":
			orders = append(orders, speech.Order{Type: speech.OrderStart, Text: strings.ReplaceAll(s.prompt, "REPO", repo)})
			if len(s.wrote) == 0 {
				orders = append(orders, steer()...)
			}
		case e.Kind == driver.TextRead:
			read = append(read, e.ID+" "+e.Text)
		case e.Kind == driver.PermissionAsked && slices.Contains(s.allow, e.Tool):
			orders = append(steer(), speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "allow"})
		case e.Kind == driver.PermissionAsked:
			orders = append(orders, speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "deny"})
		case e.Kind == driver.Listening && len(more) > 0:
			orders = append(orders, speech.Order{Type: speech.OrderPrompt, Text: more[0]})
			more = more[1:]
		case e.Kind == driver.Listening:
			orders = append(orders, speech.Order{})
		case e.Kind == driver.ConversationNamed:
			conversation = e.Conversation.ID
		case e.Kind == driver.Said && e.Tool == "":
			if said = append(said, e.Text); s.cancel != "" && strings.Contains(strings.Join(said, ""), s.cancel) {
				orders, s.cancel = append(orders, speech.Order{Type: speech.OrderCancel}), ""
			}
		}
		return orders
	}
	stop := drivertest.Record(
		t, claude.Driver{}, part, append(livetest.Bare(program.Home), program.Env...), file, tell,
		program.Command[0], "/usr/bin/qwen", me, "/usr/bin/fairlead", tools, "mcp", program.Home, "/home/user",
	)
	if steers != "" && !slices.Equal(read, []string{"7 " + steers}) {
		t.Errorf("the texts %q were read", read)
	}
	if s.full > 0 && stop.ContextPercent != s.full {
		t.Errorf("context %d %% full, want %d", stop.ContextPercent, s.full)
	}
	if stop.Reason != s.reason {
		t.Errorf("ended with %+v, want %s", stop, s.reason)
	}
	for _, words := range s.says {
		if !strings.Contains(strings.Join(said, ""), words) {
			t.Errorf("it said %q, want %q", said, words)
		}
	}
	for _, name := range s.wrote {
		if _, err := os.Stat(filepath.Join(repo, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range s.not {
		if _, err := os.Stat(filepath.Join(repo, name)); err == nil {
			t.Errorf("%s was written without permission", name)
		}
	}
	if s.resume == "last" {
		rename(t, file, last, resumed)
	}
	return conversation
}

// rename replaces a conversation's ID in a recording.
func rename(t *testing.T, file, from, to string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), from, to)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve runs a server with one tool.
func serve() {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&m) != nil {
			return
		}
		var result any = map[string]any{}
		switch m.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "team", "version": "1"},
			}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{
				"name": "say", "description": "says",
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}},
			}}}
		case "tools/call":
			result = map[string]any{"content": []any{map[string]any{
				"type": "text",
				"text": "said with " + os.Getenv(adapter.VariableMCPToken),
			}}}
		}
		if m.ID != nil {
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		}
	}
}
