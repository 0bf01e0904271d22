//go:build !linux

package claude

// nested is not known here: other processes' environments are not shown.
func nested() bool { return false }
