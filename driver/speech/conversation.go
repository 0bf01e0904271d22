package speech

import (
	"context"
	"fmt"
	"iter"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/session"
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
func Outcome(_ driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
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
