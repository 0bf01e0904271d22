package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kinds of session/update, in the protocol's words (sessionUpdate).
const (
	messageChunk  = "agent_message_chunk"
	thoughtChunk  = "agent_thought_chunk"
	userChunk     = "user_message_chunk"
	toolBegan     = "tool_call"
	toolChanged   = "tool_call_update"
	planned       = "plan"
	modeChanged   = "current_mode_update"
	configChanged = "config_option_update"
	usageChanged  = "usage_update"
	noticed       = "notice"
)

// quiet lists updates that are understood and contain nothing to report.
var quiet = []string{
	userChunk, // our own prompts, or replayed ones
	"available_commands_update", "session_info_update", "compaction_update", "compaction_summary_chunk",
	"plan_removed",
}

// update is one session/update. If its kind is unknown, only kind and session are set.
type update struct {
	session string
	kind    string

	text    string // of a chunk, a plan or a notice
	message string // message that a chunk belongs to; empty: unknown
	call    toolCall
	piece   fields // of a call: as it was sent
	mode    string
	options []configOption

	spent          *usage  // tokens of one request to the model
	filled, window float64 // tokens in the model's context, and how many it holds; 0: unknown

	cost *float64 // cost of the conversation so far, in dollars
}

// usage is a number of tokens. Both places that report it spell it this way.
type usage struct{ input, output int64 }

// readUpdate reads the parameters of session/update.
func readUpdate(params json.RawMessage) update {
	all := members(params)
	of := all.object("update")
	u := update{session: all.text("sessionId"), kind: of.text("sessionUpdate")}
	switch u.kind {
	case messageChunk, thoughtChunk:
		u.text, u.message = contentText(of["content"]), of.text("messageId")
	case toolBegan, toolChanged:
		u.call, u.piece = readToolCall(of), of
	case planned:
		u.text = planText(of.list("entries"))
	case modeChanged:
		u.mode = of.text("currentModeId")
	case configChanged:
		u.options = readConfig(of.list("configOptions"))
	case usageChanged:
		u.cost = readCost(of.object("cost"))
		u.filled, _ = of.number("used")
		u.window, _ = of.number("size")
	case noticed:
		u.text = oneLine(strings.TrimSpace(of.text("title") + " " + of.text("message") + " " + contentText(of["content"])))
	}
	u.spent = readUsage(of.object("_meta").object("usage"))
	return u
}

// contentText returns a content block as text. Content that is not text is described by its type.
func contentText(raw json.RawMessage) string {
	of := members(raw)
	switch kind := of.text("type"); kind {
	case "text":
		return of.text("text")
	case "resource_link":
		return strings.TrimSpace(of.text("name") + " " + of.text("uri"))
	case "resource":
		inner := of.object("resource")
		if text := inner.text("text"); text != "" {
			return text
		}
		return inner.text("uri")
	case "":
		return of.text("text") // for programs that omit the type
	default:
		name := of.text("name")
		if uri := of.text("uri"); name == "" && !strings.HasPrefix(uri, "data:") {
			name = uri[strings.LastIndexByte(uri, '/')+1:]
		}
		return fmt.Sprintf("[%s]", oneLine(clip(strings.Join([]string{kind, name, of.text("mimeType")}, " "), 200)))
	}
}

// planText formats a plan in one line.
func planText(entries []json.RawMessage) string {
	var all []string
	for _, raw := range entries {
		of := objectOf(raw)
		if what := oneLine(of.text("content")); what != "" {
			all = append(all, strings.TrimSpace(fmt.Sprintf("[%s] %s", of.text("status"), what)))
		}
	}
	return strings.Join(all, "; ")
}

// readUsage reads tokens; nil if they are missing or implausible.
func readUsage(of fields) *usage {
	in, some := of.number("inputTokens")
	out, more := of.number("outputTokens")
	if !some && !more || !sane(in) || !sane(out) {
		return nil
	}
	return &usage{int64(in), int64(out)}
}

// answerUsage reads the tokens of a whole answer: from usage or, as Gemini CLI sends them, from
// _meta.quota.
func answerUsage(of fields) (*usage, []modelUsage) {
	if u := readUsage(of.object("usage")); u != nil {
		return u, nil
	}
	quota := of.object("_meta").object("quota")
	var parts []modelUsage
	for _, raw := range quota.list("model_usage") {
		part := objectOf(raw)
		if u := quotaUsage(part); u != nil && len(parts) < modelsMax {
			parts = append(parts, modelUsage{*u, oneLine(part.text("model"))})
		}
	}
	return quotaUsage(quota), parts
}

