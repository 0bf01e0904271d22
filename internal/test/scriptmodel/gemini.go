package scriptmodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
		role := map[string]string{"model": "assistant"}[one.Role]
		if role == "" {
			role = "user"
		}
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
