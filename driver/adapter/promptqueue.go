package adapter

import "github.com/fairlead-dev/fairlead/driver/speech"

// promptsMax is how many prompts may be queued during an answer; further ones stay in the pipe.
const promptsMax = 1000

// PromptQueue queues the prompts for an agent and counts how much of its input has been answered.
// Its zero value is ready to use.
type PromptQueue struct {
	waiting []waiting
	images  []string // of the newest prompt that was removed
	taken   int64    // bytes of all orders received
	closed  bool
}

type waiting struct {
	text   string
	images []string
	before int64 // bytes of input before it
}

// Take adds an order. A start or a prompt is queued; of other orders only the length is counted. ok
// is false if the channel of orders is closed.
func (t *PromptQueue) Take(o speech.Order, ok bool) {
	if !ok {
		t.closed = true
		return
	}
	if o.Type == speech.OrderPrompt || o.Type == speech.OrderStart && o.Text != "" {
		t.waiting = append(t.waiting, waiting{text: o.Text, images: o.Images, before: t.taken})
	}
	t.taken = max(t.taken, o.End)
}

// Next removes and returns the oldest queued prompt.
func (t *PromptQueue) Next() (text string, ok bool) {
	if len(t.waiting) == 0 {
		return "", false
	}
	text, t.images, t.waiting = t.waiting[0].text, t.waiting[0].images, t.waiting[1:]
	return text, true
}

// Images returns the paths of the images of the prompt that Next returned last.
func (t *PromptQueue) Images() []string { return t.images }

// Answered returns how many bytes of input are answered if no answer is in progress: the value for a
// listening event.
func (t *PromptQueue) Answered() int64 {
	if len(t.waiting) > 0 {
		return t.waiting[0].before
	}
	return t.taken
}

// Full reports whether the queue is full. Do not receive more orders then.
func (t *PromptQueue) Full() bool { return len(t.waiting) >= promptsMax }

// Closed reports whether no more orders will come.
func (t *PromptQueue) Closed() bool { return t.closed }

// Over reports whether the queue is empty and no more orders will come.
func (t *PromptQueue) Over() bool { return t.closed && len(t.waiting) == 0 }
