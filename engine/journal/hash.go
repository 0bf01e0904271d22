package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// canonicalFormat is the first canonical byte of a change; see the package doc.
const canonicalFormat = 1

// String returns 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether this is the hash before the first change.
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText returns the same as String; JSON uses it too.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText takes exactly 64 hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("hash has %d characters: it must have %d hexadecimal digits", len(text), hex.EncodedLen(len(h)))
	}
	var out Hash
	if _, err := hex.Decode(out[:], text); err != nil {
		return fmt.Errorf("hash: %w: it must have %d hexadecimal digits", err, hex.EncodedLen(len(h)))
	}
	*h = out
	return nil
}

// AppendCanonical appends the canonical bytes of the change to dst; the package
// doc specifies them. Hash is not part of them.
func (c *Change) AppendCanonical(dst []byte) []byte {
	dst = append(dst, canonicalFormat)
	dst = binary.BigEndian.AppendUint64(dst, c.Seq)
	dst = binary.BigEndian.AppendUint64(dst, c.Version)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Time.UnixNano())) // two's complement is what the format says
	dst = binary.BigEndian.AppendUint64(dst, c.Cause)
	for _, s := range [...]string{c.Machine, c.Entity, c.Row, c.From, c.To, c.Trigger, c.Actor.Kind, c.Actor.ID} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
		dst = append(dst, s...)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Data)))
	return append(dst, c.Data...)
}

// Sum is the hash that the change must have if prev is the hash of the previous change (zero for the
// first).
func (c *Change) Sum(prev Hash) Hash {
	var s Summer
	return s.Sum(prev, c)
}

// Summer computes sums without allocating for each. The zero value is ready to use, by one goroutine
// at a time.
type Summer struct{ buf []byte }

// Sum is what [Change.Sum] gives.
func (s *Summer) Sum(prev Hash, c *Change) Hash {
	s.buf = append(s.buf[:0], prev[:]...)
	s.buf = c.AppendCanonical(s.buf)
	return sha256.Sum256(s.buf)
}
