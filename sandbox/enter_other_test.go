//go:build !linux

package sandbox

// actIfAsked does nothing: there is no sandbox to act in.
func actIfAsked() {}
