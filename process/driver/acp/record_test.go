package acp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/livetest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// This variable enables recording: the test runs every conversation of recordings with the real
// programs (package livetest says how to get them) and rewrites testdata/dialogues. Then `UPDATE=1
// go test ./process/driver/acp` renews the golden events.
const recordVariable = "FAIRLEAD_RECORD"

// recordings are conversations with real programs and a scripted model that does what the prompt
// says.
var recordings = map[string]struct {
	what   driver.Kind
	prompt string
	kind   string   // kind of the option that answers every question
	cancel bool     // at the first message
	then   []string // further prompts
	resume string   // name of the recording whose conversation is resumed
	mode   string
	tools  bool // the team's tools are offered
}{
	"allow":   {prompt: "do: think I should write.\ndo: write REPO/a.txt hello\ndo: bash echo ran > ran.txt", kind: "allow_once"},
	"deny":    {prompt: "do: write REPO/no.txt no\ndo: bash echo no > no2.txt", kind: "reject_once"},
	"cancel":  {prompt: "do: slow 400 50", cancel: true},
	"error":   {prompt: "do: error 400"},
	"talk":    {what: driver.Turn, prompt: "do: say first words", then: []string{"do: read REPO/a.txt"}, kind: "allow_once"},
	"resume":  {what: driver.Turn, prompt: "do: say again", resume: "talk"},
	"outside": {prompt: "do: write OUTSIDE/b.txt b", kind: "reject_once"},
	"tools":   {prompt: "do: mcp set_status {\"text\":\"busy\"}", kind: "allow_once", tools: true},
}

// searching is added before the prompt for programs that show tools only after a search.
var searching = map[string]string{"qwen": "do: tool tool_search {\"query\":\"select:mcp__fairlead__set_status\"}\n"}

func TestRecord(t *testing.T) {
	if os.Getenv(recordVariable) == "" {
		t.Skip("set " + recordVariable + "=1 to record real programs again; it takes a minute or two")
	}
	all := []string{"allow", "deny", "cancel", "error", "talk", "resume", "outside", "tools"}
	for name, r := range map[string]struct {
		program func(testing.TB, *scriptmodel.Server) livetest.Program
		scenes  []string
	}{
		"opencode": {livetest.Opencode, all},
		"qwen":     {livetest.Qwen, all},
		"example":  {exampleAgent, []string{"deny", "cancel", "talk"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := r.program(t, scriptmodel.Start(t))
			conversations := make(map[string]string)
			for _, scene := range r.scenes {
				t.Run(scene, func(t *testing.T) { record(t, p, name, scene, conversations) })
			}
			for _, left := range p.Left() {
				t.Errorf("left over: %s", left)
			}
		})
	}
}

// exampleAgent is the example of the library that peer uses: it ignores the prompt and restarts its
// call numbers with each one.
func exampleAgent(t testing.TB, _ *scriptmodel.Server) livetest.Program {
	home := t.TempDir()
	file := filepath.Join(home, "example")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return livetest.Program{Name: "example", Driver: "acp", Home: home, Command: []string{file}}
}

func record(t *testing.T, p livetest.Program, name, scene string, conversations map[string]string) {
	r := recordings[scene]
	if r.what == "" {
		r.what = driver.Work
	}
	dir, outside := filepath.Join(p.Home, "repo"), filepath.Join(p.Home, "outside")
	for _, d := range []string{dir, outside} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	place := strings.NewReplacer("REPO", dir, "OUTSIDE", outside).Replace
	part := adapter.Part{
		Kind: "acp", Name: "coder", Session: "coder-17", What: r.what, Attempt: 1,
		Command: slices.Clone(p.Command), Dir: dir, Mode: r.mode, Resume: conversations[r.resume],
	}
	var replace []string
	if r.tools {
		r.prompt = searching[name] + r.prompt
		part.MCP = driver.MCP{URL: toolServer(t), Token: "a.token"}
		replace = append(replace, part.MCP.URL, "http://127.0.0.1:7466/mcp")
	}
	replace = append(replace, dir, "/work/repo", outside, "/work/outside", p.Home, "/home/someone", p.Home[1:], "home/someone",
		filepath.Dir(p.Command[0]), "/usr/bin", livetest.Bare(p.Home)[0], "PATH")
	cancelled := false
	tell := func(e driver.Fact) []speech.Order {
		switch {
		case e.Kind == "":
			return []speech.Order{{Type: speech.OrderStart, Text: place(r.prompt)}}
		case e.Kind == driver.ConversationNamed:
			conversations[scene] = e.Conversation.ID
		case e.Kind == driver.PermissionAsked:
			i := slices.IndexFunc(e.Options, func(o driver.Option) bool { return o.Kind == r.kind })
			if i < 0 {
				t.Errorf("no option of kind %q: %+v", r.kind, e.Options)
				return nil
			}
			return []speech.Order{{Type: speech.OrderAnswer, ID: e.ID, Option: e.Options[i].ID}}
		case e.Kind == driver.Said && r.cancel && e.Tool == "" && !cancelled:
			cancelled = true
			return []speech.Order{{Type: speech.OrderCancel}}
		case e.Kind == driver.Listening && len(r.then) > 0:
			next := r.then[0]
			r.then = r.then[1:]
			return []speech.Order{{Type: speech.OrderPrompt, Text: place(next)}}
		case e.Kind == driver.Listening:
			return []speech.Order{{}}
		}
		return nil
	}
	file := filepath.Join("testdata", "dialogues", name+"-"+scene+".jsonl")
	stop := drivertest.Record(t, Driver{}, part, append(livetest.Bare(p.Home), p.Env...), file, tell, replace...)
	t.Logf("%+v", stop)
}

// toolServer is an MCP server with one of the team's tools.
func toolServer(t *testing.T) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "fairlead", Version: "1"}, nil)
	type status struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "set_status", Description: "Say what you are doing."},
		func(context.Context, *mcp.CallToolRequest, status) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted"}}}, nil, nil
		})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(h.Close)
	return h.URL + "/mcp"
}
