//go:build !race

package uitest_test

const raced = false // see race_test.go
