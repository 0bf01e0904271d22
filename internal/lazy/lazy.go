// Package lazy compiles regular expressions on first use.
//
// Fairlead is one program with many commands, and each session starts it again as its shim. An expression
// that is compiled when a package is initialized costs every one of these starts.
//
// The one promise: an expression that is not used is not compiled.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles the expression once. It panics there if the expression is invalid.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
