package claude

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// TestNeeds checks that a program gets the keys of its own provider, those of a cloud only if it is
// configured to use that cloud, and no others.
func TestNeeds(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(name, "x")
	}
	own := "ANTHROPIC_API_KEY CLAUDE_CONFIG_DIR"
	for name, c := range map[string]struct {
		agent  driver.Agent
		daemon string // a variable of the daemon
		want   string
	}{
		"claude":                   {driver.Agent{}, "", own},
		"claude by its path":       {driver.Agent{Command: []string{"/opt/bin/claude"}}, "", own},
		"on Bedrock":               {driver.Agent{Env: []string{"CLAUDE_CODE_USE_BEDROCK=1"}}, "", own + " AWS_SECRET_ACCESS_KEY"},
		"on Bedrock by the daemon": {driver.Agent{}, "CLAUDE_CODE_USE_BEDROCK=true", own + " AWS_SECRET_ACCESS_KEY"},
		"not on Bedrock":           {driver.Agent{Env: []string{"CLAUDE_CODE_USE_BEDROCK=0"}}, "CLAUDE_CODE_USE_BEDROCK=1", own},
		"on Vertex":                {driver.Agent{Env: []string{"CLAUDE_CODE_USE_VERTEX=1"}}, "", own + " GOOGLE_API_KEY"},
		"another program":          {driver.Agent{Command: []string{"qwen"}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if key, value, set := strings.Cut(c.daemon, "="); set {
				t.Setenv(key, value)
			}
			var got []string
			for _, kv := range driver.Environment(c.agent, driver.Session{}, Driver{}.Needs(c.agent)...) {
				name, _, _ := strings.Cut(kv, "=")
				if slices.Contains([]string{
					"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY",
					"GOOGLE_API_KEY",
				}, name) {
					got = append(got, name)
				}
			}
			want := strings.Fields(c.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("needs %v, want %v", got, want)
			}
		})
	}
}
