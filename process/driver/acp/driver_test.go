package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// TestDialogues plays recorded conversations with real programs. The protocol must send the same
// messages and produce the same events.
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogues/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		_, scene, _ := strings.Cut(name, "-")
		r := recordings[scene]
		command := recordedCommand(t, file)
		command = command[:len(command)-len(knownProgram(command).arguments(r.mode, false))]
		part := adapter.Part{What: r.what, Mode: r.mode, Command: command}
		if r.tools {
			part.MCP = driver.MCP{URL: "http://127.0.0.1:7466/mcp", Token: "a.token"}
		}
		if r.resume != "" {
			part.Resume = recordedConversation(t, file)
		}
		drivertest.Dialogue(t, Driver{}, part, file)
	}
}

func recordedCommand(t *testing.T, file string) []string {
	for _, line := range readLines(t, file) {
		var e drivertest.Entry
		if json.Unmarshal(line, &e) == nil && e.Dir == "start" {
			return e.Argv
		}
	}
	t.Fatalf("%s starts no program", file)
	return nil
}

// recordedConversation returns the conversation that a recording resumes.
func recordedConversation(t *testing.T, file string) string {
	for _, line := range readLines(t, file) {
		var e drivertest.Entry
		if json.Unmarshal(line, &e) != nil || e.Dir != "send" {
			continue
		}
		if of := objectOf(e.Msg); slices.Contains([]string{"session/resume", "session/load"}, of.text("method")) {
			return of.object("params").text("sessionId")
		}
	}
	t.Fatalf("%s resumes no conversation", file)
	return ""
}

func readLines(t *testing.T, file string) [][]byte {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(func(yield func([]byte) bool) {
		for line := range strings.Lines(string(b)) {
			if !yield([]byte(line)) {
				return
			}
		}
	})
}

// TestDriver runs the conformance suite. The agent is this test binary, which uses an independent
// ACP library.
func TestDriver(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	peer := driver.Agent{Name: "coder", Command: []string{exe, peerVerb}}
	answer := func(t *testing.T, _ *drivertest.Process, c driver.Conversation, f driver.Fact) {
		if f.Kind != driver.PermissionAsked {
			return
		}
		if err := c.Answer(t.Context(), f.Ask.ID, "allow"); err != nil {
			t.Error(err)
		}
	}
	drivertest.Run(
		t, Driver{},
		drivertest.Case{
			Name: "words", Agent: peer, OK: true,
			Session: driver.Session{ID: "coder-1", Kind: driver.Work, Attempt: 1, Prompt: "say something"},
			Facts: []string{
				"conversation_named ", "said You said: ", "said say something", "said ", "stopped completed",
			},
		},
		drivertest.Case{
			Name: "permission", Agent: peer, OK: true, Tell: answer,
			Session: driver.Session{ID: "coder-1", Kind: driver.Work, Attempt: 1, Prompt: "ask me"},
			Facts: []string{
				"conversation_named ", "tool_called go test", "permission_asked run: go test", "permission_answered allow",
				"said You said: ", "said allow", "said ", "stopped completed",
			},
		},
		drivertest.Case{
			Name: "refusal", Agent: peer, OK: false,
			Session: driver.Session{ID: "coder-1", Kind: driver.Work, Attempt: 1, Prompt: "refuse"},
		},
	)
}

// TestProbe checks that a probe reports the properties of a program and leaves no process behind.
func TestProbe(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Driver{}.Probe(t.Context(), driver.Agent{Name: "coder", Command: []string{exe, peerVerb}, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if found.Program != "peer 1.0" || found.Path != exe || found.Speaks != "acp 1" || !found.Resumes ||
		!slices.Equal(found.MCP, []string{"http", "stdio"}) {
		t.Errorf("found %+v", found)
	}
	if len(found.Warnings) == 0 {
		t.Error("no warning for an unknown program")
	}
	for name, a := range map[string]driver.Agent{
		"no program":  {Name: "coder", Command: []string{"/nowhere/at/all"}, Workspace: t.TempDir()},
		"no protocol": {Name: "coder", Command: []string{"/bin/true"}, Workspace: t.TempDir()},
	} {
		if found, err := (Driver{}).Probe(t.Context(), a); err == nil {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
