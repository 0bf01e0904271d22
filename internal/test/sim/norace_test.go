//go:build !race

package sim

const slow = false // see race_test.go
