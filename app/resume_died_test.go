package app

import (
	"strings"
	"testing"
	"time"
)

// TestKeyRefused checks that a key that the provider refuses is not tried again and again. After
// one session the agent is paused, and the status says how to sign in. A person's next command
// tries once more.
func TestKeyRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.agent("coder").Command = []string{"opencode", "acp"}
		b.host.play = func(s *fakeSession) { s.say("stop not_signed_in") }
		b.start()
		for n := 1; n <= 2; n++ {
			b.command("coder", "continuous")
			b.after(time.Hour)
			v := b.is("coder", "pause", "pause")
			if got := b.host.startsOf("coder"); got != n ||
				!strings.Contains(v.Note, "its provider refuses it: run `opencode auth login`") {
				t.Errorf("%d sessions were started; the note is %q", got, v.Note)
			}
		}
	})
}
