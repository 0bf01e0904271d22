package uitest

import (
	"fmt"
	"strings"
	"time"
)

// Parley is a team whose agents talk: one channel in the middle of a review, one that waits,
// one that was left alone, one without a word, and one that is full.
func Parley() *Fake {
	f := Crew()
	f.AddChannel(Channel{Name: "reviews", Lead: "night-watch"}, "coder", "reviewer", "tester", "docs")
	f.AddChannel(Channel{Name: "release"}, "release", "tester")
	f.AddChannel(Channel{Name: "gardening"}, "gardener", "docs")
	f.AddChannel(Channel{Name: "empty", Mode: "queue"})
	f.crowd("all-hands", 60, 500)
	at := time.Now().Add(-26 * time.Minute)
	f.mu.Lock()
	f.now = func() time.Time { at = at.Add(23 * time.Second); return at.UTC() }
	f.mu.Unlock()

	f.Heard("gardening", "you", "Which of the old berth tables does nobody read any more?", "")
	for range 3 {
		f.Done("gardening", "Three of them: `berth_v1`, `berth_tmp`, and the view on top.")
		f.Done("gardening", "The manual still names `berth_v1` once.")
	}
	f.Heard("release", "you", "Tag 0.9 when the tests are green, and not before.", "")
	f.Words("release", "Building. The notes are written.")
	f.WaitsFor("release", "the signature of a person")

	f.Heard("reviews", "you", "A vessel that leaves early must free its berth. Please look at section 4 of PLAN.md and tell me what it breaks.", "")
	f.Words("reviews", "Reading section 4. The table has no state for a berth that was released early.")
	f.Done("reviews", "I have added `Released` and the two rows that lead there:\n\n```go\nMoored: {\n\tLeft:      {To: Free},\n\tLeftEarly: {To: Released, Do: do(FreeBerth)},\n},\n```\n\nThe handler follows it; its test is in `berth/release_test.go`.")
	f.Heard("reviews", "you", "What happens when it leaves twice?", "inject")
	f.Words("reviews", "Good question. With this change the second release frees the berth of whoever came in meanwhile.\n\n1. `release.go:41` does not look at the state.\n2. The test only leaves once.")
	f.Done("reviews", "I would refuse it in the table, not in the handler.")
	f.TimeOut("reviews")
	f.Passes("reviews")
	n := f.Heard("reviews", "julian", "Stop: is berth 7 the one on the north quay?", "interrupt")
	f.AsideDone("reviews", "night-watch", n, "Yes. North quay, between the crane and the bunker.")
	f.Late("reviews", "tester", 3, "--- FAIL: TestReleaseTwice (0.00s)\n    release_test.go:41: berth 7 was released twice")
	f.Done("reviews", "A second release is now refused: `berth 7 is free already`. One row, no branch in the handler.")
	f.Words("reviews", "Reading the change again.")
	f.Heard("reviews", "you", "And please name the case in the manual.", "queue")

	f.mu.Lock()
	f.now = func() time.Time { return time.Now().UTC() }
	f.mu.Unlock()
	f.EditChannel("reviews", func(c *Channel) {
		since, end := f.now().Add(-18*time.Second), f.now().Add(42*time.Second)
		c.Since, c.Deadline = &since, &end
	})
	f.EditChannel("release", func(c *Channel) {
		since, end := f.now().Add(-70*time.Second), f.now().Add(262*time.Second)
		c.Since, c.Deadline = &since, &end
	})
	return f
}

// crowd makes a channel with so many agents, and so many messages that nobody has answered.
func (f *Fake) crowd(name string, agents, open int) {
	var names []string
	for i := range agents {
		names = append(names, fmt.Sprintf("hand-%02d", i+1))
	}
	f.AddChannel(Channel{Name: name, Mode: "parallel", RoundsMax: 3}, names...)
	f.Converse(name, 300)
	f.Heard(name, "you", "Everybody: how far are you?", "inject")
	for i := range open - 1 {
		f.Heard(name, "you", fmt.Sprintf("Question %d: what is the state of hatch %d?", i+1, i+1), []string{"queue", "inject"}[i%2])
	}
	f.Words(name, strings.Repeat("Hatch after hatch, and every one of them is to be looked at. ", 12))
}
