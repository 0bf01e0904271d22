//go:build !race

package server

const raced = false // see race_test.go
