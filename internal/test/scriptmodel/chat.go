package scriptmodel

import (
	"encoding/json"
	"fmt"
	"strings"
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
		Text  string          `json:"text"`
		Image json.RawMessage `json:"image_url"` // a text, or an object with one
	}
	if json.Unmarshal(b, &parts) == nil {
		var texts []string
		for _, p := range parts {
			texts = append(texts, p.Text+string(p.Image))
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
