package exchange_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// becomeNobody changes this thread's user to one without privileges.
func becomeNobody(t *testing.T) {
	t.Helper()
	if err := unix.Setfsuid(65534); err != nil {
		t.Error(err)
	}
}
