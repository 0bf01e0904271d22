package runstate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSchemas(t *testing.T) {
	const form = `{"type":"object","required":["release"],"properties":{"release":{"type":"string","pattern":"^v[0-9]+$"},"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer","minimum":1}}}`
	for _, c := range []struct{ name, schema, value, want string }{
		{"good", form, `{"release":"v7","n":3}`, ""},
		{"missing", form, `{}`, "release"},
		{"pattern", form, `{"release":"7"}`, "pattern"},
		{"by reference", form, `{"release":"v7","n":0}`, "minimum"},
		{"no JSON", form, `{`, "no JSON"},
		{"deep value", form, strings.Repeat("[", 80) + strings.Repeat("]", 80), "nested deeper than 64"},
		{
			"a tree", `{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{"next":{"next":{"x":1}}}`,
			"unexpected additional properties",
		},
		{"booleans", `true`, `7`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := CompileSchema([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check([]byte(c.value)); c.want == "" && err != nil ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A schema on which a validator would not terminate, or which would fetch something, is refused before it is
// used.
func TestSchemasRefused(t *testing.T) {
	doubling := map[string]any{}
	for i := range 40 {
		next := map[string]any{"$ref": "#/$defs/" + string(rune('A'+i+1))}
		doubling[string(rune('A'+i))] = map[string]any{"allOf": []any{next, next}}
	}
	doubling[string(rune('A'+40))] = true
	large, err := json.Marshal(map[string]any{"$defs": doubling, "$ref": "#/$defs/A"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, schema, want string }{
		{"itself", `{"$ref":"#"}`, "it refers to itself without going into the value"},
		{"by a bend", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`, "it refers to itself"},
		{"in a corner", `{"properties":{"x":{"anyOf":[{"$ref":"#/$defs/a"}]}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`, "it refers to itself"},
		{"doubling", string(large), "more than 10000 schemas would be asked"},
		{"abroad", `{"$ref":"https://example.com/s.json"}`, "leads nowhere"},
		{"a file", `{"properties":{"x":{"$ref":"file:///etc/passwd"}}}`, "leads nowhere"},
		{"dynamic", `{"$dynamicRef":"#x"}`, "$dynamicRef"},
		{"misspelt type", `{"properties":{"x":{"type":"strnig"}}}`, `there is no type "strnig"`},
		{"odd keyword", `{"type":7}`, "no JSON Schema"},
		{"odd pattern", `{"pattern":"("}`, "no JSON Schema"},
		{"no JSON", `{`, "no JSON Schema"},
		{"long", strings.Repeat(" ", schemaBytesMax+1), "262145 bytes"},
		{"deep", strings.Repeat(`{"not":`, 80) + "true" + strings.Repeat("}", 80), "nested deeper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := CompileSchema([]byte(c.schema)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":["integer","null"],"minimum":1}}}`,
		`{"allOf":[{"$ref":"#"}]}`, `{"items":{"$ref":"#"},"if":{"const":1},"then":false,"dependentSchemas":{"a":{"$ref":"#"}}}`,
		`{"unevaluatedProperties":{"$ref":"#"},"patternProperties":{"^a":true},"$anchor":"x"}`, `{"$id":"urn:x","$ref":"urn:x"}`,
	} {
		f.Add([]byte(s), []byte(`{"a":[1,{"a":null}]}`))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := CompileSchema(schema)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a reason")
			}
			return
		}
		if err := s.Check(value); err != nil && err.Error() == "" {
			t.Fatal("refused without a reason")
		}
	})
}
