package journal

import (
	"errors"
	"testing"
	"time"
)

// TestCheckedOnce checks that a change is checked by Check or by CheckBatch, and not by both.
func TestCheckedOnce(t *testing.T) {
	made := func() []Change {
		return []Change{{Time: time.Unix(1, 0), Entity: "control/a"}, {Time: time.Unix(1, 0), Entity: "control/b"}}
	}
	var refused *Refused
	faulty := made()
	faulty[1].Entity = "no entity"
	if err := Check(faulty); !errors.As(err, &refused) {
		t.Errorf("a faulty change passed: %v", err)
	}
	if err := CheckBatch(faulty, nil); !errors.As(err, &refused) {
		t.Errorf("a refused change passed afterwards: %v", err)
	}
	good := made()
	if err := Check(good); err != nil {
		t.Fatal(err)
	}
	good[1].Entity = "no entity" // shows whether it is looked at again
	if err := CheckBatch(good, nil); err != nil {
		t.Errorf("a checked change was checked again: %v", err)
	}
}
