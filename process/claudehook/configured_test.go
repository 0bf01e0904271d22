package claudehook

import (
	"slices"
	"testing"
)

func TestWhatTheConfigurationSays(t *testing.T) {
	w := newWorld(t)
	if conf, err := configuredIn(w.path("repo")); err != nil || conf.Tools != nil || conf.Commits != nil {
		t.Errorf("without a file: %v %v", conf, err)
	}
	for text, want := range map[string][]string{
		"version: 1\n": nil,
		"version: 1\ndispatch: {main: x, tools: [mcp__docs__*, Web]}\nagents: {x: {driver: exec}}\n": {"mcp__docs__*", "Web"},
	} {
		w.write("repo/fairlead.yaml", text)
		if conf, err := configuredIn(w.path("repo")); err != nil || !slices.Equal(conf.Tools, want) {
			t.Errorf("%q: %v %v", text, conf, err)
		}
	}
	for _, text := range []string{"dispatch: [", "dispatch: {tools: {a: b}}", "dispatch: {commits: maybe}"} {
		w.write("repo/fairlead.yaml", text)
		if conf, err := configuredIn(w.path("repo")); err == nil {
			t.Errorf("%q: %v", text, conf)
		}
	}
}

// A tool that the configuration allows for MAIN is not denied; another unknown one is.
func TestMainMayUseConfiguredTools(t *testing.T) {
	w := newWorld(t)
	w.env = map[string]string{"CLAUDE_PROJECT_DIR": w.path("repo")}
	w.write("repo/fairlead.yaml", "dispatch: {tools: [mcp__docs__*]}\n")
	w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"/agent-state-machine"`))
	for tool, denied := range map[string]bool{"mcp__docs__search": false, "mcp__files__write": true} {
		a := w.hook(PreToolUse, event(PreToolUse, `,"tool_name":"`+tool+`","tool_input":{}`))
		if (len(a.Out) > 0) != denied || a.Code != 0 {
			t.Errorf("%s: %s", tool, a.Out)
		}
	}
}
