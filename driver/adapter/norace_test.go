//go:build !race

package adapter_test

// longBytes is the longest line that was observed.
const longBytes = 11 << 20

const raced = false // see race_test.go
