//go:build !linux

package sandbox

// actIfAsked does nothing: there is no sandbox on this system.
func actIfAsked() {}

func wallIfAsked() {}

func ipcApart() {}

// boxIfAsked does nothing: there is no Landlock on this system.
func boxIfAsked() {}
