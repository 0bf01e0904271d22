package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const inputBytesMax = 16 << 20 // more than any text that a tool writes at once

// input is a tool's arguments. Keys are case-sensitive: a decoder that ignores case would judge another path
// than the one that the tool writes.
type input struct {
	keys   []string // in order
	values map[string]json.RawMessage
}

// readInput parses a JSON object. A duplicate key is a fault, because readers disagree about it.
func readInput(raw json.RawMessage) (in input, fault string) {
	if len(raw) > inputBytesMax {
		return in, fmt.Sprintf("its input is longer than %d MiB", inputBytesMax>>20)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return in, "its input is no JSON object"
	}
	in.values = map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return in, "its input is no JSON object"
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return in, "its input is no JSON object"
		}
		if _, twice := in.values[key]; twice {
			return in, fmt.Sprintf("its input says %q twice", cut(key))
		}
		in.keys, in.values[key] = append(in.keys, key), value
	}
	if _, err := dec.Token(); err != nil {
		return in, "its input is no JSON object"
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return in, "its input is more than a JSON object"
	}
	return in, ""
}

// text returns a value that is text.
func (in input) text(key string) (string, bool) {
	value := in.values[key]
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// isPathKey lists the keys with which agent programs name a file tool's path.
func isPathKey(key string) bool {
	switch key {
	case "file_path", "filePath", "path", "notebook_path", "notebookPath", "absolute_path", "abs_path":
		return true
	}
	return false
}

// paths returns the files that a file tool's input names. A path that is not text is a fault.
func (in input) paths() (paths []string, fault string) {
	for _, key := range in.keys {
		if !isPathKey(key) {
			continue
		}
		p, ok := in.text(key)
		if !ok || p == "" {
			return nil, fmt.Sprintf("its %s is no text", key)
		}
		paths = append(paths, p)
	}
	if len(paths) == 0 {
		return nil, "its input names no file as text (file_path)"
	}
	return paths, ""
}

// beginsScript reports whether a file tool may write #! at the beginning of a file: one of its texts begins so.
func beginsScript(raw json.RawMessage) bool {
	for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
		t, err := dec.Token()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		if text, ok := t.(string); ok && strings.HasPrefix(text, "#!") {
			return true
		}
	}
}
