package codex_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const token = "a-secret-token"

// scene is a conversation with codex.
type scene struct {
	name   string
	prompt string
	more   []string
	cancel string // cancel after this call
	talk   bool
	resume string // conversation ID; "last" is the previous conversation
	mode   string
	tools  bool
	long   bool // only in the long form, and for recording

	reason string
	says   []string // text of the agent
	used   int64    // input tokens
	wrote  []string // files
	not    []string // files that must not exist
}

var scenes = []scene{
	{
		name:   "codex-talk-writes",
		prompt: "do: think a plan\ndo: bash echo one > a.txt\ndo: bash echo two > /var/fairlead-b.txt\ndo: say I have done it",
		more:   []string{"do: say and again"}, talk: true,
		reason: "completed", says: []string{"I have done it", "and again"}, used: 400, wrote: []string{"a.txt"},
		not: []string{"/var/fairlead-b.txt"},
	},
	{
		name: "codex-resume", prompt: "do: say once more", resume: "last", reason: "completed", says: []string{"once more"}, used: 100,
		long: true,
	},
	{name: "codex-resume-unknown", prompt: "do: say never", resume: resumed, reason: "not_resumed", long: true},
	{name: "codex-cancel", prompt: "do: bash sleep 60", cancel: "sleep 60", reason: "cancelled", long: true},
	{name: "codex-error", prompt: "do: error 500", reason: "failed", long: true},
	{name: "codex-limited", prompt: "do: error 429 30", reason: "rate_limited", long: true},
	{
		name: "codex-readonly", prompt: "do: bash echo three > c.txt\ndo: say tried", mode: "read-only", reason: "completed", used: 200,
		not: []string{"c.txt"}, long: true,
	},
	{
		name:   "codex-patch",
		prompt: "do: tool exec_command {\"cmd\":\"apply_patch <<'EOF'\\n*** Begin Patch\\n*** Add File: p.txt\\n+hello\\n*** Update File: a.txt\\n@@\\n-one\\n+two\\n*** End Patch\\nEOF\"}\ndo: say patched",
		reason: "completed", used: 200, wrote: []string{"p.txt"}, long: true,
	},
	{
		name: "codex-tools", prompt: "do: mcp say {\"text\":\"hello team\"}\ndo: say told", tools: true, reason: "completed",
		says: []string{"told"}, used: 200, long: true,
	},
}

// TestLive holds conversations with codex and a scripted model. FAIRLEAD_RECORD=1 records them as
// the dialogues that TestDialogues plays.
func TestLive(t *testing.T) {
	t.Parallel()
	record := os.Getenv("FAIRLEAD_RECORD") != ""
	model := scriptmodel.Start(t)
	program := livetest.Codex(t, model)
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
		t.Logf("a connection outside was attempted: %q", tried)
	}
}

func (s scene) play(t *testing.T, program livetest.Program, repo, file, last string) (conversation string) {
	part := adapter.Part{
		Kind: "codex", Name: "coder", Session: "coder-17", Attempt: 1, What: driver.Work, Command: program.Command,
		Dir: repo, Resume: s.resume, Mode: s.mode,
	}
	if s.talk {
		part.What = driver.Turn
	}
	if s.resume == "last" {
		part.Resume = last
	}
	team := "http://nobody"
	if s.tools {
		team = serve(t)
		part.MCP = driver.MCP{URL: team + "/mcp", Token: token}
	}
	var said []string
	var used int64
	more := s.more
	tell := func(e driver.Fact) (orders []speech.Order) {
		switch e.Kind {
		case "":
			orders = append(orders, speech.Order{Type: speech.OrderStart, Text: s.prompt})
		case driver.Listening:
			if len(more) == 0 {
				return []speech.Order{{}}
			}
			orders = append(orders, speech.Order{Type: speech.OrderPrompt, Text: more[0]})
			more = more[1:]
		case driver.ConversationNamed:
			conversation = e.Conversation.ID
		case driver.UsageReported:
			used += e.InputTokens
		case driver.ToolCalled:
			if s.cancel != "" && strings.Contains(e.Text, s.cancel) {
				orders = append(orders, speech.Order{Type: speech.OrderCancel})
			}
		case driver.Said:
			if e.Tool == "" {
				said = append(said, e.Text)
			}
		}
		return orders
	}
	stop := drivertest.Record(
		t, codex.Driver{}, part, append(livetest.Bare(program.Home), program.Env...), file, tell,
		program.Command[0], "/usr/bin/codex", program.Home, "/home/user", team, "http://127.0.0.1:7466",
	)
	if stop.Reason != s.reason {
		t.Errorf("ended with %+v, want %s", stop, s.reason)
	}
	if used != s.used {
		t.Errorf("%d input tokens were reported, want %d", used, s.used)
	}
	for _, words := range s.says {
		if !strings.Contains(strings.Join(said, "\n"), words) {
			t.Errorf("it said %q, want %q", said, words)
		}
	}
	for _, name := range s.wrote {
		if _, err := os.Stat(filepath.Join(repo, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range s.not {
		if !filepath.IsAbs(name) {
			name = filepath.Join(repo, name)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was written although the sandbox should deny it", name)
		}
	}
	tidy(t, file, s.resume == "last", last)
	return conversation
}

// tidy gives a resumed conversation the ID of the recordings, and moves the exit of a process after
// its last output, because the exit may be noticed first.
func tidy(t *testing.T, file string, rename bool, id string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
	for i := 0; i+1 < len(lines); i++ {
		if strings.Contains(lines[i], `"dir":"exit"`) &&
			(strings.Contains(lines[i+1], `"dir":"print"`) || strings.Contains(lines[i+1], `"dir":"recv"`)) {
			lines[i], lines[i+1] = lines[i+1], lines[i]
		}
	}
	text := strings.Join(lines, "") + "\n"
	if rename {
		text = strings.ReplaceAll(text, id, resumed)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve is a server with one tool. It fails the test if a request comes without the token.
func serve(t *testing.T) (url string) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case r.Header.Get("Authorization") != "Bearer "+token:
			t.Errorf("the request has the token %q", r.Header.Get("Authorization"))
		case json.NewDecoder(r.Body).Decode(&m) != nil:
			t.Error("a request to the tools is not JSON")
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"team","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"say","description":"says","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"said"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(web.Close)
	return web.URL
}
