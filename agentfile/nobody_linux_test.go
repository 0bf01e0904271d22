package agentfile

import (
	"testing"

	"golang.org/x/sys/unix"
)

// becomeNobody makes this thread look at files as a user without rights.
func becomeNobody(t *testing.T) {
	t.Helper()
	if err := unix.Setfsuid(65534); err != nil {
		t.Error(err)
	}
}
