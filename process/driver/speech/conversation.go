package speech

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Conversation is the conversation of one session with an agent that speaks this protocol.
type Conversation struct {
	Wire   driver.Wire
	Steers bool // the agent obeys OrderSteer
}

// Facts makes one fact of every line.
func (c Conversation) Facts(ctx context.Context, from int64) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for line, err := range driver.ReadLines(ctx, c.Wire, from) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			if !yield(Fact(line), nil) {
				return
			}
		}
	}
}

// Prompt sends the agent a prompt.
func (c Conversation) Prompt(ctx context.Context, text string) error {
	if err := CheckPrompt(text); err != nil {
		return err
	}
	return c.send(ctx, Order{Type: OrderPrompt, Text: text})
}

// Steer sends the agent a text that it reads during its answer.
func (c Conversation) Steer(ctx context.Context, id, text string) error {
	if !c.Steers {
		return driver.ErrNoSteer
	}
	if err := CheckPrompt(text); err != nil {
		return err
	}
	return c.send(ctx, Order{Type: OrderSteer, ID: id, Text: text})
}

// Answer answers a question for permission.
func (c Conversation) Answer(ctx context.Context, ask, option string) error {
	return c.send(ctx, Order{Type: OrderAnswer, ID: ask, Option: option})
}

// Cancel ends the current work and then the session.
func (c Conversation) Cancel(ctx context.Context) error {
	return c.send(ctx, Order{Type: OrderCancel})
}

func (c Conversation) send(ctx context.Context, o Order) error {
	if err := c.Wire.Send(ctx, o.Encode()); err != nil {
		return fmt.Errorf("send %s to the agent: %w", o.Type, err)
	}
	return nil
}

// CheckPrompt returns an error if a prompt is too long.
func CheckPrompt(text string) error {
	if len(text) > driver.PromptBytesMax {
		return fmt.Errorf("the prompt has %d bytes, the limit is %d; put it in a file and name the file", len(text), driver.PromptBytesMax)
	}
	return nil
}

// Outcome is decided by the terminal event alone: an exit code says too little.
func Outcome(_ driver.Session, exit session.Exit, stop *driver.Stop) driver.Outcome {
	switch {
	case stop != nil && stop.OK:
		return driver.Outcome{OK: true, Why: stop.Detail}
	case stop != nil && (stop.Reason == "failed" || stop.Reason == session.ReasonDied) && stop.Detail != "":
		return driver.Outcome{Why: stop.Detail} // the caller adds that it failed
	case stop != nil && stop.Detail != "":
		return driver.Outcome{Why: stop.Reason + ": " + stop.Detail}
	case stop != nil:
		return driver.Outcome{Why: stop.Reason}
	case exit.Signal != "":
		return driver.Outcome{Why: "ended by " + exit.Signal + " before it had finished"}
	case exit.Code < 0:
		return driver.Outcome{Why: "ended before it had finished; the exit status is unknown"}
	}
	return driver.Outcome{Why: fmt.Sprintf("ended with exit code %d without reporting that it had finished", exit.Code)}
}

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
func (o Order) Encode() []byte { return append(encode.JSON(o), '\n') }

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
	return Order{},
		fmt.Errorf("an order of an unknown type: %q; the types are start, prompt, steer, answer, cancel",
			clip.Text(string(o.Type), clippedBytes))
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
