package adapter

import (
	"regexp"
	"sync"
)

// Words finds words that a program was seen to use. They are compiled when they are first asked for:
// every verb, every shim and every adapter of this binary would else wait for those of all drivers
// before its first line.
func Words(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
