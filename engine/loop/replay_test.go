package loop

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// A change of a host by a rule that this version does not have is refused: it has facts that would be lost without a word.
func TestRuleOfANewerVersion(t *testing.T) {
	t.Parallel()
	is := journal.Change{Seq: 7, Machine: "host", Entity: "host/b", Row: "H2", Data: []byte(`{"host":{}}`)}
	if _, err := ChangeOf(is); err != nil {
		t.Error(err)
	}
	is.Row = "H99"
	if _, err := ChangeOf(is); err == nil ||
		!strings.Contains(err.Error(),
			"change 7 of host/b is by rule H99, which this version of fairlead does not know; run the version that wrote it") {
		t.Error(err)
	}
}
