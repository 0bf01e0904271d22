//go:build !linux

package claudehook

import "os"

// nested is not supported: other processes' environments cannot be read.
func nested() bool { return false }

// Within reports whether a process runs inside an agent program's shell. Here that is known only for this
// process.
func Within(pid int) bool { return pid == os.Getpid() && os.Getenv("CLAUDECODE") != "" }

// callerArgs are not known here.
func callerArgs() []string { return nil }
