//go:build !race

package question

const raced = false
