package claudehook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// TestFoldersOfACommand: an agent's command gets the folder of its conversation to write, and MAIN's the dispatch to read. The answer to
// the event after it is the same when the next conversation has begun meanwhile.
func TestFoldersOfACommand(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	w := begun(t)
	w.exe = []string{"/opt/fairlead-hook", confine.Verb}
	input := `,"tool_name":"Task","tool_input":{"subagent_type":"fullstack-engineer","prompt":"x","description":"x"},"tool_use_id":"t0"`
	if a := w.hook(PreToolUse, event(PreToolUse, input)); a.Code != 0 {
		t.Fatalf("%+v", a)
	}
	with := func(name, by, command string) (runs string, a Answer) {
		raw, err := json.Marshal(map[string]any{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		a = w.hook(name, event(name, by+`,"tool_name":"Bash","tool_input":`+string(raw)+`,"tool_use_id":"t1"`))
		var said struct {
			Specific struct {
				Updated struct{ Command string } `json:"updatedInput"`
			} `json:"hookSpecificOutput"`
		}
		if len(a.Out) > 0 && json.Unmarshal(a.Out, &said) != nil {
			t.Fatalf("%+v", a)
		}
		return said.Specific.Updated.Command, a
	}
	agents, _ := with(PreToolUse, byAgent, "python3 x.py")
	mains, _ := with(PreToolUse, "", "ls")
	for text, want := range map[string]bool{"'--read' '": true, "'--write' '": true, "/conversations/conv_001' '--not'": true} {
		if strings.Contains(agents, text) != want {
			t.Errorf("an agent's command is %q", agents)
		}
		if is := strings.Contains(mains, text); is != (text == "'--read' '") {
			t.Errorf("MAIN's command is %q", mains)
		}
	}
	for _, next := range []bool{false, true} {
		if next {
			if a := w.hook(UserPromptSubmit, event(UserPromptSubmit, fmt.Sprintf(`,"prompt":%q`, "Now something else"))); a.Code != 0 {
				t.Fatalf("%+v", a)
			}
		}
		if _, a := with(PostToolUse, byAgent, agents); a.Code != 0 || strings.Contains(string(a.Out), "not allowed") {
			t.Errorf("after it, next conversation %v: %+v %s", next, a, a.Out)
		}
	}
}
