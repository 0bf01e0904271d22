package file

import (
	"crypto/sha256"
	"encoding/hex"
)

// Sum names the contents of a file: the first 8 bytes of their SHA-256, as 16
// hexadecimal digits. Enough to tell our writes from others', not to keep out a forger,
// who could as well write the file.
type Sum string

// SumOf is the Sum of these bytes.
func SumOf(b []byte) Sum {
	full := sha256.Sum256(b)
	var digits [16]byte
	hex.Encode(digits[:], full[:8])
	return Sum(digits[:])
}
