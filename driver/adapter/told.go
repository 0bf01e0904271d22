package adapter

import "github.com/fairlead-dev/fairlead/driver/speech"

// promptsMax is how many prompts may wait while one is answered; further ones are left in the pipe.
const promptsMax = 1000

// Told is what an agent was told and has not been given yet. It knows how much of its input is
// answered. Its zero value is ready.
type Told struct {
	waiting []waiting
	taken   int64 // bytes of all orders that were taken
	closed  bool
}

type waiting struct {
	text   string
	before int64 // bytes of input before it
}

// Take keeps an order: a start or a prompt waits to be given, of others only the length is noted. ok is
// false where the orders are closed, as a receive says it.
func (t *Told) Take(o speech.Order, ok bool) {
	if !ok {
		t.closed = true
		return
	}
	if o.Type == speech.OrderPrompt || o.Type == speech.OrderStart && o.Text != "" {
		t.waiting = append(t.waiting, waiting{text: o.Text, before: t.taken})
	}
	t.taken = max(t.taken, o.End)
}

// Next gives the prompt that waits longest.
func (t *Told) Next() (text string, ok bool) {
	if len(t.waiting) == 0 {
		return "", false
	}
	text, t.waiting = t.waiting[0].text, t.waiting[1:]
	return text, true
}

// Waits says whether a prompt waits to be given.
func (t *Told) Waits() bool { return len(t.waiting) > 0 }

// Answered is how many bytes of input are answered, when no answer is under way: what a listening
// event says.
func (t *Told) Answered() int64 {
	if len(t.waiting) > 0 {
		return t.waiting[0].before
	}
	return t.taken
}

// Full says whether no more orders should be taken until a prompt was given.
func (t *Told) Full() bool { return len(t.waiting) >= promptsMax }

// Closed says whether nobody will say any more.
func (t *Told) Closed() bool { return t.closed }

// Over says whether nothing is left to be answered and nobody will say any more.
func (t *Told) Over() bool { return t.closed && len(t.waiting) == 0 }
