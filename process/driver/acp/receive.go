package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	callsMax      = 4096 // calls that are remembered; the oldest are forgotten beyond this
	sameFaultsMax = 20   // reports of the same fault; a program that repeats a fault must not fill the log
	errorWordsMax = 200  // bytes of an answer that are checked for an error message
)

// trackedCall is a tool call that arrives in pieces. It is reported once, as soon as its name and
// arguments are known.
type trackedCall struct {
	call     toolCall
	reported bool
	content  []json.RawMessage // what it has printed and changed so far; each piece replaces it
	over     bool
	since    time.Time // when its first piece arrived
	answer   int       // number of the answer it belongs to
}

// receive handles one message from the program.
func (p *play) receive(raw json.RawMessage) {
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
		p.fault("a response to an unknown or already answered request", m.raw)
		return
	}
	p.waiting, p.reply = 0, &m
}

func (p *play) requested(m message) {
	if m.method == "session/request_permission" {
		p.heard.Work()
		p.asked(m)
		return
	}
	// Programs request files (fs/…) and terminals (terminal/…) although Fairlead does not offer them: the next version of the
	// protocol drops these methods, and a program that works through them bypasses its own questions.
	if !strings.HasPrefix(m.method, "fs/") && !strings.HasPrefix(m.method, "terminal/") {
		p.fault("a request that is not supported: "+clip(m.method, 100), m.raw)
	}
	p.send(refusal{"2.0", m.id, rpcError{Code: methodNotFound, Message: "Method not found: " + clip(m.method, 100)}})
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
		p.fault("an unknown notification: "+clip(m.method, 100), m.raw)
	}
}

// updated handles session/update.
func (p *play) updated(m message) {
	u := readUpdate(m.params)
	own := u.session == "" || u.session == p.conversation.session
	switch stranger := !own && p.conversation.session != ""; {
	case stranger && (u.kind == modeChanged || u.kind == configChanged):
		p.fault("the settings of another session are ignored: "+u.kind, m.raw)
		return
	case u.kind == modeChanged:
		p.moded(u.mode)
		return
	case u.kind == configChanged:
		p.configured(u.options)
		return
	}
	if p.replaying { // replayed messages of an earlier session are not new
		return
	}
	switch {
	case u.spent == nil && u.cost == nil:
	case !own:
		p.fault("the usage of another session is not counted: "+u.kind, m.raw)
	case u.spent != nil:
		p.spend(*u.spent)
	}
	switch u.kind {
	case messageChunk, thoughtChunk:
		if own {
			p.speak(u)
		}
	case toolBegan, toolChanged:
		p.called(u.call, u.piece, u.kind == toolBegan, m.params)
	case planned:
		if u.text != "" && u.text != p.plan {
			p.plan = u.text
			p.heard.Work()
			p.stage.Out.Tell(driver.Fact{Kind: driver.Said, Tool: "plan", Text: u.text})
		}
	case noticed:
		p.stage.Out.Tell(driver.Fact{Kind: driver.Said, Tool: "notice", Text: u.text})
	case usageChanged:
		if own {
			if u.window > 0 {
				p.context = driver.ContextPercent(u.filled, u.window)
			}
			p.cost(u.cost)
		}
	default:
		if !slices.Contains(quiet, u.kind) {
			p.fault("an update of an unknown kind: "+clip(u.kind, 100), m.raw)
		}
	}
}

// speak reports a chunk of the agent's message or thought.
func (p *play) speak(u update) {
	kind := driver.Said
	if u.kind == thoughtChunk {
		kind = driver.Thought
	}
	if u.message != p.message {
		if p.message != "" {
			p.heard.Say("\n")
		}
		p.stage.Out.EndMessage()
		p.message, p.words = u.message, ""
	}
	if kind == driver.Said && len(p.words) < errorWordsMax {
		p.words = clip(p.words+u.text, 2*errorWordsMax)
	}
	if kind == driver.Said {
		p.heard.Say(u.text)
	}
	p.stage.Out.Speak(kind, u.text)
}

