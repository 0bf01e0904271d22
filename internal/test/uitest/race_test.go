//go:build race

package uitest_test

// raced says that the race detector looks on. It sees the fake daemon and nothing of the page, and
// has heard the same words after a few stories; .ci/run long tells all of them without it.
const raced = true
