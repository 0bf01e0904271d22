//go:build !race

package crew

const raced = false
