package speech

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// OrderType is what kind of thing an agent is told.
type OrderType string

const (
	OrderStart  OrderType = "start"  // the first one: carries the prompt that the process was started for
	OrderPrompt OrderType = "prompt" // somebody says something
	OrderAnswer OrderType = "answer" // to a question of the agent
	OrderCancel OrderType = "cancel" // stop what you are doing
)

// Order is one line on an agent's standard input. Fields that are not known are
// ignored: who gives the orders may be newer than who takes them.
type Order struct {
	Type   OrderType `json:"type"`
	Text   string    `json:"text,omitempty"`   // start, prompt; of an answer: words that go with it, where the program takes any
	ID     string    `json:"id,omitempty"`     // answer: of the question
	Option string    `json:"option,omitempty"` // answer: the one chosen

	// End is how many bytes of input came up to and including this order; 0: it was not read from anywhere.
	End int64 `json:"-"`
}

const (
	// OrderBytesMax is the longest order that is read: a prompt at its limit, each
	// byte of it written as six.
	OrderBytesMax = 8 << 20

	clippedBytes = 80 // of somebody else's words in one of our errors
)

// Encode is the order as a line.
func (o Order) Encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("speech: an order that is no JSON: %v", err))
	}
	return append(b, '\n')
}

// ParseOrder reads one line. A line that is no JSON object is a prompt, so that a
// person can play with an agent from a terminal.
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
	case OrderStart, OrderPrompt, OrderAnswer, OrderCancel:
		return o, nil
	}
	return Order{}, fmt.Errorf("an order of the unknown type %q; there are start, prompt, answer, cancel", clip(string(o.Type)))
}

// ReadOrders hands on what comes in until it ends, and then closes the channel; what it cannot
// read it complains of, and goes on. It waits for each order to be taken.
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

// readOrderLine gives the next line, and how long it was with its end.
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

// clip is the beginning of somebody else's words, for one of our errors.
func clip(s string) string {
	if len(s) <= clippedBytes {
		return s
	}
	return strings.ToValidUTF8(s[:clippedBytes], "") + "…"
}
