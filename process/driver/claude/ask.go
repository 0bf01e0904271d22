package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	asksMax        = 64 // open at the same time; a program that asks more does not wait for answers
	suggestionsMax = 8  // per question, for readability
	choicesMax     = 16 // per question to a person

	askTool = "AskUserQuestion"

	optionAllow = "allow"
	optionDeny  = "deny"
	optionStop  = "deny_and_stop"

	// Kinds of options. The last three are only chosen by a person.
	kindAllow     = "allow_once"
	kindAlways    = "allow_always"
	kindDeny      = "reject_once"
	kindAllowMode = "allow_once_and_mode" // the program would also ask less from then on
	kindDenyStop  = "reject_and_stop"
	kindChoice    = "choice" // a choice in a question to a person

	refusalWords = "This was denied. Do not try to achieve the same in another way; continue with what you may do, or say what you need."
)

// suggestion is a change of permissions that the program proposes with a question. qwen sends the
// labels of its own dialog in this field.
type suggestion struct {
	Type  string `json:"type"` // addRules, replaceRules, removeRules, setMode, addDirectories, …; qwen: allow, deny, modify
	Rules []struct {
		Tool    string `json:"toolName"`
		Content string `json:"ruleContent"`
	} `json:"rules"`
	Behavior    string   `json:"behavior"`
	Mode        string   `json:"mode"`
	Directories []string `json:"directories"`

	Label       string `json:"label"`
	Description string `json:"description"`

	raw json.RawMessage
}

// UnmarshalJSON keeps the original bytes: they are sent back unchanged if the suggestion is chosen.
func (s *suggestion) UnmarshalJSON(b []byte) error {
	type plain suggestion
	s.raw = append([]byte(nil), b...)
	_ = json.Unmarshal(b, (*plain)(s)) // an unknown shape offers nothing
	return nil
}

// question is a pending question of the program, with the response for each option.
type question struct {
	request  string
	subagent string // ID of the subagent that asks; empty: the agent itself
	what     string // the call, in one line
	asks     string // the call as the program sent it
	event    driver.Fact
	answers  map[string]answer // by option ID
}

// answer is the response to can_use_tool.
type answer struct {
	Behavior    string            `json:"behavior"` // allow, deny
	Input       json.RawMessage   `json:"updatedInput,omitempty"`
	Permissions []json.RawMessage `json:"updatedPermissions,omitempty"`
	Message     string            `json:"message,omitempty"`
	Interrupt   bool              `json:"interrupt,omitempty"`
}

// ask creates a question from a request.
func ask(id string, r request, dir string, raw json.RawMessage) question {
	c := ourCall(r.Tool, r.Input)
	q := question{
		request: id, subagent: r.Agent, what: strings.TrimSpace(adapter.OneLine(c.Tool) + " " + c.what()),
		answers: make(map[string]answer),
	}
	q.event = driver.Fact{
		Kind: driver.PermissionAsked, Tool: c.Tool, Args: c.Args, Cut: c.Cut, Text: askedWords(c, r), Raw: raw,
		Ask: driver.Ask{ID: id, Paths: c.paths(dir, r.BlockedPath)},
	}
	input := r.Input
	if len(input) == 0 || input[0] != '{' {
		input = json.RawMessage("{}")
	}
	if c.Tool == askTool && q.choices(input) {
		return q
	}
	q.option(optionAllow, kindAllow, "Allow", answer{Behavior: "allow", Input: input})
	q.suggest(r, input)
	q.option(optionDeny, kindDeny, "Deny", answer{Behavior: "deny", Message: refusalWords})
	q.option(optionStop, kindDenyStop, "Deny, and end this answer", answer{Behavior: "deny", Message: refusalWords, Interrupt: true})
	return q
}

func (q *question) option(id, kind, label string, a answer) {
	q.event.Options = append(q.event.Options, driver.Option{ID: id, Kind: kind, Label: label})
	q.answers[id] = a
}

// suggest adds the program's suggestions as options. All of them are limited to the current session:
// Fairlead writes nothing into settings files.
func (q *question) suggest(r request, input json.RawMessage) {
	for i, s := range r.Suggestions {
		label, kind := s.words()
		if label == "" || i >= suggestionsMax || kind == kindAlways && r.NoAlways {
			continue
		}
		q.option(fmt.Sprintf("allow_%d", i+1), kind, label,
			answer{Behavior: "allow", Input: input, Permissions: []json.RawMessage{forSession(s.raw)}})
	}
}

