package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	piecesMax      = 64      // blocks reported in pieces whose whole message has not arrived yet
	pieceBytesMax  = 8 << 20 // size of one of them
	callsMax       = 4096    // calls per answer that are remembered as reported
	byWhomSubagent = "subagent"
)

// translator turns the program's messages into events. It starts and sends nothing, so the same
// lines always produce the same events.
type translator struct {
	adapter.Reporter
	program program
	dir     string
	resume  string // the conversation to resume
	mode    string // the configured mode
	now     func() time.Time

	prompted      bool // it has received a prompt
	modeRequested bool // its mode was compared with the configured one

	named  driver.Conversed
	pieces []piece
	calls  map[string]shown    // reported calls, by the program's ID
	open   map[string]question // by the program's ID
	asks   int                 // number of questions so far

	askNames map[string]bool // names used for this program's questions
	meter    meter
	heard    adapter.Answers
	limits   limits
	warned   bool // the rate limit warning was reported

	model   string             // of the agent's last request
	filled  float64            // tokens that it read and wrote there
	window  map[string]float64 // tokens that the context of each model holds, as the last answer's end said
	context int                // how full the model's context was at the end of the last answer, in percent; 0: unknown

	denied     []string // denied by Fairlead's answers, in this answer
	background int      // subagents that continue after an answer
}

// piece is a block of text that was reported as it arrived.
type piece struct {
	kind driver.FactKind
	text []byte
	more bool // the block was longer than what is kept
}

// lineResult is the result of handling a line.
type lineResult struct {
	send   []any       // messages to the program, in order
	began  bool        // an answer has begun
	ready  bool        // the program has answered the initialize request
	taken  string      // ID of a message that the program has taken: its model sees it with the next request
	after  bool        // an answer that belongs to no prompt of Fairlead has ended
	ended  bool        // the answer to the current prompt has ended
	stop   driver.Stop // if ended: how
	denied []string    // and the calls denied in it, each in one line
}

func newHearing(out *speech.Writer, p program, part adapter.Part) *translator {
	return &translator{
		Reporter: adapter.Reporter{Out: out}, program: p, dir: part.Dir, resume: part.Resume, mode: p.modeOf(part), now: time.Now,
		calls: make(map[string]shown), open: make(map[string]question), askNames: make(map[string]bool), meter: meter{trusts: p.trusts},
		heard: adapter.Answers{Table: providerErrors},
	}
}

// line handles one message. mine is the ID of the prompt that is being answered; empty: none.
func (h *translator) line(raw json.RawMessage, mine string) lineResult {
	m, err := read(raw)
	if err != nil {
		h.Fault("a message has a field of an unexpected type: "+err.Error(), raw)
	}
	switch m.Type {
	case "system":
		return h.system(m)
	case "stream_event":
		h.stream(m)
	case "assistant":
		h.assistant(m, raw)
	case "result":
		return h.result(m, mine)
	case "rate_limit_event":
		h.rate(m.Limits)
	case "control_request":
		h.heard.Work()
		return h.request(m, raw)
	case "control_response":
		return h.response(m, raw)
	case "control_cancel_request":
		h.withdraw(m.RequestID)
	case "conversation_reset":
		h.heard.Work()
		h.name(driver.Conversed{ID: m.Conversation})
	case "user":
		h.results(m)
	case "command_lifecycle":
		if m.State.Text == "started" {
			return lineResult{taken: m.Command.Text}
		}
	case "keep_alive", "tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion", "subagent_token_usage", "active_goal":
		// These types repeat what is sent elsewhere.
	case "":
		if err == nil {
			h.Fault("a message without a type", raw)
		}
	default:
		h.Fault("a message of an unknown type: "+adapter.Clipped(m.Type, 80), raw)
	}
	return lineResult{}
}

