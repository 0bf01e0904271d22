package api

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Unmarshal is json.Unmarshal for the body of a request. A body in which a name occurs twice is refused: programs on the
// way to here, and readers of a log, could take the other value for the one that counts.
//
// The server decodes a body twice, first into an any, to compare it with the schema; that is when the names are looked at.
func Unmarshal(data []byte, v any) error {
	if _, first := v.(*any); first {
		if err := namesOnce(data); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, v)
}

// namesOnce fails if an object in a text has two fields of one name. Other faults are left to json.Unmarshal.
func namesOnce(data []byte) error {
	type open struct {
		names map[string]bool // nil: a list
		value bool            // a name was read, and its value comes next
	}
	var stack []open
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or a fault that json.Unmarshal finds as well
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if top := len(stack) - 1; top >= 0 && stack[top].names != nil {
			if name, is := token.(string); is && !stack[top].value {
				if stack[top].names[name] {
					return fmt.Errorf("the name %q occurs twice", Shorten(name))
				}
				stack[top].names[name], stack[top].value = true, true
				continue
			}
			stack[top].value = false
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, open{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, open{})
		}
	}
}
