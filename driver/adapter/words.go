package adapter

import (
	"regexp"
	"sync"
)

// Words compiles a regular expression on first use. Otherwise every command, shim and adapter of
// this binary would compile the expressions of all drivers at startup.
func Words(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
