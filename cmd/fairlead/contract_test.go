package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The shapes that programs outside rely on (DESIGN.md, Contracts): fields may be added,
// none may be renamed or change its kind.
func TestContracts(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada:\n    driver: exec\n    command: [sh, -c, 'echo hello; exec sleep 1000']\n    workspace: ada\n",
	})
	s.must("start", "ada", "--wait")
	var ps struct {
		Agents []struct {
			Name         string            `json:"name"`
			Driver       string            `json:"driver"`
			DesiredState string            `json:"desired_state"`
			CurrentState string            `json:"current_state"`
			Badge        string            `json:"badge"`
			Presence     *string           `json:"presence"`
			Turn         map[string]string `json:"turn"`
			Session      *struct {
				ID        string `json:"id"`
				PID       int    `json:"pid"`
				StartedAt string `json:"started_at"`
				Kind      string `json:"kind"`
			} `json:"session"`
			EvidenceAgeMS *int64 `json:"evidence_age_ms"`
		} `json:"agents"`
		Hold *bool `json:"hold"`
	}
	if err := json.Unmarshal([]byte(s.must("ps", "--json")), &ps); err != nil {
		t.Fatal(err)
	}
	if len(ps.Agents) != 1 || ps.Hold == nil {
		t.Fatalf("%+v", ps)
	}
	a := ps.Agents[0]
	if a.Name != "ada" || a.Driver != "exec" || a.DesiredState != "continuous" || a.CurrentState != "continuous" || a.Badge != "RUNNING" ||
		a.Presence == nil || a.Turn == nil || a.Session == nil || a.Session.ID != "ada-1" || a.Session.PID == 0 ||
		a.Session.Kind != "session" ||
		a.Session.StartedAt == "" || a.EvidenceAgeMS == nil {
		t.Errorf("ps: %+v", a)
	}
	for _, line := range strings.Split(strings.TrimSpace(s.must("events", "--json")), "\n") {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"seq", "time", "machine", "entity", "row", "from", "to", "trigger", "actor", "data"} {
			if _, ok := event[field]; !ok {
				t.Errorf("an event without %s: %s", field, line)
			}
		}
	}
	// X6: the log for programs that do not know the journal.
	for _, line := range s.lines(".fairlead/log/transitions.jsonl") {
		if !strings.HasPrefix(line, `{"timestamp":"`) || !strings.Contains(line, `,"event":"state_transition","agentId":"`) {
			t.Errorf("the seven fields do not come first: %s", line)
		}
	}
}

// The same of what programs are told about channels.
func TestChannelContracts(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, -c, 'cat; echo TURN_COMPLETE'], workspace: ada}\nchannels:\n  talk: {agents: [ada]}\n",
	})
	var said struct {
		MessageID string `json:"message_id"`
		State     string `json:"state"`
	}
	if err := json.Unmarshal([]byte(s.must("channel", "say", "talk", "hello", "--json", "--wait")), &said); err != nil ||
		said.MessageID != "talk/1" || said.State != "answered" {
		t.Errorf("say: %+v, %v", said, err)
	}
	var all struct {
		Channels []struct {
			Name     string    `json:"name"`
			Queue    *[]string `json:"queue"`
			Holder   *string   `json:"holder"`
			State    string    `json:"state"`
			Messages int       `json:"messages"`
		} `json:"channels"`
	}
	text := s.must("channel", "list", "--json")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Channels) != 1 || !strings.Contains(text, `"deadline":null`) {
		t.Fatalf("channels: %s", text)
	}
	c := all.Channels[0]
	if c.Name != "talk" || c.Queue == nil || c.Holder == nil || *c.Holder != "" || c.State != "PARKED" || c.Messages < 2 {
		t.Errorf("channels: %s", text)
	}
	for _, line := range s.lines(".fairlead/log/turns.jsonl") {
		if !strings.HasPrefix(line, `{"timestamp":"`) || !strings.Contains(line, `,"event":"state_transition","agentId":"ada","from":"`) ||
			!strings.Contains(line, `,"channel":"`) {
			t.Errorf("the seven fields do not come first: %s", line)
		}
	}
}

const loud = `sessions:
  - steps:
      - {emit: "one-and-twenty bytes.", times: 1000000}
      - emit: "\n"
      - emit: !!binary AAH//hsbYzEKgICA
      - say: that was all
`

// A line of 20 MiB and bytes that are not text are kept completely and shown, and no component fails on
// them.
func TestHostileOutput(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml":    "version: 1\nagents:\n  ada: {driver: script, script: loud.script.yaml, workspace: ada}\n",
		"loud.script.yaml": loud,
	})
	s.must("once", "ada", "--wait")
	spool, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "sessions", "ada-1", "spool"))
	if err != nil {
		t.Fatal(err)
	}
	if len(spool) < 20<<20 || !bytes.Contains(spool, []byte{0, 1, 0xff, 0xfe, 0x1b, 0x1b}) {
		t.Errorf("%d bytes were kept, and the binary ones are not among them", len(spool))
	}
	kept := sha256.Sum256(spool)
	whole := sha256.New()
	client := s.client()
	for from := int64(0); ; {
		part, err := client.RawOutput(context.Background(), "ada-1", from, 0)
		if err != nil {
			t.Fatal(err)
		}
		whole.Write(part.Bytes)
		if from = part.End; len(part.Bytes) == 0 {
			break
		}
	}
	if !bytes.Equal(whole.Sum(nil), kept[:]) {
		t.Error("what the API gives is not what was kept")
	}
	told, err := apiclient.Get[api.Facts](context.Background(), client, "/sessions/ada-1/facts", nil)
	facts := told.Facts
	if err != nil || len(facts) == 0 {
		t.Fatalf("facts: %+v, %v", facts, err)
	}
	if last := facts[len(facts)-1]; last.Kind != "stopped" || !last.Stop.OK {
		t.Errorf("the last fact is %+v", last)
	}
}

