package shim

import (
	"os/signal"
	"syscall"
)

func ignoreTerm() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }
