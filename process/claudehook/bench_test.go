package claudehook

import (
	"testing"
	"time"
)

// BenchmarkAnswer measures a hook without its process: an allowed call in a dispatch, and a call outside one.
func BenchmarkAnswer(b *testing.B) {
	for name, session := range map[string]string{"allowed": "s1", "outside": "s2"} {
		b.Run(name, func(b *testing.B) {
			w := worldFor(b)
			w.env = map[string]string{"CLAUDE_PROJECT_DIR": w.path("repo")}
			w.at = time.Now()
			for _, prompt := range []string{"/agent-state-machine", "Look around"} {
				w.hook(UserPromptSubmit, event(UserPromptSubmit, `,"prompt":"`+prompt+`"`))
			}
			input := `{"session_id":"` + session + `","cwd":"/repo","hook_event_name":"PreToolUse"` + runs + `}`
			for b.Loop() {
				if a := w.hook(PreToolUse, input); a.Code != 0 || len(a.Out) > 0 {
					b.Fatalf("%+v", a)
				}
			}
		})
	}
}
