//go:build race

package adapter_test

// longBytes is smaller under the race detector, which needs fifty times the memory.
const longBytes = 2 << 20

const raced = true // see norace_test.go