// name reports the conversation and what restricts it if that has changed. Empty fields keep their
// value.
func (h *translator) name(c driver.Conversed) {
	next := h.named
	for _, f := range []struct{ have, say *string }{
		{&next.ID, &c.ID},
		{&next.Model, &c.Model},
		{&next.Mode, &c.Mode},
		{&next.Program, &c.Program},
	} {
		if *f.say != "" {
			*f.have = adapter.Clipped(*f.say, adapter.WhatBytesMax)
		}
	}
	next.Mode = cmp.Or(next.Mode, h.mode)
	next.Resumed = h.resume != ""
	next.Enforced = h.program.enforced(next.Mode)
	if next.ID == "" || next == h.named {
		return
	}
	h.named = next
	h.Out.Tell(driver.Fact{Kind: driver.ConversationNamed, Conversation: &next})
}

func (h *translator) system(m message) lineResult {
	switch m.Subtype {
	case "init":
		h.name(driver.Conversed{ID: m.SessionID, Model: m.Model, Mode: m.mode(), Program: m.program()})
		return lineResult{began: true, send: h.requestMode(m.mode())}
	case "status":
		if m.mode() != "" {
			h.name(driver.Conversed{Mode: m.mode()})
		}
	case "compact_boundary":
		h.heard.Work()
		h.Notice("the conversation was compacted: it had become too long for its model")
		h.filled = 0
	case "api_retry":
		word := cmp.Or(m.Error.Text, unknownError)
		code := troubleOf(word, m.HTTPStatus)
		switch {
		case m.HTTPStatus > 0:
			word += fmt.Sprintf(" (HTTP %d)", m.HTTPStatus.Count())
		case code == driver.ProviderNetwork:
			word = "no connection"
		}
		words := fmt.Sprintf("%s; retry %d of %d in %s", word, m.Attempt, m.RetriesMax,
			time.Duration(m.RetryDelay.Count())*time.Millisecond)
		h.Out.Tell(driver.Fact{Kind: driver.ProviderAway, Provider: code, Text: adapter.Clipped(words, adapter.NoticeBytesMax)})
	case "permission_denied":
		h.Out.Tell(driver.Fact{
			Kind: driver.Said, Tool: "denied",
			Text: clip.Text(strings.TrimSpace(adapter.OneLine(ourCall(m.ToolName, nil).Tool+" "+m.Message.Text)), adapter.NoticeBytesMax),
		})
	case "informational", "notification":
		h.Notice(m.Content.Text)
	case "background_tasks_changed":
		h.background = 0
		for _, t := range m.Tasks {
			if t.Type == "local_agent" || t.Type == "local_workflow" {
				h.background++
			}
		}
	}
	return lineResult{}
}

// requestMode requests the configured mode again if the first answer reports another one. Later changes
// are accepted, because a person may have chosen them.
func (h *translator) requestMode(mode string) []any {
	const alias = "manual" // Claude Code's name for its default mode
	if h.modeRequested || mode == "" {
		return nil
	}
	h.modeRequested = true
	if mode == h.mode || mode == "default" && h.mode == alias || mode == alias && h.mode == "default" {
		return nil
	}
	h.Notice(fmt.Sprintf("it was started in the mode %s but is in %s; the configured mode is requested again", h.mode, mode))
	return []any{map[string]any{
		"type": "control_request", "request_id": modeID,
		"request": map[string]any{"subtype": "set_permission_mode", "mode": h.mode},
	}}
}

// stream reports text as it arrives. No known program streams the text of subagents, so it is not
// reported in pieces.
func (h *translator) stream(m message) {
	if m.Event == nil || m.Parent != "" {
		return
	}
	switch e := m.Event; e.Type {
	case "message_start":
		h.pieces = nil
	case "content_block_start":
		h.Out.EndMessage()
		if e.Block != nil && (e.Block.Type == "text" || e.Block.Type == "thinking") {
			h.pieces = append(h.pieces[max(len(h.pieces)-piecesMax+1, 0):], piece{kind: spoken(e.Block.Type)})
		}
	case "content_block_delta":
		if e.Delta == nil || len(h.pieces) == 0 {
			return
		}
		p := &h.pieces[len(h.pieces)-1]
		text := e.Delta.Text
		if p.kind == driver.Thought {
			text = e.Delta.Thinking
		}
		if len(p.text)+len(text) <= pieceBytesMax {
			p.text = append(p.text, text...)
			h.Out.Speak(p.kind, text)
		} else {
			p.more = true // the rest is reported with the whole message
		}
	case "content_block_stop", "message_stop":
		h.Out.EndMessage()
	}
}

