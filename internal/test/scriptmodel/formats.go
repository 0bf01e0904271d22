package scriptmodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// chat is a request of OpenAI's chat completions, as far as agent programs use it.
type chat struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role      string            `json:"role"`
		Content   content           `json:"content"`
		ToolCalls []json.RawMessage `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string `json:"name"`
			Parameters schema `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema *schema `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// content is a text, or a list of parts with texts.
type content string

// UnmarshalJSON joins the texts.
func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct {
		Text      string          `json:"text"`
		Encrypted string          `json:"encrypted_content"` // this model's keys are none: the text itself
		Image     json.RawMessage `json:"image_url"`         // a text, or an object with one
	}
	if json.Unmarshal(b, &parts) == nil {
		var texts []string
		for _, p := range parts {
			texts = append(texts, p.Text+p.Encrypted+string(p.Image))
		}
		*c = content(strings.Join(texts, "\n"))
		return nil
	}
	*c = content(b) // the test can search any other content for text
	return nil
}

const chatID = "chatcmpl-scripted"

func (c *chat) parse(body []byte) error {
	if err := json.Unmarshal(body, c); err != nil {
		return fmt.Errorf("no chat completion that can be read: %w", err)
	}
	return nil
}

func (c *chat) streams() bool { return c.Stream }

func (c *chat) asked() (question, string) {
	var q question
	for _, m := range c.Messages {
		q.turns = append(q.turns, Turn{Role: m.Role, Text: string(m.Content), Calls: len(m.ToolCalls)})
	}
	for _, t := range c.Tools {
		q.tools = append(q.tools, tool{name: t.Function.Name, props: t.Function.Parameters.Properties})
	}
	if f := c.ResponseFormat; f != nil && f.Type == "json_schema" {
		q.shape = f.JSONSchema.Schema
	}
	return q, c.Model
}

func (a answer) chatUsage() map[string]any {
	return map[string]any{"prompt_tokens": a.in, "completion_tokens": a.out, "total_tokens": a.in + a.out}
}

// chatCalls names each call by its position, so that two calls in one history differ.
func (c *chat) chatCalls(a answer) (calls []any, finish string) {
	for i, use := range a.calls {
		calls = append(calls, map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d_%d", len(c.Messages), i), "type": "function",
			"function": map[string]any{"name": use.tool.name, "arguments": use.json()},
		})
	}
	if calls == nil {
		return nil, "stop"
	}
	return calls, "tool_calls"
}

func (c *chat) whole(a answer) any {
	calls, finish := c.chatCalls(a)
	message := map[string]any{"role": "assistant", "content": a.text}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return map[string]any{
		"id": chatID, "object": "chat.completion", "created": 0, "model": c.Model, "usage": a.chatUsage(),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
	}
}

func (c *chat) stream(e *events, a answer) {
	chunk := func(choices []any, usage any) {
		e.send("", map[string]any{
			"id": chatID, "object": "chat.completion.chunk", "created": 0, "model": c.Model, "choices": choices, "usage": usage,
		})
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	if a.thought != "" {
		delta(map[string]any{"reasoning_content": a.thought}, nil)
	}
	if !e.speak(a, func(text string) { delta(map[string]any{"content": text}, nil) }) {
		return
	}
	calls, finish := c.chatCalls(a)
	for _, one := range calls {
		delta(map[string]any{"tool_calls": []any{one}}, nil)
	}
	delta(map[string]any{}, finish)
	chunk([]any{}, a.chatUsage())
	e.send("", "[DONE]")
}

// messages is a request of Anthropic's messages API, as far as Claude Code uses it.
type messages struct {
	Model    string  `json:"model"`
	Stream   bool    `json:"stream"`
	System   content `json:"system"`
	Messages []struct {
		Role    string        `json:"role"`
		Content messageBlocks `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string `json:"name"`
		Schema schema `json:"input_schema"`
	} `json:"tools"`
}

// messageBlocks are the parts of one message, or a single text.
type messageBlocks []struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	Content content `json:"content"` // of a tool's result
}

// UnmarshalJSON reads a text as a list of one block.
func (m *messageBlocks) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*m = messageBlocks{{Type: "text", Text: text}}
		return nil
	}
	type plain messageBlocks
	return json.Unmarshal(b, (*plain)(m))
}

