package cli

import (
	"bytes"
	"encoding/json"
)

// chiefArgs are the arguments that say what a call is about, the first that is there.
var chiefArgs = []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern"}

// CallWords is what a call is about, in one line: its chief argument, or all of it.
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
