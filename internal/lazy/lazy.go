// Package lazy makes values on first use: tables, regular expressions.
//
// Fairlead is one program with many commands, and each session starts it again as its shim. What is made when a
// package is initialized costs every one of these starts.
//
// The one promise: a value that is not used is not made.
package lazy

import (
	"regexp"
	"sync"
)

// Value returns a function that makes the value once.
func Value[T any](of func() T) func() T { return sync.OnceValue(of) }

// Regexp returns a function that compiles the expression once. It panics there if the expression is invalid.
func Regexp(expr string) func() *regexp.Regexp {
	return Value(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
