//go:build !race

package sqlite

const raced = false // see race_test.go
