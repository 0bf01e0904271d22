package scriptmodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
			q.turns = append(q.turns, Turn{Role: item.Role, Text: string(item.Content)})
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
		for k, v := range it {
			open[k] = v
		}
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
