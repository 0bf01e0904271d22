//go:build !race

package controller

const raced = false // see race_test.go
