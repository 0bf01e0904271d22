package scriptmodel

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

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
		all = append(all, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", len(m.Messages), i), "name": use.tool.name, "input": use.args})
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
			send("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}})
			delta(map[string]any{"type": "input_json_delta", "partial_json": string(input)})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": a.out}})
	send("message_stop", map[string]any{})
}
