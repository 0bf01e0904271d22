//go:build !race

package api

const raced = false // see race_test.go
