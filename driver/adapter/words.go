package adapter

import (
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// APIError reports whether the only text of an answer is an error of the provider. Programs were seen
// to give such a text as a successful answer: "API Error: 529 {…}", "[API Error: no model]", "Error:
// 400 …". An answer of several paragraphs that begins like this is the model's.
func APIError(text string) bool {
	text = strings.TrimSpace(text)
	return apiError().MatchString(text) && !strings.Contains(text, "\n\n")
}

var apiError = lazy.Regexp(`^\[?(API Error\b|Error:? \(?(HTTP |status )?[45]\d\d\b)`)

// OneLine formats untrusted text in one line, without terminal control sequences.
func OneLine(s string) string {
	s = driver.WithoutEscapes(s)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
