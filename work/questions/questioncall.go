package questions

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Limits of a call that a person is shown: what the book of questions keeps of one, and what
// a text in it is shortened to until the whole fits. The driver's log has every call whole.
const (
	callShownMax  = 4 << 10
	callTextFirst = 3 << 10
	callTextLeast = 64
)

// callShown is a call as a person is shown it: all that it is called with, since who allows a file to
// be written wants to see what is written. It stays JSON: what is too long is shortened in its place,
// and says so. A command or a path alone stands for itself. Empty: it is called with nothing.
func CallShown(input json.RawMessage) string {
	var args map[string]any
	if json.Unmarshal(input, &args) != nil {
		return string(input)
	}
	if len(args) == 0 {
		return ""
	}
	if len(args) == 1 {
		return Shown(input)
	}
	for most := callTextFirst; most >= callTextLeast; most /= 2 {
		if text, err := json.Marshal(shortened(args, most)); err == nil && len(text) <= callShownMax {
			return string(text)
		}
	}
	return Shown(input) // too many arguments for anybody to read: the one that says what it is about
}

// shortened is a value with its texts cut to so many bytes.
func shortened(value any, most int) any {
	switch v := value.(type) {
	case string:
		if len(v) <= most {
			return v
		}
		cut := most
		for cut > 0 && !utf8.RuneStart(v[cut]) {
			cut--
		}
		return fmt.Sprintf("%s … (%d bytes more)", v[:cut], len(v)-cut)
	case []any:
		list := make([]any, len(v))
		for i, of := range v {
			list[i] = shortened(of, most)
		}
		return list
	case map[string]any:
		to := make(map[string]any, len(v))
		for name, of := range v {
			to[name] = shortened(of, most)
		}
		return to
	}
	return value
}
