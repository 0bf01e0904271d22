//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Supported says that there is no sandbox on this system.
func Supported() (abi int, why string) {
	return 0, "there is no Landlock on " + runtime.GOOS + "; it is Linux's own"
}

// Attr is empty, because there is no view on this system.
func (v View) Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func inView(string, []string) int {
	_, why := Supported()
	return report(os.Stderr, errors.New(why))
}

// Points are none, because there is no view on this system.
type Points struct{}

// MakePoints makes none.
func MakePoints(string, View) (*Points, error) { return &Points{}, nil }

// Remove removes none.
func (p *Points) Remove() error { return nil }

// RemovePoints removes none.
func RemovePoints(string) error { return nil }
