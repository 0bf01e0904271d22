//go:build !linux

package exchange_test

import "testing"

// becomeNobody exists only on Linux; elsewhere the test is skipped.
func becomeNobody(t *testing.T) {
	t.Helper()
	t.Error("only Linux has users by thread")
}
