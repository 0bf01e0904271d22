//go:build race

package acp

// longLineBytes is shorter here: it is about the race detector's memory, not about the length.
const longLineBytes = 3 << 20
