//go:build race

package main

// raced says that the race detector looks on: a daemon takes five to ten times as long to start,
// and is killed less often. The same tests run in full without it.
const raced = true