func spoken(blockType string) driver.FactKind {
	if blockType == "thinking" {
		return driver.Thought
	}
	return driver.Said
}

// assistant reports the parts of a whole message that were not reported in pieces.
func (h *translator) assistant(m message, raw json.RawMessage) {
	t, err := m.turn()
	if err != nil {
		h.Fault("a message has a field of an unexpected type: "+err.Error(), raw)
	}
	if m.Parent == "" && t.Usage != nil {
		of := t.Usage.sum()
		h.model, h.filled = t.Model, float64(of.InputTokens+of.OutputTokens)
	}
	if m.Parent == "" {
		h.limits.word = m.Error.Text // an earlier failure was retried
	}
	for _, b := range t.Content {
		switch b.Type {
		case "text":
			h.words(driver.Said, b.Text, m.Parent)
		case "thinking":
			h.words(driver.Thought, b.Thinking, m.Parent)
		case "tool_use", "server_tool_use":
			h.call(b.ID, b.Name, b.Input, raw)
		}
	}
	if fresh := h.meter.message(t.ID, t.Model, t.Usage); !fresh.Empty() {
		h.heard.Work()
		h.Out.Tell(driver.Fact{
			Kind: driver.UsageReported, Usage: fresh,
			Context: driver.ContextPercent(h.filled, h.window[h.model]),
		})
	}
}

// words reports a block of text once: pieces that were already reported are not repeated.
func (h *translator) words(kind driver.FactKind, text, parent string) {
	if text == "" {
		return
	}
	if parent != "" {
		if kind == driver.Said { // a subagent's thoughts are useless without its prompt
			h.Out.Say(driver.Said, byWhomSubagent, text)
		}
		return
	}
	if kind == driver.Said {
		h.heard.Say(text + "\n")
	}
	whole := true
	for i := range h.pieces {
		p := &h.pieces[i]
		told := string(p.text)
		if p.kind != kind || told == "" || !strings.HasPrefix(text, told) || told != text && !p.more && i < len(h.pieces)-1 {
			continue
		}
		h.pieces = append(h.pieces[:i], h.pieces[i+1:]...)
		text, whole = text[len(told):], false
		break
	}
	if whole {
		h.Out.Say(kind, "", text)
		return
	}
	h.Out.Speak(kind, text)
	h.Out.EndMessage()
}

// call reports a tool call, once.
func (h *translator) call(id, name string, input, raw json.RawMessage) {
	h.heard.Call()
	if _, told := h.calls[id]; told && id != "" {
		return
	}
	c := ourCall(name, input)
	if id != "" && len(h.calls) < callsMax {
		h.calls[id] = shown{tool: c.Tool, diff: c.diff()}
	}
	if c.Tool == "" {
		h.Fault("a tool call without a name", raw)
		return
	}
	h.Out.Tell(driver.Fact{Kind: driver.ToolCalled, Tool: c.Tool, Text: c.what(), Args: c.Args, Cut: c.Cut, Raw: speech.CutRaw(raw)})
}

// shown is what is known of a reported call until its result comes.
type shown struct{ tool, diff string }

// results reports what tools have printed and changed. Results of a subagent's calls are not
// reported, as its calls are many.
func (h *translator) results(m message) {
	if m.Parent != "" {
		return
	}
	t, err := m.turn()
	if err != nil { // a prompt is a text
		return
	}
	for _, b := range t.Content {
		call, known := h.calls[b.Of]
		if known {
			h.calls[b.Of] = shown{tool: call.tool} // its diff is needed once
		}
		switch {
		case b.Type != "tool_result" || !known:
		case call.diff != "" && !b.IsError:
			h.Out.Result(call.tool, call.diff)
		default:
			h.Out.Result(call.tool, resultText(b.Result))
		}
	}
}

