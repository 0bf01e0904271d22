//go:build race

package machinetest

// Race reports whether the race detector is on. It makes tests five to ten times slower, so
// random tests run fewer orders. CI also runs them in full without it.
const Race = true
