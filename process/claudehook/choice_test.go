package claudehook

import (
	"strings"
	"testing"
)

// Without a clear margin, the text for MAIN names the candidates and the words that speak for them; small talk gets
// no candidates.
func TestMainGetsTheCandidates(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"alpha", "beta"} {
		w.write("repo/.claude/agents/"+name+".md", "---\nname: "+name+"\ndescription: Use for latency and throughput\n---\nYou tune.\n")
	}
	says := func(prompt string) string {
		return string(w.hook(UserPromptSubmit,
			strings.Replace(event(UserPromptSubmit, `,"prompt":"`+prompt+`"`), "/repo", w.path("repo"), 1)).Out)
	}
	says("/agent-state-machine")
	if answer := says("Improve the latency"); !strings.Contains(answer, "By the descriptions, no clear choice between alpha ") ||
		!strings.Contains(answer, " and beta ") || !strings.Contains(answer, `(\"latency\" `) {
		t.Error(answer)
	}
	for _, input := range []string{"Thanks!", "Can you explain what you just did?", "Write it", "Optimize the query"} {
		if answer := says(input); !strings.Contains(answer, "You are MAIN") || strings.Contains(answer, "By the descriptions") {
			t.Errorf("%q: %s", input, answer)
		}
	}
}
