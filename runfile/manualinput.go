package runfile

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// manualBytesMax bounds one answer, far above what a form holds.
const manualBytesMax = 1 << 20

// ManualInput is a person's answer to a step that waits (SPEC W9, W10).
type ManualInput struct {
	Approved bool   // true if `approved` is missing
	Note, By string // empty: not given
	Raw      []byte // the whole answer as JSON
}

// answerFields are Fairlead's fields; an input_schema that does not name them does not apply to them.
var answerFields = []string{"approved", "note", "by"}

// ReadManualInput reads an answer's file, like ReadReport.
func ReadManualInput(path, inputSchema string) (ManualInput, error) {
	b, moved, err := readForeign(path, manualBytesMax)
	if err != nil {
		return ManualInput{}, err
	}
	in, err := ParseManualInput(path, b, inputSchema)
	return in, stillMoving(err, moved)
}

// ParseManualInput parses an answer: a JSON object. An approval must fit the step's input_schema, without
// approved, note and by unless the schema names them. A rejection is not checked against the schema. The
// error is a *ReportFault.
func ParseManualInput(name string, b []byte, inputSchema string) (ManualInput, error) {
	r, fields, err := openReport(name, b, manualBytesMax)
	if err != nil {
		return ManualInput{}, err
	}
	in := ManualInput{Approved: true, Raw: b}
	for _, f := range fields {
		switch f.Name {
		case "approved":
			switch string(f.Raw) {
			case "true", "false":
				in.Approved = string(f.Raw) == "true"
			default:
				r.Wrong(f, "", "is neither true nor false; write it without quotes")
			}
		case "note":
			in.Note = r.said(f)
		case "by":
			in.By = r.said(f)
		}
	}
	if r.Fault != nil {
		return ManualInput{}, r.reportFault()
	}
	if inputSchema == "" || !in.Approved {
		return in, nil
	}
	schema, err := CompileSchema([]byte(inputSchema))
	if err != nil {
		return ManualInput{}, &ReportFault{File: name, Text: "cannot be checked: input_schema of the step is " + err.Error()}
	}
	if err := schema.Check(formOf(fields, inputSchema)); err != nil {
		return ManualInput{}, &ReportFault{File: name, Line: 1, Text: "does not fit the step's input_schema: " + err.Error()}
	}
	return in, nil
}

func (r *jsonReader) said(f file.Placed) string {
	if text := r.TextOrNil(f, ""); text != nil {
		return *text
	}
	return ""
}

// formOf returns the part of the answer that the schema applies to.
func formOf(fields []file.Placed, inputSchema string) []byte {
	var named struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(inputSchema), &named); err != nil {
		named.Properties = nil // true and false are schemas too
	}
	var parts []string
	for _, f := range fields {
		if _, is := named.Properties[f.Name]; slices.Contains(answerFields, f.Name) && !is {
			continue
		}
		parts = append(parts, string(file.Quoted(f.Name))+":"+string(f.Raw))
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}
