package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestInstallable checks that Chromium can install the page on a phone.
func TestInstallable(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	if against := uitest.Installable(p); len(against) > 0 {
		t.Errorf("it cannot be installed: %q", against)
	}
}