// modelUsage is what one model used of an answer.
type modelUsage struct {
	usage
	model string
}

const modelsMax = 64 // more models of one answer are not counted separately

// quotaUsage reads the tokens of a quota, or of one model in it.
func quotaUsage(of fields) *usage {
	count := of.object("token_count")
	return readUsage(fields{"inputTokens": count["input_tokens"], "outputTokens": count["output_tokens"]})
}

// readCost reads the cost of a conversation so far. Currencies other than dollars are ignored: a
// limit in dollars would be wrong by an unknown factor.
func readCost(of fields) *float64 {
	amount, ok := of.number("amount")
	if currency := of.text("currency"); !ok || !sane(amount) || currency != "" && currency != "USD" {
		return nil
	}
	return &amount
}

// sane reports whether an amount is plausible: no program uses 10^15 tokens.
func sane(n float64) bool { return n >= 0 && n < 1e15 }

// configOption is a selector that a program offers, and its current value.
type configOption struct {
	id, category, current string
	values                []choice
}

// choice is one of several values, modes or models.
type choice struct{ id, name, words string }

func readConfig(list []json.RawMessage) []configOption {
	var all []configOption
	for _, raw := range list {
		of := objectOf(raw)
		o := configOption{id: of.text("id"), category: of.text("category"), current: of.text("currentValue")}
		if o.id == "" {
			continue
		}
		for _, raw := range of.list("options") {
			value := objectOf(raw)
			for _, raw := range append([]json.RawMessage{raw}, value.list("options")...) { // a group contains options itself
				if value := objectOf(raw); value.text("value") != "" {
					o.values = append(o.values, choice{value.text("value"), value.text("name"), value.text("description")})
				}
			}
		}
		all = append(all, o)
	}
	return all
}

// opened is the answer to session/new, session/load and session/resume.
type opened struct {
	session string
	modes   []choice
	mode    string
	models  []choice
	model   string
	options []configOption
}

func readOpened(result json.RawMessage) opened {
	of := objectOf(result)
	modes, models := of.object("modes"), of.object("models")
	return opened{
		session: of.text("sessionId"),
		modes:   readChoices(modes.list("availableModes"), "id"), mode: modes.text("currentModeId"),
		models: readChoices(models.list("availableModels"), "modelId"), model: models.text("currentModelId"),
		options: readConfig(of.list("configOptions")),
	}
}

func readChoices(list []json.RawMessage, id string) []choice {
	var all []choice
	for _, raw := range list {
		of := objectOf(raw)
		if of.text(id) != "" {
			all = append(all, choice{of.text(id), of.text("name"), of.text("description")})
		}
	}
	return all
}

// option finds the selector for a mode or a model: by its category or, if the program sends none, by
// its ID.
func (o opened) option(what string) *configOption {
	for _, by := range []func(configOption) string{
		func(c configOption) string { return c.category },
		func(c configOption) string { return c.id },
	} {
		if i := slices.IndexFunc(o.options, func(c configOption) bool { return by(c) == what }); i >= 0 {
			return &o.options[i]
		}
	}
	return nil
}

// choose finds the value with the given ID or name, or the only one whose ID ends with want (m1 for
// scripted/m1). It returns an empty string if no value or several values match.
func choose(from []choice, want string) string {
	for _, fits := range []func(choice) bool{
		func(c choice) bool { return c.id == want },
		func(c choice) bool { return strings.EqualFold(c.name, want) },
		func(c choice) bool { return strings.HasSuffix(c.id, "/"+want) },
	} {
		var found []string
		for _, c := range from {
			if fits(c) && !slices.Contains(found, c.id) {
				found = append(found, c.id)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// listed lists values for an error message.
func listed(all []choice) string {
	const most = 20 // a program may know hundreds of models
	var ids []string
	for _, c := range all[:min(len(all), most)] {
		ids = append(ids, c.id)
	}
	text := strings.Join(ids, ", ")
	if len(all) > most {
		text += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return text
}
