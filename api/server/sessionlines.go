package server

import (
	"cmp"
	"slices"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Limits of the history in a session's view; the folder has all of it.
const (
	dispatchLinesMax   = 200     // of the newest; a page shows no more
	dispatchDenialsMax = 50      // the same
	dispatchTextMax    = 4 << 10 // of a task or a waiting input, in bytes; dialogue.md has all of it
)

// dispatchHistory is the part of one session's history that was read. It is extended as the history
// grows.
type dispatchHistory struct {
	next    int64 // byte of state.jsonl at which to continue
	count   int
	lines   []api.DispatchLine
	denials []api.DispatchDenial // the oldest first
	input   string               // the last one, shortened
	fault   string               // the last invalid line, in words
}

// take adds a line. fault says why the line is not valid; empty: it is.
func (b *dispatchHistory) take(ch change.Change, foreign bool, fault string) {
	b.count++
	body, event := change.As[dispatch.Body](ch.Body), dispatch.Event(ch.Trigger)
	if fault != "" {
		b.fault = api.Shorten(fault)
	}
	line := api.DispatchLine{
		Line: body.Now.Line, At: ch.At.UTC(), Row: ch.Row, Type: dispatchfolder.TypeOf(event), From: ch.From, To: ch.To,
		Trigger: clip.Within(body.Trigger, dispatchTextMax), Actor: ch.Actor, Foreign: foreign,
	}
	line.Type = cmp.Or(line.Type, "unknown")
	if body.Conversation > 0 {
		line.Conversation = dispatch.ConversationID(body.Conversation)
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
	if d := body.Denied; d != nil {
		b.denials = lastOf(append(b.denials, api.DispatchDenial{
			At: line.At, Conversation: line.Conversation, By: d.By, Tool: d.Tool, Call: d.Call, Row: d.Row,
			Reason: d.Reason, Delegate: d.Delegate, Capability: d.Capability,
		}), dispatchDenialsMax)
	}
	if said := inputOf(event, &body.Now); said != "" {
		b.input = clip.Within(said, dispatchTextMax)
	}
}

// inputOf returns the input that a change is about; empty: none, or it was not recorded.
func inputOf(event dispatch.Event, now *dispatch.Now) string {
	switch {
	case event == dispatch.InputWaits && len(now.Waiting) > 0:
		return now.Waiting[len(now.Waiting)-1].Text
	case (event == dispatch.InputCame || event == dispatch.MessageTaken) && now.Open != nil:
		return now.Open.Input
	}
	return ""
}

// lastOf keeps at least the last `most` elements, and drops the others from time to time.
func lastOf[T any](list []T, most int) []T {
	if len(list) < 2*most {
		return list
	}
	return slices.Clone(list[len(list)-most:])
}

// last returns at most the last `most` elements.
func last[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }
