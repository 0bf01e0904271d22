package questions

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCallShown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 5000)
	whole := func(args map[string]any) json.RawMessage {
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		in   json.RawMessage
		want string
	}{
		"nothing":      {json.RawMessage(`{}`), ""},
		"a command":    {json.RawMessage(`{"command":"make"}`), "make"},
		"no object":    {json.RawMessage(`[1]`), "[1]"},
		"all of it":    {json.RawMessage(`{"file_path":"/a","content":"x"}`), `{"content":"x","file_path":"/a"}`},
		"long content": {whole(map[string]any{"file_path": "/a", "content": long, "diff": []any{long}}), `bytes more)","diff":["`},
		"too much":     {whole(map[string]any{"file_path": "/a", "edits": make([]int, 4000)}), "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := CallShown(c.in)
			if !strings.Contains(got, c.want) || len(got) > callShownMax {
				t.Errorf("%d bytes: %.200s; want %s", len(got), got, c.want)
			}
			if strings.HasPrefix(got, "{") && !json.Valid([]byte(got)) {
				t.Errorf("no JSON: %.200s", got)
			}
		})
	}
}