// words describes the effect of a suggestion; empty if it cannot be offered.
func (s suggestion) words() (label, kind string) {
	switch {
	case s.Type == "addRules" && s.Behavior == "allow" && len(s.Rules) > 0:
		var rules []string
		for _, r := range s.Rules {
			rule := r.Tool
			if r.Content != "" {
				rule += "(" + r.Content + ")"
			}
			rules = append(rules, adapter.OneLine(rule))
		}
		return clip.Text("Allow, and in this session also "+strings.Join(rules, ", "), adapter.WhatBytesMax), kindAlways
	case s.Type == "addDirectories" && len(s.Directories) > 0:
		return clip.Text("Allow, and in this session also in "+adapter.OneLine(strings.Join(s.Directories, ", ")), adapter.WhatBytesMax),
			kindAlways
	case s.Type == "setMode" && s.Mode != "":
		return "Allow, and continue in the mode " + adapter.Clipped(s.Mode, adapter.WhatBytesMax), kindAllowMode
	}
	return "", ""
}

// forSession returns a suggestion with its destination set to the session.
func forSession(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return raw
	}
	fields["destination"] = json.RawMessage(`"session"`)
	return encode.JSON(fields)
}

// choices adds the options of a question that the model asks a person: one question with several
// choices. It returns false for several questions, or for answers with several parts: such a call is
// allowed or denied like any other, and answered in words.
func (q *question) choices(input json.RawMessage) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields)
	asked := asks(fields["questions"])
	if len(asked) != 1 {
		return false
	}
	only := asked[0]
	if only.Multi || only.Question == "" || len(only.Options) == 0 || len(only.Options) > choicesMax {
		return false
	}
	q.event.Text = adapter.Clipped(only.Question, adapter.WhatBytesMax)
	for i, o := range only.Options {
		q.option(fmt.Sprintf("choice_%d", i+1), kindChoice, adapter.Clipped(o.Label, adapter.WhatBytesMax),
			answer{Behavior: "allow", Input: answered(input, only.Question, o.Label)})
	}
	q.option(optionDeny, kindDeny, "No answer",
		answer{Behavior: "deny", Message: "This question was not answered. Decide yourself, or say what you need and end your answer."})
	return true
}

// personQuestion is one question that a model asks a person.
type personQuestion struct {
	Question string `json:"question"`
	Multi    bool   `json:"multiSelect"`
	Options  []struct {
		Label string `json:"label"`
	} `json:"options"`
}

// asks decodes the questions in a call's arguments; none if their shape is unknown.
func asks(questions json.RawMessage) (all []personQuestion) {
	if json.Unmarshal(questions, &all) != nil {
		return nil
	}
	return all
}

// answered returns the input of the question with its answer added.
func answered(input json.RawMessage, question, label string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil || fields == nil {
		fields = make(map[string]json.RawMessage)
	}
	fields["answers"] = encode.JSON(map[string]string{question: label})
	return encode.JSON(fields)
}

// askedWords describes in one line what is asked for, and why the program asks.
func askedWords(c call, r request) string {
	text := adapter.OneLine(r.Title)
	if text == "" {
		text = strings.TrimSpace(c.Tool + " " + c.what())
	}
	if r.Agent != "" {
		text += " (a subagent)"
	}
	if why := adapter.OneLine(r.Reason.Text); why != "" {
		text += ": " + why
	}
	return clip.Text(text, 2*adapter.WhatBytesMax)
}

// response returns the response for an option; false if the option does not exist. A refusal may
// include words from the person.
func (q question) response(option, words string) (any, bool) {
	a, ok := q.answers[option]
	if !ok {
		return nil, false
	}
	if words = strings.TrimSpace(words); a.Behavior == "deny" && words != "" {
		a.Message = words
	}
	return success(q.request, a), true
}

type controlResponse struct {
	Type     string `json:"type"`
	Response any    `json:"response"`
}

func success(id string, response any) controlResponse {
	return controlResponse{"control_response", map[string]any{"subtype": "success", "request_id": id, "response": response}}
}

func failure(id, why string) controlResponse {
	return controlResponse{"control_response", map[string]any{"subtype": "error", "request_id": id, "error": why}}
}