// called handles a piece of a tool call. The call is reported when it is complete, when it runs, or
// when it has ended; then with its result.
func (p *play) called(c toolCall, piece fields, began bool, raw json.RawMessage) {
	p.heard.Call()
	t := p.track(c, began)
	t.call = t.call.with(c)
	if !began && piece.has("content") { // what a call begins with describes it
		t.content = piece.list("content")
	}
	switch t.call.status {
	case "completed", "failed":
		p.tellCall(t, raw)
		if tool := t.call.tool(); !t.over {
			p.stage.Out.Result(tool, result(tool, t.content, piece))
		}
		t.over, t.content = true, nil
		// discard the arguments of the earlier call
		t.call = toolCall{id: t.call.id, name: t.call.name, kind: t.call.kind, title: t.call.title}
		return
	}
	if t.call.whole(t.call.tool()) {
		p.tellCall(t, raw)
	}
}

// track finds the call that a piece belongs to, or starts a new one. Some programs restart their
// numbering with each answer, and some send no number. Therefore a piece that begins a call after an
// earlier one has ended, or in another answer, starts a new call with its own questions. Updates may
// arrive late.
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
	p.unreported = append(p.unreported, t)
	return t
}

// tellCall reports a call, once.
func (p *play) tellCall(t *trackedCall, raw json.RawMessage) {
	if t.reported {
		return
	}
	t.reported = true
	p.unreported = slices.DeleteFunc(p.unreported, func(other *trackedCall) bool { return other == t })
	p.words = ""
	tool := t.call.tool()
	args, cut := t.call.eventArguments(tool, p.part.Dir, p.known.titled)
	p.stage.Out.Tell(driver.Fact{
		Kind: driver.ToolCalled, Tool: tool, Text: t.call.what(tool, p.part.Dir), Args: args, Cut: cut, Raw: raw,
	})
}

// tellCalls reports all calls that have not been reported yet.
func (p *play) tellCalls() {
	for _, t := range slices.Clone(p.unreported) {
		p.tellCall(t, nil)
	}
}

// spend adds the tokens of one request to the model.
func (p *play) spend(u usage) {
	p.here.input, p.here.output = p.here.input+u.input, p.here.output+u.output
	p.report(change.Usage{InputTokens: u.input, OutputTokens: u.output})
}

// spent adds the tokens of an answer as its end reports them, minus those already counted during
// the answer. If the program reports the usage of each model, that is used; otherwise the tokens
// count for the current model.
func (p *play) spent(u *usage, parts []modelUsage) {
	if u != nil {
		rest := change.Usage{InputTokens: max(u.input-p.here.input, 0), OutputTokens: max(u.output-p.here.output, 0)}
		for _, part := range parts {
			of := change.Usage{
				InputTokens: min(part.input, rest.InputTokens), OutputTokens: min(part.output, rest.OutputTokens),
				Model: part.model,
			}
			rest.InputTokens, rest.OutputTokens = rest.InputTokens-of.InputTokens, rest.OutputTokens-of.OutputTokens
			tellUsage(p, of)
		}
		if len(parts) == 0 {
			rest.Model = p.conversation.currentModel()
		}
		tellUsage(p, rest)
	}
	p.here = usage{}
}

// cost adds money. The program reports the total cost of the conversation so far. In a resumed
// conversation, the first total includes earlier sessions by an unknown amount; counting starts from
// it.
func (p *play) cost(sum *float64) {
	if sum == nil {
		return
	}
	if p.priced || !p.resumed {
		p.report(change.Usage{CostUSD: max(*sum-p.paid, 0)})
	}
	p.paid, p.priced = *sum, true
}

// report reports usage of the program's current model.
func (p *play) report(u change.Usage) {
	u.Model = p.conversation.currentModel()
	tellUsage(p, u)
}

func tellUsage(p *play, u change.Usage) {
	if !u.Empty() {
		p.heard.Work()
		p.stage.Out.Tell(driver.Fact{Kind: driver.UsageReported, Usage: u, Context: p.context})
	}
}

// fault reports a message that was not understood. Further reports of the same fault are suppressed
// after sameFaultsMax.
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
		p.stage.Out.Tell(driver.Fact{Kind: driver.Faulted, Text: text, Raw: raw})
	case n == sameFaultsMax:
		p.stage.Out.Tell(driver.Fact{
			Kind: driver.Faulted,
			Text: fmt.Sprintf("%s; this has happened %d times, further ones are not reported", text, n), Raw: raw,
		})
	}
}
