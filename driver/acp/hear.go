package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

const (
	callsMax      = 4096 // calls that are remembered; a session with more begins to forget
	sameFaultsMax = 20   // of one fault; a program that repeats itself fills nobody's log
	errorWordsMax = 200  // of an answer: enough to see whether it is an error
)

// trackedCall is a call of a tool, in pieces. It is told once, as soon as what matters is known.
type trackedCall struct {
	call   toolCall
	told   bool
	over   bool
	since  time.Time // when it was first heard of
	answer int       // in which answer
}

// hear takes one message from the program.
func (p *play) hear(raw json.RawMessage) {
	switch m := decode(raw); m.kind {
	case response:
		p.replied(m)
	case notification:
		p.noticed(m)
	case request:
		p.requested(m)
	default:
		p.fault(m.text, m.raw)
	}
}

func (p *play) replied(m message) {
	id, ok := m.number()
	if !ok || p.waiting == 0 || id != p.waiting {
		p.fault("an answer to what was not asked, or was answered before", m.raw)
		return
	}
	p.waiting, p.reply = 0, &m
}

func (p *play) requested(m message) {
	if m.method == "session/request_permission" {
		p.asked(m)
		return
	}
	result, failed := p.serve(m.method, m.params)
	if failed != nil {
		if !strings.HasPrefix(m.method, "fs/") && !strings.HasPrefix(m.method, "terminal/") { // programs ask for those unoffered
			p.fault("a request that is not served: "+clip(m.method, 100), m.raw)
		}
		p.send(refusal{"2.0", m.id, *failed})
		return
	}
	p.send(reply{"2.0", m.id, result})
}

// Host serves what a program may ask of us besides permission: its files (fs/…) and its
// terminals (terminal/…). The next version of the protocol has no such methods, and a program that
// works through ours would work around its own questions, so nobody serves them here.
type Host interface {
	// Serve gives the result of a method, a value that can be JSON, or false where it has none.
	Serve(method string, params json.RawMessage) (result any, ok bool)
}

func (p *play) serve(method string, params json.RawMessage) (any, *rpcError) {
	if p.host != nil {
		if result, ok := p.host.Serve(method, params); ok {
			return result, nil
		}
	}
	return nil, &rpcError{Code: methodNotFound, Message: "Method not found: " + clip(method, 100)}
}

func (p *play) noticed(m message) {
	switch m.method {
	case "session/update":
		p.updated(m)
	case "$/cancel_request":
		if id := objectOf(m.params)["requestId"]; id != nil {
			p.withdraw(id)
		}
	default:
		p.fault("a notification that is not known: "+clip(m.method, 100), m.raw)
	}
}

// updated hears session/update.
func (p *play) updated(m message) {
	u := readUpdate(m.params)
	switch u.kind {
	case modeChanged:
		p.moded(u.mode)
		return
	case configChanged:
		p.configured(u.options)
		return
	}
	if p.replaying { // what was said in an older life is no news
		return
	}
	if u.spent != nil {
		p.spend(*u.spent)
	}
	own := u.session == "" || u.session == p.talk.session
	switch u.kind {
	case messageChunk, thoughtChunk:
		if own {
			p.speak(u)
		}
	case toolBegan, toolChanged:
		p.called(u.call, u.kind == toolBegan, m.params)
	case planned:
		if u.text != "" && u.text != p.plan {
			p.plan = u.text
			p.stage.Out.Tell(speech.Event{Type: driver.Said, Tool: "plan", Text: u.text})
		}
	case noticed:
		p.stage.Out.Tell(speech.Event{Type: driver.Said, Tool: "notice", Text: u.text})
	case usageChanged:
		p.cost(u.cost)
	default:
		if !slices.Contains(quiet, u.kind) {
			p.fault("an update of a kind that is not known: "+clip(u.kind, 100), m.raw)
		}
	}
}

// speak tells a chunk of what the agent says or thinks.
func (p *play) speak(u update) {
	kind := driver.Said
	if u.kind == thoughtChunk {
		kind = driver.Thought
	}
	if u.message != p.message {
		p.stage.Out.Hush()
		p.message, p.words = u.message, ""
	}
	if kind == driver.Said && len(p.words) < errorWordsMax {
		p.words = clip(p.words+u.text, 2*errorWordsMax)
	}
	p.stage.Out.Speak(kind, u.text)
}

