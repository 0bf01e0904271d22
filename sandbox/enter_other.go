//go:build !linux

package sandbox

import (
	"errors"
	"os/exec"
	"runtime"
)

// Supported says that there is no sandbox on this system.
func Supported() (abi int, why string) {
	return 0, "there is no Landlock on " + runtime.GOOS + "; it is Linux's own"
}

func enter(Box, []string) error {
	_, why := Supported()
	return errors.New(why)
}

// Run starts nothing, because there is no sandbox on this system.
func Run(*exec.Cmd, Box) error {
	_, why := Supported()
	return NotStarted{errors.New(why)}
}
