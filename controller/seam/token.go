package seam

import (
	"crypto/sha256"
	"encoding/hex"
)

// HashOfToken is what the journal keeps of an agent's token. A token has 32 random bytes, so its hash
// does not help to guess it.
func HashOfToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
