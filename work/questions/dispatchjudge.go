package questions

import (
	"encoding/json"
	"strings"
)

// shown is a call's arguments in words.
func Shown(input json.RawMessage) string {
	var args map[string]any
	if json.Unmarshal(input, &args) != nil {
		return ""
	}
	for _, name := range []string{"command", "file_path", "path"} {
		if text, ok := args[name].(string); ok {
			return text
		}
	}
	if len(args) == 0 {
		return ""
	}
	return strings.TrimSpace(string(input))
}
