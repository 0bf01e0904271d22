package journaltest_test

import (
	"errors"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// TestFaultySuite: told nothing, it is the journal beneath.
func TestFaultySuite(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Journal { return journaltest.Faulty(memory.New()) })
}

func TestFaults(t *testing.T) {
	f := journaltest.Faulty(memory.New())
	put := func() error { _, err := f.Append(t.Context(), journaltest.MadeBatch(2)); return err }
	head := func() uint64 { seq, _, _ := f.Head(t.Context()); return seq }
	f.FailBefore(1)
	if err := put(); !errors.Is(err, journaltest.ErrInjected) || head() != 0 {
		t.Errorf("before: %v, head %d", err, head())
	}
	f.FailAfter(1)
	if err := put(); !errors.Is(err, journaltest.ErrInjected) || head() != 2 {
		t.Errorf("after: %v, head %d", err, head())
	}
	if err := put(); err != nil || head() != 4 || f.Appends() != 3 || f.Stored() != 4 {
		t.Errorf("then: %v, head %d, %d appends, %d stored", err, head(), f.Appends(), f.Stored())
	}
	entered, release := f.Hold()
	done := make(chan error, 1)
	go func() { done <- put() }()
	if batch := <-entered; len(batch) != 2 || head() != 4 {
		t.Errorf("held: batch of %d, head %d", len(batch), head())
	}
	release()
	if err := <-done; err != nil || head() != 6 {
		t.Errorf("released: %v, head %d", err, head())
	}
}

// TestVerify has Verify meet journals that lie.
func TestVerify(t *testing.T) {
	for name, lie := range map[string]func(*journal.Change){
		"data":    func(c *journal.Change) { c.Data = []byte("0") },
		"hash":    func(c *journal.Change) { c.Hash[31] ^= 1 },
		"seq":     func(c *journal.Change) { c.Seq++ },
		"version": func(c *journal.Change) { c.Version++ },
	} {
		m := memory.New()
		if _, err := m.Append(t.Context(), journaltest.MadeBatch(20)); err != nil {
			t.Fatal(err)
		}
		var broken *journal.Broken
		if err := journal.Verify(t.Context(), liar{m, lie}); !errors.As(err, &broken) || broken.Seq != 7 {
			t.Errorf("%s: %v, want broken at 7", name, err)
		}
	}
}