func (m *messages) parse(body []byte) error {
	if err := json.Unmarshal(body, m); err != nil {
		return fmt.Errorf("no message that can be read: %w", err)
	}
	return nil
}

func (m *messages) streams() bool { return m.Stream }

// asked returns the turns. The results of tools are turns of their own.
func (m *messages) asked() (question, string) {
	q := question{turns: []Turn{{Role: "system", Text: string(m.System)}}}
	for _, one := range m.Messages {
		var texts []string
		calls := 0
		for _, b := range one.Content {
			switch b.Type {
			case "tool_use":
				calls++
			case "tool_result":
				q.turns = append(q.turns, Turn{Role: "tool", Text: string(b.Content)})
			case "text":
				texts = append(texts, b.Text)
			}
		}
		if len(texts) > 0 || calls > 0 {
			q.turns = append(q.turns, Turn{Role: one.Role, Text: strings.Join(texts, "\n"), Calls: calls})
		}
	}
	for _, t := range m.Tools {
		q.tools = append(q.tools, tool{name: t.Name, props: t.Schema.Properties})
	}
	return q, m.Model
}

// blocks returns the parts of an answer. A call is named by its position, so that two calls in one
// history differ.
func (m *messages) blocks(a answer) (all []map[string]any, stop string) {
	if a.text != "" || len(a.calls) == 0 {
		all = append(all, map[string]any{"type": "text", "text": a.text})
	}
	stop = "end_turn"
	for i, use := range a.calls {
		stop = "tool_use"
		all = append(all,
			map[string]any{
				"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", len(m.Messages), i), "name": use.tool.name,
				"input": use.args,
			})
	}
	return all, stop
}

func (m *messages) envelope(blocks any, stop any, a answer) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", len(m.Messages)), "type": "message", "role": "assistant", "model": m.Model, "content": blocks,
		"stop_reason": stop, "stop_sequence": nil, "usage": map[string]any{"input_tokens": a.in, "output_tokens": a.out},
	}
}

func (m *messages) whole(a answer) any {
	blocks, stop := m.blocks(a)
	return m.envelope(blocks, stop, a)
}

