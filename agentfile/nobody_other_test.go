//go:build !linux

package agentfile

import "testing"

// becomeNobody is for Linux; elsewhere the test that needs it is skipped.
func becomeNobody(t *testing.T) {
	t.Helper()
	t.Error("only Linux has users by thread")
}
