package speech

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// OrderType is the kind of an order.
type OrderType string

const (
	OrderStart  OrderType = "start"  // the first order, with the prompt that the process was started for
	OrderPrompt OrderType = "prompt" // a further prompt
	OrderSteer  OrderType = "steer"  // a text to be read during the current answer, or right after it
	OrderAnswer OrderType = "answer" // to a question of the agent
	OrderCancel OrderType = "cancel" // stop what you are doing
)

// Order is one line on an agent's standard input. Unknown fields are ignored: the sender may be
// newer than the agent.
type Order struct {
	Type   OrderType `json:"type"`
	Text   string    `json:"text,omitempty"`   // start, prompt, steer; of an answer: a comment, if the program accepts one
	Images []string  `json:"images,omitempty"` // start: paths of images that belong to the prompt
	ID     string    `json:"id,omitempty"`     // answer: ID of the question; steer: the ID of the text_read event
	Option string    `json:"option,omitempty"` // answer: the chosen option

	// End is the number of bytes of input up to and including this order; 0: it was not read from input.
	End int64 `json:"-"`
}

const (
	// OrderBytesMax is the longest order that is read: a prompt of maximum size, each byte of it encoded
	// as six.
	OrderBytesMax = 8 << 20

	clippedBytes = 80 // of untrusted text in an error message
)

// Encode returns the order as a line.
func (o Order) Encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("speech: encode an order: %v", err))
	}
	return append(b, '\n')
}

// ParseOrder parses one line. A line that is not a JSON object is a prompt, so that a person can use
// an agent in a terminal.
func ParseOrder(line []byte) (Order, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD"))
	if !strings.HasPrefix(text, "{") {
		return Order{Type: OrderPrompt, Text: text}, nil
	}
	var o Order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return Order{}, fmt.Errorf("an order could not be read: %w", err)
	}
	switch o.Type {
	case OrderStart, OrderPrompt, OrderSteer, OrderAnswer, OrderCancel:
		return o, nil
	}
	return Order{}, fmt.Errorf("an order of an unknown type: %q; the types are start, prompt, steer, answer, cancel", clip.Text(string(o.Type), clippedBytes))
}

// ReadOrders sends orders to the channel until the input ends, and then closes it. It calls complain
// for each order that it cannot read, and continues. It blocks until each order is received.
func ReadOrders(in io.Reader, to chan<- Order, complain func(error)) {
	defer close(to)
	r := bufio.NewReader(in)
	taken := int64(0)
	for {
		line, length, tooLong, err := readOrderLine(r)
		taken += length
		switch {
		case tooLong:
			complain(fmt.Errorf("an order of more than %d bytes was not read", OrderBytesMax))
		case len(strings.TrimSpace(string(line))) > 0:
			if o, err := ParseOrder(line); err != nil {
				complain(err)
			} else {
				o.End = taken
				to <- o
			}
		}
		if err != nil {
			return
		}
	}
}

// readOrderLine returns the next line, and its length including the line ending.
func readOrderLine(r *bufio.Reader) (line []byte, length int64, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		length += int64(len(part))
		if len(line)+len(part) > OrderBytesMax {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, tooLong, err
		}
	}
}
