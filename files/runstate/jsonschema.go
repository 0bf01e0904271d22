package runstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/google/jsonschema-go/jsonschema"
)

const (
	schemaBytesMax = 256 << 10 // for --schema; the core accepts 64 KiB of an input_schema
	schemaDepthMax = 64        // as for all JSON here
)

// Schema is a user's JSON Schema: input_schema of a step, or --schema for reports.
type Schema struct{ resolved *jsonschema.Resolved }

// CompileSchema compiles a schema. A reference to another file or address is refused, because nothing is
// fetched.
func CompileSchema(text []byte) (*Schema, error) {
	if len(text) > schemaBytesMax {
		return nil, fmt.Errorf("the schema has %d bytes, %d at most", len(text), schemaBytesMax)
	}
	if file.TooDeep(text) >= 0 {
		return nil, fmt.Errorf("the schema is nested deeper than %d; flatten it", schemaDepthMax)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(file.Unmarked(text), &schema); err != nil {
		return nil, fmt.Errorf("no JSON Schema: %s", schemaWords(err))
	}
	if err := guard(&schema); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("no JSON Schema: %s", schemaWords(err))
	}
	return &Schema{resolved}, nil
}

// Check returns what is wrong with a JSON text, or nil.
func (s *Schema) Check(b []byte) error {
	if file.TooDeep(b) >= 0 {
		return fmt.Errorf("nested deeper than %d; flatten it", schemaDepthMax)
	}
	var value any
	if err := json.Unmarshal(file.Unmarked(b), &value); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	if err := s.resolved.Validate(value); err != nil {
		return errors.New(schemaWords(err))
	}
	return nil
}

// schemaWords shortens a validator's message to one line, because it may quote the whole value.
func schemaWords(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = strings.TrimPrefix(text, "jsonschema: ")
	const most = 400 // three lines on a terminal
	return clip.Text(text, most)
}
