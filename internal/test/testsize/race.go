//go:build race

package testsize

// Race reports whether the race detector is on. It makes tests five to ten times slower and takes
// many times the memory, so they do less. CI runs the same tests in full without it.
const Race = true
