//go:build !race

package channel

const raced = false
