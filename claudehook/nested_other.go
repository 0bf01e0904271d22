//go:build !linux

package claude

import "os"

// nested is not known here: other processes' environments are not shown.
func nested() bool { return false }

// Within says whether a process runs in an agent program's shell. Here that is known of this one alone.
func Within(pid int) bool { return pid == os.Getpid() && os.Getenv("CLAUDECODE") != "" }
