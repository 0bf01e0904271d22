//go:build race

package sqlite

// raced says that the race detector looks on: opening a file takes ten times as long, and fewer bits are
// turned over. All of them are without it (.ci/run long).
const raced = true
