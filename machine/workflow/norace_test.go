//go:build !race

package workflow

const raced = false