// called hears a piece of a call: it is told when it is whole, when it runs, or when it is over.
func (p *play) called(c toolCall, began bool, raw json.RawMessage) {
	t := p.track(c, began)
	t.call = t.call.with(c)
	switch t.call.status {
	case "completed", "failed":
		p.tellCall(t, raw)
		t.over = true
		t.call = toolCall{id: t.call.id, name: t.call.name, kind: t.call.kind, title: t.call.title} // its arguments are history
		return
	}
	if t.call.whole(t.call.tool(serverName)) {
		p.tellCall(t, raw)
	}
}

// track finds the call that a piece belongs to, or begins to remember a new one. Some programs number
// their calls anew with each answer, and some give no number: what begins where another is over,
// or in another answer, is another call, and so is what is asked for then. An update may come late.
func (p *play) track(c toolCall, begins bool) *trackedCall {
	t := p.calls[c.id]
	if t != nil && c.id != "" && (!begins || t.answer == p.answers && !t.over) {
		return t
	}
	if len(p.calls) >= callsMax {
		p.tellCalls()
		clear(p.calls)
	}
	t = &trackedCall{call: c, since: time.Now(), answer: p.answers}
	p.calls[c.id] = t
	p.untold = append(p.untold, t)
	return t
}

// tellCall tells a call, once.
func (p *play) tellCall(t *trackedCall, raw json.RawMessage) {
	if t.told {
		return
	}
	t.told = true
	p.untold = slices.DeleteFunc(p.untold, func(other *trackedCall) bool { return other == t })
	p.words = ""
	tool := t.call.tool(serverName)
	args, cut := t.call.told(tool, p.part.Dir)
	p.stage.Out.Tell(speech.Event{
		Type: driver.ToolCalled, Tool: tool, Text: t.call.what(tool, p.part.Dir), Args: args, Cut: cut, Raw: raw,
	})
}

// tellCalls tells all calls that were not whole until now.
func (p *play) tellCalls() {
	for _, t := range slices.Clone(p.untold) {
		p.tellCall(t, nil)
	}
}

// spend counts tokens that one request to the model took.
func (p *play) spend(u usage) {
	p.here.input, p.here.output = p.here.input+u.input, p.here.output+u.output
	p.report(driver.Usage{InputTokens: u.input, OutputTokens: u.output})
}

// spent counts what an answer took, as its end says it, less what was told of it before.
func (p *play) spent(u *usage) {
	if u != nil {
		p.report(driver.Usage{InputTokens: max(u.input-p.here.input, 0), OutputTokens: max(u.output-p.here.output, 0)})
	}
	p.here = usage{}
}

// cost counts money: the program tells what the conversation has cost so far. Of one that goes on
// the beginning was counted in an older life, and how much that was it does not say; so there the
// first sum is where counting begins.
func (p *play) cost(sum *float64) {
	if sum == nil {
		return
	}
	if p.priced || !p.resumed {
		p.report(driver.Usage{CostUSD: max(*sum-p.paid, 0)})
	}
	p.paid, p.priced = *sum, true
}

func (p *play) report(u driver.Usage) {
	if u != (driver.Usage{}) {
		p.stage.Out.Tell(speech.Event{Type: driver.UsageReported, Usage: u})
	}
}

// fault tells what was not understood. The same one is told so many times, and then not any more.
func (p *play) fault(text string, raw json.RawMessage) {
	if p.faults == nil {
		p.faults = make(map[string]int)
	}
	if len(p.faults) >= callsMax {
		clear(p.faults)
	}
	p.faults[text]++
	switch n := p.faults[text]; {
	case n < sameFaultsMax:
		p.stage.Out.Tell(speech.Event{Type: driver.Faulted, Text: text, Raw: raw})
	case n == sameFaultsMax:
		p.stage.Out.Tell(speech.Event{Type: driver.Faulted, Text: fmt.Sprintf("%s; this was the case %d times, further ones are not told", text, n), Raw: raw})
	}
}
