package file

import (
	"bytes"
	"errors"
	"io"
)

// SameContent reports whether two readers have the same bytes until their ends.
func SameContent(a, b io.Reader) (same bool, err error) {
	const part = 32 << 10
	x, y := make([]byte, part), make([]byte, part)
	for {
		n, err := io.ReadFull(a, x)
		m, err2 := io.ReadFull(b, y)
		switch {
		case broken(err) || broken(err2):
			return false, errors.Join(err, err2)
		case n != m || !bytes.Equal(x[:n], y[:m]):
			return false, nil
		case n < part:
			return true, nil
		}
	}
}

func broken(err error) bool {
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}
