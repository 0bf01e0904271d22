package app

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/read/view"
)

// readers are sessions that receive texts from a person. They count the texts that they have read.
// Sessions with an even number read during their answer; the others end without having read what
// was written to them.
type readers struct {
	mu   sync.Mutex
	read map[string]int
}

func (r *readers) life(s *fakeSession) {
	n, err := strconv.Atoi(s.id[strings.LastIndexByte(s.id, '-')+1:])
	if err != nil {
		panic(err)
	}
	begin, _, _ := s.next(time.Hour)
	r.count(begin)
	for text, _, ok := s.next(10 * time.Second); ok; text, _, ok = s.next(10 * time.Second) {
		_, rest, steers := strings.Cut(text, "steer ")
		if id, text, _ := strings.Cut(rest, " "); steers && n%2 == 0 {
			r.count(text)
			s.say("read %s", id)
		}
	}
	s.say("stop ok")
}

// count counts the texts of a prompt, which all begin with "text ".
func (r *readers) count(prompt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(prompt) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "text ") {
			r.read[line]++
		}
	}
}

// retryTell sends a text to an agent until it is known to be accepted. After a crash, it first checks
// whether it was.
func (b *bubble) retryTell(text string) (when string) {
	b.t.Helper()
	for range 20 {
		b.restartIfDead()
		if slices.ContainsFunc(b.history(), func(ch journal.Change) bool { return strings.Contains(string(ch.Data), text) }) {
			return when
		}
		receipt, err := b.engine.Agents.TellRunning(b.t.Context(), human, "coder", text)
		if err == nil {
			b.settle()
			return receipt.When
		}
		b.after(time.Second) // no session runs between two
	}
	b.t.Errorf("%q was never accepted", text)
	return ""
}

// S12, S13: a text for an agent that reads during its answer is read once, within the answer or at
// the start of the next one, regardless of crashes of the daemon.
func TestTellCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	play := func(t *testing.T, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "coder")
			defer b.end()
			r := &readers{read: map[string]int{}}
			b.conversing(config.ResumeInterrupted, r.life)
			b.open(c.last, c.undone)
			first := b.crashPoint
			b.run()
			b.retryCommand("coder", "continuous", "work on")
			texts := []string{"text one", "text two", "text three", "text four"}
			for i, text := range texts {
				if when := b.retryTell(text); when != view.TellAtOnce && !b.crashPoint.isDead() && !b.crashed {
					t.Errorf("%s is read %s", text, when)
				}
				b.after(time.Duration(i) * 5 * time.Second)
				b.restartIfDead()
			}
			b.after(time.Minute)
			b.restartIfDead()
			b.after(time.Minute)
			if want := map[string]int{texts[0]: 1, texts[1]: 1, texts[2]: 1, texts[3]: 1}; !maps.Equal(r.read, want) {
				t.Errorf("read texts: %v", r.read)
			}
			if left := b.replayed().Agents["coder"].Tells; len(left) > 0 {
				t.Errorf("still pending: %+v", left)
			}
			if rows := b.rows("session/coder"); !b.crashed &&
				(strings.Count(rows, "S12") != len(texts) || strings.Count(rows, "S13") == 0 || strings.Count(rows, "S13") == len(texts)) {
				t.Errorf("not both ways of delivery were used: %s", rows)
			}
			b.checkConsistent()
			acts = first.count()
		})
		return acts
	}
	acts := play(t, cut{})
	if acts < 20 {
		t.Fatalf("only %d acts; the scenario must do more", acts)
	}
	t.Logf("%d acts", acts)
	everyCut(t, acts, func(t *testing.T, c cut) { play(t, c) })
}
