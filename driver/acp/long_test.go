//go:build !race

package acp

// longLineBytes is the longest message that a real program was seen to send.
const longLineBytes = 11 << 20
