package fromhost

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestNamesOnly(t *testing.T) {
	listed := []string{"a", "b.c", "b.d.e"}
	for _, text := range []string{
		`{}`, `{"a":1}`, ` {"a":null} `, `{"a":[1,[2]]}`, `{"b":{}}`, `{"b":{"c":1}}`,
		`{"b":[{"c":1},{"c":2,"d":[{"e":1},{"e":2}]}],"a":"x"}`, `{"\u0061":1}`, `{"b":1}`,
	} {
		if err := namesOnly([]byte(text), listed); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, field := range map[string]string{
		`{"A":1}`: "A", `{"c":1}`: "c", `{"b":{"a":1}}`: "b.a", `{"a":{"x":1}}`: "a.x", `{"a":[[{"x":1}]]}`: "a.x", `{"a":1,"a ":1}`: "a ",
		`{"":1}`: "", `{"b":{"d":{"c":1}}}`: "b.d.c",
		`{"x":` + strings.Repeat("[", 1<<20): "x",
	} {
		err := namesOnly([]byte(text), listed)
		if is, ok := errors.AsType[unlistedField](err); !ok || string(is) != field {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "null", "[]", "1", `"a"`, "{", `{"a"}`, `{"a":}`, `{"a":1}{}`, `{"a":1} x`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
		`{"b":{"c":1,"c":1}}`, `{"a":[1}`, `{"a":1]`,
		`{"a":` + strings.Repeat("[", 1<<20),
	} {
		if err := namesOnly([]byte(text), listed); err == nil || errors.As(err, new(unlistedField)) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

func FuzzNamesOnly(f *testing.F) {
	listed := []string{"workflow", "task.text", "task.attachments.name"}
	f.Add(`{"workflow":"nightly.yaml","task":{"attachments":[{"name":"x"}]}}`)
	f.Add(`{"workflow":1,"workflow":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		if namesOnly([]byte(text), listed) != nil {
			return
		}
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatalf("%q is taken: %v", text, err)
		}
		for name := range whole {
			if name != "workflow" && name != "task" {
				t.Fatalf("%q: %q is taken", text, name)
			}
		}
	})
}
