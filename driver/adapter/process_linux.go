package adapter

import "syscall"

// childAttr lets the program die with the adapter, however that dies. It stays in the adapter's
// group: the tree is the shim's.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
