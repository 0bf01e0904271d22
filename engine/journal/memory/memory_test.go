package memory_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

func TestMemory(t *testing.T) {
	journaltest.Run(t,
		func(*testing.T) journal.Journal { return memory.New() },
		journaltest.Shared(func(*testing.T) func() journal.Journal {
			first := memory.New()
			return func() journal.Journal { return first.Again() }
		}))
}
