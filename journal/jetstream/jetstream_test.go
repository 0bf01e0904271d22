package jetstream

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/journaltest"
)

func TestSuite(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("servers=%d", n), func(t *testing.T) {
			c := started(t, n)
			nc := c.connect(t)
			journaltest.Run(t,
				func(t *testing.T) journal.Journal { return opened(t, nc, c.create(t, nc), "") },
				journaltest.Shared(func(t *testing.T) func() journal.Journal {
					stream, dir, mirrors := c.create(t, nc), t.TempDir(), 0
					return func() journal.Journal { // each handle is a host
						mirrors++
						return opened(t, nc, stream, filepath.Join(dir, fmt.Sprintf("%d.db", mirrors)))
					}
				}))
		})
	}
}
