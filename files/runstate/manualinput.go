package runstate

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// manualBytesMax bounds one answer, far above what a form holds.
const manualBytesMax = 1 << 20

// ManualInput is a person's answer to a step that waits (SPEC W9, W10).
type ManualInput struct {
	Approved bool   `json:"approved"` // true if it is missing
	Note     string `json:"note"`     // empty: not given
	By       string `json:"by"`       // the same
	Raw      []byte `json:"-"`        // the whole answer as JSON
}

// answerFields are Fairlead's fields; an input_schema that does not name them does not apply to them.
var answerFields = []string{"approved", "note", "by"}

// ReadManualInput reads an answer's file, like ReadReport.
func ReadManualInput(path, inputSchema string) (ManualInput, error) {
	return readFile(path, manualBytesMax, func(b []byte) (ManualInput, error) { return ParseManualInput(path, b, inputSchema) })
}

// ParseManualInput parses an answer: a JSON object. An approval must fit the step's input_schema, without
// approved, note and by unless the schema names them. A rejection is not checked against the schema. The
// error is a *ReportFault.
func ParseManualInput(name string, b []byte, inputSchema string) (ManualInput, error) {
	in := ManualInput{Approved: true, Raw: file.Unmarked(b)}
	content := file.Content{File: name, Text: in.Raw}
	if err := content.Decode(manualBytesMax, &in); err != nil {
		return ManualInput{}, reportFault(err)
	}
	if inputSchema == "" || !in.Approved {
		return in, nil
	}
	schema, err := CompileSchema([]byte(inputSchema))
	if err != nil {
		return ManualInput{}, &ReportFault{File: name, Text: "cannot be checked: input_schema of the step is " + err.Error()}
	}
	form, err := formOf(content, inputSchema)
	if err != nil {
		return ManualInput{}, reportFault(err)
	}
	if err := schema.Check(form); err != nil {
		return ManualInput{}, &ReportFault{File: name, Line: 1, Text: "does not fit the step's input_schema: " + err.Error()}
	}
	return in, nil
}

// formOf returns the part of the answer that the schema applies to.
func formOf(answer file.Content, inputSchema string) ([]byte, error) {
	var fields map[string]jsontext.Value
	if err := answer.Decode(manualBytesMax, &fields); err != nil {
		return nil, err
	}
	var schema struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	_ = json.Unmarshal([]byte(inputSchema), &schema) // true and false are schemas too
	maps.DeleteFunc(fields, func(name string, _ jsontext.Value) bool {
		return slices.Contains(answerFields, name) && schema.Properties[name] == nil
	})
	return file.Encode(fields)
}
