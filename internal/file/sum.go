package file

import (
	"crypto/sha256"
	"encoding/hex"
)

// Sum identifies content: the first 8 bytes of its SHA-256, as 16 hexadecimal digits. It distinguishes our
// writes from others'; it does not protect against forgery.
type Sum string

// SumOf returns the sum of b.
func SumOf(b []byte) Sum {
	full := sha256.Sum256(b)
	var digits [16]byte
	hex.Encode(digits[:], full[:8])
	return Sum(digits[:])
}
