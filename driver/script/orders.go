package script

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
	OrderStart  OrderType = "start"  // the first one, where the process was started with --told: carries the prompt
	OrderPrompt OrderType = "prompt" // somebody says something
	OrderAnswer OrderType = "answer" // to a question of the agent
	OrderCancel OrderType = "cancel" // stop what you are doing
)

// Order is one line on an agent's standard input. Fields that are not known are
// ignored: who gives the orders may be newer than who takes them.
type Order struct {
	Type   OrderType `json:"type"`
	Text   string    `json:"text,omitempty"`   // start, prompt
	ID     string    `json:"id,omitempty"`     // answer: of the question
	Option string    `json:"option,omitempty"` // answer: the one chosen

	end int64 // bytes of input up to and including this order; 0: it was not read from anywhere
}

// orderBytesMax is the longest order that is read: a prompt at its limit, each
// byte of it written as six.
const orderBytesMax = 8 << 20

func (o Order) encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("script: an order that is no JSON: %v", err))
	}
	return append(b, '\n')
}

// parseOrder reads one line. A line that is no JSON object is a prompt, so that a
// person can play with a script from a terminal.
func parseOrder(line []byte) (Order, error) {
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

// readOrders hands on what comes in until it ends; what it cannot read it
// complains of, and goes on.
func readOrders(in io.Reader, to chan<- Order, complain func(error)) {
	defer close(to)
	r := bufio.NewReader(in)
	taken := int64(0)
	for {
		line, length, tooLong, err := readOrderLine(r)
		taken += length
		switch {
		case tooLong:
			complain(fmt.Errorf("an order of more than %d bytes was not read", orderBytesMax))
		case len(strings.TrimSpace(string(line))) > 0:
			if o, err := parseOrder(line); err != nil {
				complain(err)
			} else {
				o.end = taken
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
		if len(line)+len(part) > orderBytesMax {
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