// resultText returns a tool's result as text; content that is not text is named by its type.
func resultText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var all []string
	for _, b := range blocks {
		if b.Type != "text" {
			b.Text = "[" + adapter.Clipped(b.Type, 80) + "]"
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// rate handles a rate limit message. A limit does not always end the answer: some accounts continue
// at extra cost.
func (h *translator) rate(r *rate) {
	if r != nil && r.Status == "allowed_warning" && r.Utilization > 0 && r.Utilization <= 1 {
		h.Notice(fmt.Sprintf("%.0f %% of the limit %s is used", 100*float64(r.Utilization), adapter.OneLine(r.Type)))
	}
	if r == nil || r.Status != "rejected" || r.UsingOverage || strings.HasPrefix(r.OverageStatus, "allowed") {
		return
	}
	h.limits.rejected, h.limits.until, h.limits.kind = true, r.resets(), adapter.OneLine(r.Type)
	h.limited(h.limits.until, "the subscription's limit is reached: "+h.limits.kind)
}

func (h *translator) limited(until time.Time, text string) {
	if !h.warned {
		h.warned = true
		h.Out.Tell(driver.Fact{Kind: driver.RateLimited, Until: until, Text: adapter.Clipped(text, adapter.NoticeBytesMax)})
	}
}

// result handles the end of an answer. If the answer belongs to no prompt of Fairlead (the
// program's own notification that a subagent has finished), only the cost counts.
func (h *translator) result(m message, mine string) lineResult {
	h.Out.EndMessage()
	h.pieces = nil
	clear(h.calls)
	if m.SessionID != "" && h.named.ID == "" && !m.IsError {
		h.name(driver.Conversed{ID: m.SessionID})
	}
	for _, fresh := range h.meter.end(m.result) {
		h.heard.Work()
		h.Out.Tell(driver.Fact{Kind: driver.UsageReported, Usage: fresh})
	}
	for _, id := range slices.Sorted(maps.Keys(h.open)) {
		if h.open[id].subagent == "" { // a background subagent asks on its own
			h.withdraw(id)
		}
	}
	if h.window = map[string]float64{}; len(m.ModelUsage) <= modelsMax {
		for name, u := range m.ModelUsage {
			h.window[name] = float64(u.Window)
		}
	}
	h.context = driver.ContextPercent(h.filled, h.window[h.model])
	neverBegan := m.IsError && !h.prompted
	if m.Origin != nil && m.Origin.Kind == "task-notification" || mine == "" && !neverBegan {
		return lineResult{after: true}
	}
	stop, until := verdict(m.result, m.Subtype, h.limits, h.heard.EndsWithError(endWords(m.result)), h.now())
	if !h.heard.Spoke() {
		h.heard.Say(endWords(m.result))
	}
	if failed := h.heard.Failure(); stop.OK && failed != nil {
		stop, until = *failed, resetIn(failed.Detail, h.now())
	}
	h.heard.Begin()
	if stop.Reason == session.ReasonRateLimited {
		h.limited(until, stop.Detail)
	}
	denied := append(h.denied, deniedCalls(m.Denials)...)
	h.limits, h.warned, h.denied = limits{}, false, nil
	return lineResult{ended: true, stop: stop, denied: denied}
}

// unknownError is the program's word for an error that has no HTTP status, or one that it does not know.
const unknownError = "unknown"

// troubleOf is why the provider does not answer, from the program's word for the error and the HTTP status. The words with a recorded
// sample are authentication_failed, rate_limit, server_error and unknown; the others are those of the SDK's documentation.
func troubleOf(word string, status adapter.Number) driver.ProviderCode {
	switch word {
	case "authentication_failed", "oauth_org_not_allowed":
		return driver.ProviderAuthentication
	case "billing_error":
		return driver.ProviderBilling
	case "rate_limit":
		return driver.ProviderRateLimit
	}
	known := driver.ProviderOfStatus(int(min(status.Count(), 999)))
	if known == "" && status <= 0 && word == unknownError {
		return driver.ProviderNetwork
	}
	return cmp.Or(known, driver.ProviderUnavailable)
}
