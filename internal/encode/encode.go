// Package encode writes values of this program as JSON.
//
// Encoding fails only for values that no program here makes, such as a channel or a number that is not finite. That
// would be a bug, so it panics, and callers need no error. HTML is not escaped: people and programs read the text.
//
// The one promise: the result is one line of valid JSON, without a line ending.
package encode

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// JSON returns a value as JSON on one line.
func JSON(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a %T as JSON: %v", v, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
