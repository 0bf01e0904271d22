//go:build race

package dispatch

// raced: the race detector makes everything some ten times slower, and here is no goroutine.
const raced = true
