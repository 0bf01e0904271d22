package livetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// Subagents is how the model of a program starts a subagent.
type Subagents struct {
	Tool   string
	Args   map[string]any // besides the prompt
	Prompt string         // the argument with the prompt
	Wait   string         // an item of the list that waits for the subagent; empty: the tool itself waits
}

// Start returns the items of a list by which a subagent does one item of its own.
func (s Subagents) Start(does string) string {
	args := map[string]any{s.Prompt: does}
	for name, value := range s.Args {
		args[name] = value
	}
	return "do: tool " + s.Tool + " " + string(encode.JSON(args)) + "\n" + s.Wait
}

// Ways are the ways by which programs start subagents, by the name of Programs; a second way has a suffix.
func Ways() map[string]Subagents {
	part := map[string]any{"description": "a part", "subagent_type": "general-purpose"}
	return map[string]Subagents{
		"opencode": {Tool: "task", Args: map[string]any{"description": "a part", "subagent_type": "general"}, Prompt: "prompt"},
		"qwen":     {Tool: "agent", Args: part, Prompt: "prompt"},
		"claude":   {Tool: "Agent", Args: part, Prompt: "prompt"},
		"claude in the background": {
			Tool: "Agent", Args: map[string]any{"description": "a part", "subagent_type": "general-purpose", "run_in_background": true},
			Prompt: "prompt",
		},
		"codex": {
			Tool: "spawn_agent", Prompt: "message",
			Wait: `do: tool wait_agent {"targets":["RESULT.agent_id"],"timeout_ms":60000}` + "\n",
		},
		"codex with names": { // its second kind of subagents, which some models get
			Tool: "spawn_agent", Args: map[string]any{"task_name": "part", "fork_turns": "none"}, Prompt: "message",
			Wait: `do: tool wait_agent {"timeout_ms":60000}` + "\n",
		},
	}
}

// RecordSubagent records with FAIRLEAD_RECORD=1 what a program does for a subagent that runs a command and for one that writes, as
// NAME-subagent.jsonl in testdata/dialogues. Every question is answered with yes. Then UPDATE=1 renews what the driver makes of it.
func RecordSubagent(t *testing.T, p adapter.Protocol, name string, program func(testing.TB, *scriptmodel.Server) Program) {
	if os.Getenv("FAIRLEAD_RECORD") == "" {
		t.Skip("set FAIRLEAD_RECORD=1 to record real programs again")
	}
	model := scriptmodel.Start(t)
	file := filepath.Join("testdata", "dialogues", name+"-subagent.jsonl")
	way := Ways()[name]
	prompt := way.Start("do: bash echo ran > ran.txt") + way.Start("do: write written.txt text") + "do: say it is back"
	record(t, p, program(t, model), file, prompt, strings.TrimSuffix(strings.TrimPrefix(model.URL, "http://"), "/v1"))
	shorten(t, file)
}