func (m *messages) stream(e *events, a answer) {
	send := func(kind string, more map[string]any) {
		more["type"] = kind
		e.send(kind, more)
	}
	send("message_start", map[string]any{"message": m.envelope([]any{}, nil, a)})
	blocks, stop := m.blocks(a)
	for i, b := range blocks {
		delta := func(d map[string]any) { send("content_block_delta", map[string]any{"index": i, "delta": d}) }
		if b["type"] == "text" {
			send("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "text", "text": ""}})
			if !e.speak(a, func(text string) { delta(map[string]any{"type": "text_delta", "text": text}) }) {
				return
			}
		} else {
			input := encode.JSON(b["input"])
			send("content_block_start",
				map[string]any{
					"index":         i,
					"content_block": map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}},
				})
			delta(map[string]any{"type": "input_json_delta", "partial_json": string(input)})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta",
		map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": a.out}})
	send("message_stop", map[string]any{})
}

// responses is a request of OpenAI's responses API, as far as codex uses it.
type responses struct {
	Model        string         `json:"model"`
	Stream       bool           `json:"stream"`
	Instructions string         `json:"instructions"`
	Input        responseInput  `json:"input"`
	Tools        []responseTool `json:"tools"`
	Text         struct {
		Format struct {
			Type   string  `json:"type"`
			Schema *schema `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

// responseInput is a text, or the conversation so far.
type responseInput []responseItem

type responseItem struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`
	Output  content `json:"output"`
}

type responseTool struct {
	Type       string         `json:"type"`
	Name       string         `json:"name"`
	Parameters schema         `json:"parameters"`
	Tools      []responseTool `json:"tools"` // of a namespace
}

// UnmarshalJSON accepts both forms.
func (in *responseInput) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*in = responseInput{{Type: "message", Role: "user", Content: content(text)}}
		return nil
	}
	var items []responseItem
	if err := json.Unmarshal(b, &items); err != nil {
		return err
	}
	*in = items
	return nil
}

func (r *responses) parse(body []byte) error {
	if err := json.Unmarshal(body, r); err != nil {
		return fmt.Errorf("no request for a response that can be read: %w", err)
	}
	return nil
}

func (r *responses) streams() bool { return r.Stream }

func (r *responses) asked() (question, string) {
	q := question{turns: []Turn{{Role: "system", Text: r.Instructions}}}
	together := false // consecutive calls were one answer
	for _, item := range r.Input {
		calls := strings.HasSuffix(item.Type, "_call")
		switch {
		case calls && together:
			q.turns[len(q.turns)-1].Calls++
		case calls:
			q.turns = append(q.turns, Turn{Role: "assistant", Calls: 1})
		case strings.HasSuffix(item.Type, "_call_output"):
			q.turns = append(q.turns, Turn{Role: "tool", Text: string(item.Output)})
		case item.Type == "reasoning":
			continue
		default:
			role := item.Role
			if item.Type == "agent_message" { // from the agent that started this one
				role = "user"
			}
			q.turns = append(q.turns, Turn{Role: role, Text: string(item.Content)})
		}
		together = calls
	}
	q.tools = toolsOf(r.Tools, "")
	if r.Text.Format.Type == "json_schema" {
		q.shape = r.Text.Format.Schema
	}
	return q, r.Model
}

func toolsOf(list []responseTool, space string) []tool {
	var all []tool
	for _, t := range list {
		if t.Type == "namespace" && space == "" {
			all = append(all, toolsOf(t.Tools, t.Name)...)
			continue
		}
		all = append(all, tool{name: t.Name, space: space, free: t.Type == "custom", props: t.Parameters.Properties})
	}
	return all
}

// items returns the parts of an answer in their final form.
func (r *responses) items(a answer) []map[string]any {
	var items []map[string]any
	id := func(kind string) string { return fmt.Sprintf("%s_%d_%d", kind, len(r.Input), len(items)) }
	if a.thought != "" {
		items = append(items, map[string]any{
			"type": "reasoning", "id": id("rs"),
			"summary": []any{map[string]any{"type": "summary_text", "text": a.thought}},
		})
	}
	if a.text != "" {
		items = append(items, map[string]any{
			"type": "message", "id": id("msg"), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}},
		})
	}
	for _, c := range a.calls {
		one := map[string]any{"id": id("fc"), "call_id": id("call"), "name": c.tool.name, "status": "completed"}
		if c.tool.free {
			one["type"], one["input"] = "custom_tool_call", c.free
		} else {
			one["type"], one["arguments"] = "function_call", c.json()
		}
		if c.tool.space != "" {
			one["namespace"] = c.tool.space
		}
		items = append(items, one)
	}
	return items
}

func (r *responses) envelope(status string, items []map[string]any, a answer) map[string]any {
	if items == nil {
		items = []map[string]any{}
	}
	return map[string]any{
		"id": fmt.Sprintf("resp_%d", len(r.Input)), "object": "response", "created_at": 0,
		"status": status, "model": r.Model, "output": items,
		"usage": map[string]any{
			"input_tokens": a.in, "output_tokens": a.out, "total_tokens": a.in + a.out,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
		},
	}
}

func (r *responses) whole(a answer) any { return r.envelope("completed", r.items(a), a) }

