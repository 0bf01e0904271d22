//go:build linux && !amd64

package sandbox

var otherOldAttempts []wallAttempt
