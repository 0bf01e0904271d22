package cli

import (
	"bytes"
	"encoding/json"
)

// chiefArgs are the arguments that describe a call, in order of preference.
var chiefArgs = []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern"}

// CallWords describes a call in one line: its main argument, or all of it.
func CallWords(call string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(call), &args) != nil {
		return call
	}
	for _, name := range chiefArgs {
		var text string
		if json.Unmarshal(args[name], &text) == nil && text != "" {
			return text
		}
	}
	var one bytes.Buffer
	if json.Compact(&one, []byte(call)) != nil {
		return call
	}
	return one.String()
}