func (r *responses) stream(e *events, a answer) {
	n := 0
	send := func(kind string, v map[string]any) {
		v["type"], v["sequence_number"] = kind, n
		n++
		e.send(kind, v)
	}
	items := r.items(a)
	send("response.created", map[string]any{"response": r.envelope("in_progress", nil, a)})
	for i, it := range items {
		open := map[string]any{}
		maps.Copy(open, it)
		if it["type"] == "message" {
			open["content"], open["status"] = []any{}, "in_progress"
		}
		send("response.output_item.added", map[string]any{"output_index": i, "item": open})
		if it["type"] == "message" {
			heard := e.speak(a, func(text string) {
				send("response.output_text.delta", map[string]any{
					"item_id": it["id"], "output_index": i, "content_index": 0, "delta": text,
				})
			})
			if !heard {
				return
			}
			if a.hold { // after LetGo the item is complete
				a.text += a.after
				items[i] = r.items(a)[i]
				it = items[i]
			}
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": it})
	}
	send("response.completed", map[string]any{"response": r.envelope("completed", items, a)})
}

// gemini is a request of Google's generateContent, as far as Gemini CLI uses it. The path names the
// model and whether it streams.
type gemini struct {
	model string
	sse   bool

	System struct {
		Parts []geminiPart `json:"parts"`
	} `json:"systemInstruction"`
	Contents []struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		Functions []struct {
			Name   string `json:"name"`
			Schema schema `json:"parametersJsonSchema"`
			Older  schema `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Shape *schema `json:"responseJsonSchema"`
		Older *schema `json:"responseSchema"`
	} `json:"generationConfig"`
}

// geminiPart is a text, a call of a tool, or its result.
type geminiPart struct {
	Text    string          `json:"text"`
	Thought bool            `json:"thought"`
	Call    json.RawMessage `json:"functionCall"`
	Result  *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// geminiPath parses /v1beta/models/MODEL:METHOD.
func geminiPath(path string) (model, method string, ok bool) {
	_, last, found := strings.Cut(path, "/models/")
	model, method, ok = strings.Cut(last, ":")
	return model, method, found && ok
}

func (g *gemini) parse(body []byte) error {
	if err := json.Unmarshal(body, g); err != nil {
		return fmt.Errorf("no content that can be read: %w", err)
	}
	return nil
}

func (g *gemini) streams() bool { return g.sse }

// asked returns the turns. The results of tools are turns of their own.
func (g *gemini) asked() (question, string) {
	q := question{turns: []Turn{{Role: "system", Text: textOf(g.System.Parts)}}, shape: g.Config.Shape}
	if q.shape == nil {
		q.shape = g.Config.Older
	}
	for _, one := range g.Contents {
		calls := 0
		for _, part := range one.Parts {
			switch {
			case part.Result != nil:
				q.turns = append(q.turns, Turn{Role: "tool", Text: string(part.Result.Response)})
			case part.Call != nil:
				calls++
			}
		}
		role := cmp.Or(map[string]string{"model": "assistant"}[one.Role], "user")
		if text := textOf(one.Parts); text != "" || calls > 0 {
			q.turns = append(q.turns, Turn{Role: role, Text: text, Calls: calls})
		}
	}
	for _, list := range g.Tools {
		for _, f := range list.Functions {
			props := f.Schema.Properties
			if props == nil {
				props = f.Older.Properties
			}
			q.tools = append(q.tools, tool{name: f.Name, props: props})
		}
	}
	return q, g.model
}

func textOf(parts []geminiPart) string {
	var texts []string
	for _, part := range parts {
		if part.Text != "" && !part.Thought {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// piece is one piece of an answer. The last one has a finish reason and the usage.
func (g *gemini) piece(a answer, last bool, parts ...map[string]any) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	piece := map[string]any{"candidates": []any{candidate}, "modelVersion": g.model, "responseId": fmt.Sprintf("r%d", len(g.Contents))}
	if last {
		candidate["finishReason"] = "STOP"
		piece["usageMetadata"] = map[string]any{"promptTokenCount": a.in, "candidatesTokenCount": a.out, "totalTokenCount": a.in + a.out}
	}
	return piece
}

// rest returns the parts after the text.
func (g *gemini) rest(a answer) (parts []map[string]any) {
	for i, use := range a.calls {
		call := map[string]any{"id": fmt.Sprintf("call_%d_%d", len(g.Contents), i), "name": use.tool.name, "args": use.args}
		parts = append(parts, map[string]any{"functionCall": call})
	}
	return parts
}

func (g *gemini) whole(a answer) any {
	var parts []map[string]any
	if a.text != "" || len(a.calls) == 0 {
		parts = append(parts, map[string]any{"text": a.text})
	}
	return g.piece(a, true, append(parts, g.rest(a)...)...)
}

func (g *gemini) stream(e *events, a answer) {
	if a.thought != "" {
		e.send("", g.piece(a, false, map[string]any{"text": a.thought, "thought": true}))
	}
	if a.text != "" || len(a.calls) == 0 {
		if !e.speak(a, func(text string) { e.send("", g.piece(a, false, map[string]any{"text": text})) }) {
			return
		}
	}
	last := g.rest(a)
	if len(last) == 0 {
		last = []map[string]any{{"text": ""}}
	}
	e.send("", g.piece(a, true, last...))
}
