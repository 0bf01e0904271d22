//go:build !linux

package adapter

import "syscall"

// childAttr sets nothing: a program whose adapter died sees the end of its input.
func childAttr() *syscall.SysProcAttr { return nil }
