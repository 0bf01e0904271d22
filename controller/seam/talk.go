package seam

import (
	"context"
)

// InputWriter is a Process whose input is labeled, so that nothing is written twice: after a crash
// the label of the last input is compared with the journal.
type InputWriter interface {
	// SendAs is Send with a label. The input is the whole text of one action.
	SendAs(ctx context.Context, label string, input []byte) error

	// Input returns how many bytes of input were written in total, including those at the start,
	// and the label of the last labeled input.
	Input() (offset int64, label string)
}
