package uitest_test

import (
	"encoding/json"
	"testing"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/read/view"
)

// TestOneLookForAStatus checks that a status has the same word and the same shape on the page and
// in the terminal, and that all statuses differ.
func TestOneLookForAStatus(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	var page map[view.Status][2]string
	text := uitest.Eval[string](p, `(async () => { const { STATUS_WORDS, STATUS_MARKS } = await import('/shell/status.js');
		return JSON.stringify(Object.fromEntries(Object.keys(STATUS_WORDS).map((s) => [s, [STATUS_WORDS[s], STATUS_MARKS[s]]]))); })()`)
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	if len(page) != 8 {
		t.Errorf("the page has %d statuses", len(page))
	}
	for _, plain := range []bool{false, true} {
		marks := map[string]view.Status{}
		for s, look := range page {
			agent := view.AgentView{Status: s}
			if own := [2]string{agent.Word(), agent.Mark(false)}; own != look {
				t.Errorf("%s is %q on the page, and %q in the terminal", s, look, own)
			}
			mark := agent.Mark(plain)
			if other, taken := marks[mark]; taken || mark == "" || plain && mark[0] >= 0x80 {
				t.Errorf("%s and %s have the mark %q", s, other, mark)
			}
			marks[mark] = s
		}
	}
}

// TestOldPresence checks that a member of the crew that was reported long ago is not shown as
// alive.
func TestOldPresence(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	if ms := uitest.Eval[int64](p, `import('/crew/words.js').then(({ ALIVE_MS }) => ALIVE_MS)`); ms != crew.AliveMax.Milliseconds() {
		t.Errorf("a member counts as alive for %d ms on the page, and for %s in the core", ms, crew.AliveMax)
	}
	got := uitest.Eval[string](p, `(async () => { const { statusAt, lookOf, evidenceOf } = await import('/crew/words.js');
		const now = 1e12, doc = (min, status = 'alive') => ({ status, lastAliveAt: min === null ? null : new Date(now - min * 60000).toISOString(), createdAt: '' });
		return [doc(1), doc(5), doc(24), doc(null), doc(24, 'sleeping')].map((d) => lookOf(statusAt(d, now), true) + ' ' + evidenceOf(d, true, now)).join('; '); })()`)
	if want := "alive alive, 1m ago; alive alive, 5m ago; dim no report; alive 24m ago; dim no report yet; dim asleep; alive 24m ago"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
