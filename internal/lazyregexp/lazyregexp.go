// Package lazyregexp compiles regular expressions when they are first used.
//
// Most starts of the program use none of the expressions that recognise the errors of agent programs and the words of
// configuration, and every start would compile them all: more than a third of the memory that the initialisation of all packages
// allocates, and a fifth of the page faults of a short command.
//
// The one promise: an expression that does not compile panics at the start of every test program, as regexp.MustCompile does
// everywhere.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function that gives the compiled expression.
func New(expression string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	if strings.HasSuffix(os.Args[0], ".test") {
		compiled()
	}
	return compiled
}
