package dispatch

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// Without a clear margin, MAIN's prompt names the candidates and the words that speak for them.
func TestMainGetsTheCandidates(t *testing.T) {
	var s dispatch.Dispatch
	for _, name := range []string{"alpha", "beta"} {
		s.Agents = append(s.Agents, dispatch.Description{Name: name, Text: "Use for latency and throughput"})
	}
	for input, want := range map[string]bool{"Improve the latency and the throughput": true, "Thanks!": false, "Write it": false} {
		text := workPrompt(&s, nil, dispatch.Action{Text: input, Conversation: 1})
		if strings.Contains(text, "no clear choice between alpha ") != want || strings.Contains(text, "By the descriptions") != want {
			t.Errorf("%q: %s", input, text)
		}
	}
}
