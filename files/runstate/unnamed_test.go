package runstate

import (
	"encoding/json"
	"strings"
	"testing"
)

// SPEC's corrections of 2026-11-28, workflow without `name`; the schema for editors says the same as the reader.
func TestNamesOfWorkflows(t *testing.T) {
	for _, c := range []struct{ head, want string }{
		{"", "unnamed"},
		{"name:\n", "unnamed"},
		{"name: ~\n", "unnamed"},
		{"name: ''\n", "unnamed"},
		{"name: ' '\n", "unnamed"},
		{"description: none\n", "unnamed"},
		{"name: unnamed\n", "unnamed"},
		{"name: build\n", "build"},
		{"name: 7\n", "7"},
		{"name: true\n", "true"},
		{"name: [a]\n", ""},
		{"name: {a: b}\n", ""},
		{"name: " + strings.Repeat("x", 201) + "\n", ""},
		{"nam: build\n", ""},
	} {
		text := []byte(c.head + "steps: [{id: a, command: [x]}]\n")
		w, err := ParseWorkflow("flow.yaml", text, nil)
		if (err == nil) != (c.want != "") || err == nil && w.Plan.Name != c.want {
			t.Errorf("%q: %v, want %q", c.head, err, c.want)
		}
		if err := editorsSchema(t).Validate(asJSON(t, text)); (err == nil) != (c.want != "") {
			t.Errorf("%q: the schema says %v", c.head, err)
		}
	}
}

// What the schema for editors says of a loop is what the reader does.
func TestWordsOfLoops(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Description string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(WorkflowSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	for field, words := range map[string][]string{
		"items_from_step":     {"JSON", "first artifact", `{"items": [...]}`},
		"items_from_artifact": {"JSON", "repository", `{"items": [...]}`},
		"item_var":            {"LOOP_", "_JSON", "_FILE"},
	} {
		for _, word := range words {
			if said := schema.Defs["loop"].Properties[field].Description; !strings.Contains(said, word) {
				t.Errorf("%s: %q does not say %s", field, said, word)
			}
		}
	}
}
