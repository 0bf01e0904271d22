package seam

import (
	"context"
)

// Typist is a Process whose input is written under names, so that nothing is written twice: after
// a crash the name of what was written last is compared with what the journal knows.
type Typist interface {
	// SendAs is Send of bytes that have a name. It is all of one errand.
	SendAs(ctx context.Context, label string, input []byte) error

	// Input is how many bytes were written so far, the first ones of its start among them, and
	// the name of the last that had one.
	Input() (offset int64, label string)
}
