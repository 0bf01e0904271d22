package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestTurnWithoutTextIsNamed checks the line about hand-offs: it names a turn that ended without text, and no other.
func TestTurnWithoutTextIsNamed(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	for text, want := range map[string]string{"": "", "no text in this turn": "pm: no text in this turn"} {
		got := uitest.Eval[string](p, `(async () => {
			const { turnLine } = await import('/channels/words.js');
			return (turnLine([
				{ seq: 1, kind: 'moved', agent: 'pm', from: 'ACTIVE', to: 'QUEUED', row: 'T7', turn: 1, text: '`+text+`' },
				{ seq: 2, kind: 'moved', agent: 'dev', from: 'QUEUED', to: 'ACTIVE', row: 'T4', turn: 2 },
			])?.notes ?? []).join('; '); })()`)
		if got != want {
			t.Errorf("with %q the notes are %q, want %q", text, got, want)
		}
	}
}
