//go:build !race

package acp

// longLineBytes is the longest message that was observed from a real program.
const longLineBytes = 11 << 20
