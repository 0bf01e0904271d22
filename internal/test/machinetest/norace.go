//go:build !race

package machinetest

// Race reports whether the race detector is on.
const Race = false
