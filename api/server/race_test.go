//go:build race

package server

// raced says that the race detector looks on: a request costs ten times as much, and those that are
// alike are fewer. All of them are made without it (.ci/run long).
const raced = true
