package app

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// A session that cannot be made ready because nothing is due, although the loop wants the session, is made ready again after pauses that
// become longer, and starts when it is due.
func TestSessionThatIsNotDue(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada")
		ledger := newPromptLedger()
		b.host.play = ledger.talks
		b.start()
		var asked atomic.Int64
		var due atomic.Bool
		b.driver.check.set(func(string) error {
			if asked.Add(1); !due.Load() {
				return sessions.ErrNotAsked
			}
			return nil
		})
		if _, err := b.engine.Channels.Say(t.Context(), human, "reviews", "please review", ""); err != nil {
			t.Fatal(err)
		}
		b.after(20 * time.Second)
		most := int64(20 * time.Second / loop.RetryMax) // and those of the first pauses, each twice as long as the one before
		for pause := loop.RetryFirst; pause < loop.RetryMax; pause *= 2 {
			most++
		}
		if n := asked.Load(); n < 2 || n > most+1 || b.host.startsOf("ada") != 0 {
			t.Errorf("in 20 seconds it was made ready %d times, want 2 to %d, and %d sessions were started", n, most+1, b.host.startsOf("ada"))
		}
		due.Store(true)
		b.after(2 * loop.RetryMax)
		if b.host.startsOf("ada") != 1 || ledger.count("ada") == 0 {
			t.Errorf("%d sessions were started, with %d prompts", b.host.startsOf("ada"), ledger.count("ada"))
		}
	})
}