// request handles a request of the program.
func (h *translator) request(m message, raw json.RawMessage) lineResult {
	if m.Request == nil || m.RequestID == "" {
		h.Fault("a request that cannot be answered", raw)
		return lineResult{}
	}
	switch m.Request.Subtype {
	case "can_use_tool":
		return h.asked(m.RequestID, *m.Request, raw)
	case "elicitation":
		h.Notice("a tool server requests input, which is not supported; the request is declined")
		return lineResult{send: []any{success(m.RequestID, map[string]string{"action": "decline"})}}
	}
	h.Fault("a request of an unknown kind: "+adapter.Clipped(m.Request.Subtype, 80), raw)
	return lineResult{send: []any{failure(m.RequestID, "unknown request: "+m.Request.Subtype)}}
}

func (h *translator) asked(id string, r request, raw json.RawMessage) lineResult {
	if q, again := h.open[id]; again && q.asks == r.Tool+" "+string(r.Input) {
		return lineResult{} // a repetition after a gap; the answer is on its way
	} else if again { // it would be unclear which of the two an answer belongs to
		h.Fault("two permission questions with the same id; both are denied", raw)
		h.withdraw(id)
		return lineResult{send: []any{success(id, answer{Behavior: "deny", Message: refusalWords})}}
	}
	h.call(r.ToolUse, r.Tool, r.Input, raw)
	if r.Tool == "" || len(h.open) >= asksMax {
		h.Fault("a permission question that cannot be answered; it is denied", raw)
		return lineResult{send: []any{success(id, answer{Behavior: "deny", Message: refusalWords})}}
	}
	q := ask(id, r, h.dir, speech.CutRaw(raw))
	q.event.ID, q.asks = h.ownName(id), r.Tool+" "+string(r.Input)
	h.open[id] = q
	h.Out.Tell(q.event)
	return lineResult{}
}

// answer returns the message for the answer to a question. It returns nil if the question is not
// open, or has no such option: the question then stays open.
func (h *translator) answer(o speech.Order) any {
	q, open := h.openAs(o.ID)
	if !open {
		return nil // answered or withdrawn meanwhile
	}
	if o.Option == "" || o.Option == "cancelled" {
		o.Option = optionDeny
	}
	response, ok := q.response(o.Option, o.Text)
	if !ok {
		h.Fault(fmt.Sprintf("the question %s has no option %q; it stays open", adapter.Clipped(o.ID, 80), adapter.Clipped(o.Option, 80)),
			nil)
		return nil
	}
	delete(h.open, q.request)
	if q.answers[o.Option].Behavior == "deny" && q.event.Tool != askTool && len(h.denied) < adapter.DeniedMax {
		h.denied = append(h.denied, q.what)
	}
	return response
}

func (h *translator) withdraw(id string) {
	if q, open := h.open[id]; open {
		delete(h.open, id)
		h.Out.Tell(driver.Fact{Kind: driver.PermissionWithdrawn, Ask: driver.Ask{ID: q.event.ID}})
	}
}

// ownName returns a name for a question whose own ID may have been used before. A reused name that
// was already answered would never be shown again.
func (h *translator) ownName(id string) string {
	h.asks++
	if _, before := h.askNames[id]; before || len(h.askNames) >= callsMax {
		return fmt.Sprintf("%s#%d", id, h.asks)
	}
	h.askNames[id] = true
	return id
}

// openAs finds an open question by its reported name.
func (h *translator) openAs(told string) (question, bool) {
	for _, q := range h.open {
		if q.event.ID == told {
			return q, true
		}
	}
	return question{}, false
}

// response handles the program's response to one of our requests.
func (h *translator) response(m message, raw json.RawMessage) lineResult {
	if m.Response == nil {
		h.Fault("an empty response to one of Fairlead's requests", raw)
		return lineResult{}
	}
	if m.Response.Subtype == "error" {
		h.Fault("the program rejects one of Fairlead's requests: "+adapter.Clipped(m.Response.Error.Text, adapter.NoticeBytesMax), raw)
	}
	if m.Response.RequestID != greetingID {
		return lineResult{}
	}
	var says struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal(m.Response.Response, &says) == nil && says.SessionID != "" {
		h.name(driver.Conversed{ID: says.SessionID})
	}
	return lineResult{ready: true}
}
