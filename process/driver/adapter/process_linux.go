package adapter

import "syscall"

// childAttr makes the program die with the adapter, regardless of how the adapter ends. The program
// stays in the adapter's process group, because the shim ends the whole tree.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
