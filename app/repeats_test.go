package app

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// Sessions that give the same text within seconds, and nothing else, are failures from the third on: the
// agent backs off and gives up. Passes, other texts and slower sessions are not.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says    func(n int) string
		every   time.Duration
		givesUp bool
	}{
		"the same":  {func(int) string { return "the key is wrong" }, time.Second, true},
		"different": {func(n int) string { return strings.Repeat("a", n+1) }, time.Second, false},
		"a pass":    {func(int) string { return "TURN_PASS" }, time.Second, false},
		"slower":    {func(int) string { return "the key is wrong" }, 20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				n := 0
				b.host.play = func(s *fakeSession) {
					wait.Elapse(c.every)
					n++
					s.say("alone %s", c.says(n))
				}
				b.start()
				b.command("coder", "continuous")
				b.after(10 * time.Minute)
				v := b.view("coder")
				if gaveUp := v.GaveUp != nil; gaveUp != c.givesUp ||
					c.givesUp && (v.DesiredState != control.WordPause || !strings.Contains(v.Note, "the same text")) {
					t.Errorf("after %d sessions it is %+v", n, v)
				}
			})
		})
	}
}
