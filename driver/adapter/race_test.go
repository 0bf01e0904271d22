//go:build race

package adapter_test

// longBytes is less than was seen: the race detector makes of each byte fifty.
const longBytes = 2 << 20
