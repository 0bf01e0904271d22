//go:build !race

package presence

const raced = false
