//go:build race

package turn

// raced says that the race detector looks on: everything takes five to ten times as long, and
// random orders are fewer. The same tests run in full without it (.ci/run, days).
const raced = true
