package sessions

import (
	"context"

	"github.com/fairlead-dev/fairlead/controller/seam"
)

// LabeledWire is a wire that labels its input. A driver sends a prompt in one call.
type LabeledWire struct {
	seam.Process
	Typist seam.InputWriter
	Label  string
}

// Send writes the input with the label.
func (w LabeledWire) Send(ctx context.Context, input []byte) error {
	return w.Typist.SendAs(ctx, w.Label, input)
}
