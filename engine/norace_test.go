//go:build !race

package engine

const raced = false // see race_test.go
