package loop

import (
	"fmt"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
)

// Appends are split where an event ends, or else where one agent's changes end.
func TestWhereBatchesAreSplit(t *testing.T) {
	d := batchDraft{}
	add := func(entities ...string) {
		for _, entity := range entities {
			d.records = append(d.records, journal.Change{Entity: entity, Data: []byte("{}")})
		}
		d.ends = append(d.ends, len(d.records))
	}
	for range 400 {
		add("session/a", "control/a", "session/a") // the next event is about the same agent
	}
	if to := d.part(0); to != 999 || d.part(to) != 1200 {
		t.Errorf("%d, %d", to, d.part(to))
	}
	add()
	var all []string
	for i := range 900 {
		all = append(all, fmt.Sprintf("control/b%d", i), fmt.Sprintf("session/b%d", i))
	}
	add(all...)
	if to := d.part(1200); to != 1200+1000 {
		t.Errorf("the changes of one agent are split at %d", to)
	}
	d = batchDraft{}
	for range 4 {
		d.records = append(d.records, journal.Change{Entity: "control/a", Data: make([]byte, partBytesMax-1)})
		d.ends = append(d.ends, len(d.records))
	}
	if to := d.part(0); to != 1 {
		t.Errorf("%d changes of 32 MB in one append", to)
	}
}
