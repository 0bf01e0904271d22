package server

import (
	"slices"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// Limits of what a session's view repeats of its history; all of it is in the folder.
const (
	dispatchLinesMax   = 200     // of the newest; more than this nobody reads on a page
	dispatchDenialsMax = 50      // the same
	dispatchTextMax    = 4 << 10 // of a task or an input that waits, in bytes; all of it is in dialogue.md
)

// dispatchBook is what was read of one session's history. It grows by what the history grows.
type dispatchBook struct {
	next    int64 // byte of state.jsonl to go on from
	count   int
	lines   []api.DispatchLine
	denials []api.DispatchDenial // the oldest first
	input   string               // the last one, shortened
	fault   string               // the last line that could not be believed, in words
}

// take adds a line. fault says why it was not believed, where it was not.
func (b *dispatchBook) take(ch dispatch.Change, actor api.Actor, foreign bool, fault string) {
	b.count++
	if fault != "" {
		b.fault = api.Shorten(fault)
	}
	line := api.DispatchLine{
		Line: ch.Body.Now.Line, At: ch.At.UTC(), Row: ch.Row, Type: dispatchfolder.TypeOf(ch.Event), From: ch.From, To: ch.To,
		Trigger: excerpt(ch.Trigger, dispatchTextMax), Actor: actor, Foreign: foreign,
	}
	if line.Type == "" {
		line.Type = "unknown"
	}
	if ch.Body.Conversation > 0 {
		line.Conversation = dispatch.ConversationID(ch.Body.Conversation)
	}
	if ch.From != "" && ch.From != ch.To {
		line.Shown = dispatch.Arrow(ch.From, ch.To)
		for i := range b.denials {
			if b.denials[i].Then == nil && b.denials[i].Conversation == line.Conversation {
				then := line
				b.denials[i].Then = &then
			}
		}
	}
	b.lines = lastOf(append(b.lines, line), dispatchLinesMax)
	if d := ch.Body.Denied; d != nil {
		b.denials = lastOf(append(b.denials, api.DispatchDenial{
			At: line.At, Conversation: line.Conversation, By: d.By, Tool: d.Tool, Call: d.Call, Row: d.Row,
			Reason: d.Reason, Delegate: d.Delegate, Capability: d.Capability,
		}), dispatchDenialsMax)
	}
	if said := inputOf(ch); said != "" {
		b.input = excerpt(said, dispatchTextMax)
	}
}

// inputOf is the input that a change is about; empty: about none, or nobody wrote it down.
func inputOf(ch dispatch.Change) string {
	now := ch.Body.Now
	switch {
	case ch.Event == dispatch.InputWaits && len(now.Waiting) > 0:
		return now.Waiting[len(now.Waiting)-1].Text
	case (ch.Event == dispatch.InputCame || ch.Event == dispatch.MessageTaken) && now.Open != nil:
		return now.Open.Input
	}
	return ""
}

// lastOf keeps the last so many at least, and lets go of the others now and then.
func lastOf[T any](list []T, most int) []T {
	if len(list) < 2*most {
		return list
	}
	return slices.Clone(list[len(list)-most:])
}

// last are the last so many.
func last[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

// excerpt cuts a text at a character, and says that it did.
func excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	end := most - len(mark)
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + mark
}
