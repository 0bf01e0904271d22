//go:build !linux

package sandbox

import (
	"errors"
	"runtime"
)

// Supported says that there is no sandbox on this system.
func Supported() (abi int, why string) {
	return 0, "there is no Landlock on " + runtime.GOOS + "; it is Linux's own"
}

// Become executes nothing, because there is no sandbox on this system.
func Become([]string, []string, Box, ...int) error {
	_, why := Supported()
	return errors.New(why)
}
