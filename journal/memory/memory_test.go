package memory_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
	"github.com/fairlead-dev/fairlead/journal/memory"
)

func TestMemory(t *testing.T) {
	journaltest.Run(t,
		func(*testing.T) journal.Journal { return memory.New() },
		journaltest.Shared(func(*testing.T) func() journal.Journal {
			first := memory.New()
			return func() journal.Journal { return first.Again() }
		}))
}