// The API over TCP wants the token, and says what to do without it. The page itself is no secret: it asks for a
// login.
func TestTokenOverTCP(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{"fairlead.yaml": "version: 1\nagents: {}\n"})
	base := strings.Split(s.url, "/?")[0]
	for path, want := range map[string]int{"/": http.StatusOK, "/api/v1/agents": http.StatusUnauthorized} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s without a token: %d", path, resp.StatusCode)
		}
	}
	token := strings.Split(s.url, "token=")[1]
	req, err := http.NewRequest(http.MethodGet, base+"/api/v1/agents", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var view view.TeamView
	if err := json.NewDecoder(resp.Body).Decode(&view); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("with a token: %d, %v", resp.StatusCode, err)
	}
}

// The same of what programs are told about a team.
func TestTeamContracts(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nteam: {lead: ada, size: 1}\nagents:\n  ada: {driver: script, script: ada.yaml, workspace: ada}\n",
		"ada.yaml": `steps: [say: work]
lead:
  - expect_prompt
  - say: |
      [AGENT_REGISTERED] {"name":"Lyra","color":"#c9b1e8","colorName":"Violet","gender":"woman","gridPosition":0,"faceVariant":{"eyes":"wide","mouth":"grin"},"individuationArtifact":"me"}
      [Lyra]: hello
      [AGENT_STATUS] {"agents":[{"name":"Lyra","status":"alive","gridPosition":0}]}
  - expect_prompt
`,
	})
	var done struct {
		Seq  *uint64         `json:"seq"`
		Team json.RawMessage `json:"team"`
	}
	if err := json.Unmarshal([]byte(s.must("crew", "summon", "--wait", "--json")), &done); err != nil || done.Seq == nil {
		t.Fatalf("summon: %v, %+v", err, done)
	}
	var crew struct {
		Button     string                       `json:"button"`
		InProgress *string                      `json:"in_progress"`
		Agents     []map[string]json.RawMessage `json:"agents"`
		Lead       map[string]json.RawMessage   `json:"lead"`
		Size       int                          `json:"size"`
		Notices    *[]json.RawMessage           `json:"notices"`
		Head       uint64                       `json:"head"`
	}
	if err := json.Unmarshal([]byte(s.must("crew", "--json")), &crew); err != nil {
		t.Fatal(err)
	}
	if crew.Button != "none" || crew.InProgress == nil || len(crew.Agents) != 1 || crew.Size != 1 || crew.Notices == nil || crew.Head == 0 {
		t.Fatalf("team: %+v", crew)
	}
	for _, field := range []string{"agent", "session", "state", "why", "reported_at", "seat"} {
		if _, ok := crew.Lead[field]; !ok {
			t.Errorf("a lead without %s: %v", field, crew.Lead)
		}
	}
	// The document is the seed's, as `fairlead crew show --json` and the file have it, and its id.
	var one, file map[string]json.RawMessage
	text, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "agents", "agent-1.json"))
	if err := errors.Join(err, json.Unmarshal(text, &file),
		json.Unmarshal([]byte(s.must("crew", "show", "Lyra", "--json")), &one)); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"type", "status", "name", "color", "colorName", "gender", "gridPosition", "faceVariant", "individuationArtifact", "createdAt",
		"lastAliveAt", "lastSessionId",
	} {
		if string(crew.Agents[0][field]) == "" || string(one[field]) != string(crew.Agents[0][field]) || len(file[field]) == 0 {
			t.Errorf("%s is %s in the team, %s alone, %s in the file", field, crew.Agents[0][field], one[field], file[field])
		}
	}
	if string(crew.Agents[0]["id"]) != `"agent-1"` || file["id"] != nil {
		t.Errorf("the id is %s in the team, %s in the file", crew.Agents[0]["id"], file["id"])
	}
	var page struct {
		Messages []map[string]json.RawMessage `json:"messages"`
		More     *bool                        `json:"more"`
	}
	if err := json.Unmarshal([]byte(s.must("crew", "transcript", "--json", "--speaker", "Lyra")), &page); err != nil ||
		len(page.Messages) != 1 || page.More == nil {
		t.Fatalf("transcript: %v, %+v", err, page)
	}
	for _, field := range []string{"seq", "at", "session", "speaker", "kind", "channel", "text"} {
		if _, ok := page.Messages[0][field]; !ok {
			t.Errorf("a message without %s: %v", field, page.Messages[0])
		}
	}
	if string(page.Messages[0]["session"]) != string(one["lastSessionId"]) {
		t.Errorf("it was said in %s, and is of %s", page.Messages[0]["session"], one["lastSessionId"])
	}
}
