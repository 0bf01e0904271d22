//go:build race

package acp

// longLineBytes is smaller under the race detector, to save memory.
const longLineBytes = 3 << 20
