package claudehook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var program = Program{Path: "/opt/it's here/fairlead-hook"}

// settingsCases are files as people have them.
var settingsCases = []string{
	`{}`, `{ }`, "{\n}\n", "{}\n",
	"{\n  \"model\": \"opus\"\n}\n",
	"{\n\t\"model\": \"opus\",\n\t\"permissions\": {\"deny\": [\"Read(./.env)\"]}\n}",
	"{\r\n    \"model\": \"opus\"\r\n}\r\n",
	`{"model":"opus","env":{"A":"<&>"}}`,
	`{"hooks":{}}`, `{"hooks":{"PreToolUse":[]}}`,
	"{\n  \"hooks\": {\n    \"PreToolUse\": [\n    ]\n  },\n  \"z\": 1e400\n}",
	"{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Write|Edit\",\n        \"hooks\": [\n          {\"type\": \"command\", \"command\": \"./lint\", \"timeout\": 5}\n        ]\n      }\n    ],\n    \"FutureEvent\": [{\"hooks\": [{\"type\": \"mcp_tool\"}], \"new\": true}]\n  },\n  \"a\\u0062\": [1, 2]\n}\n",
	"\xef\xbb\xbf{\n  \"a\": 1\n}\n",
	"  {\"a\":\n1,\n \"b\":[{},[]]}  ",
}

func TestHooksAreAddedAndRemovedToTheByte(t *testing.T) {
	for _, text := range settingsCases {
		with, err := AddHooks([]byte(text), program)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		holds(t, []byte(text), with)
		again, err := AddHooks(with, program)
		if err != nil || !bytes.Equal(again, with) {
			t.Errorf("%q: adding the hooks twice changes the file again: %v\n%s", text, err, cmp.Diff(string(with), string(again)))
		}
		moved, err := AddHooks(with, Program{Path: "/elsewhere/fairlead", Args: []string{"hook"}})
		if err != nil || bytes.Contains(moved, []byte("here/fairlead-hook")) {
			t.Errorf("%q: the old path of the program remains: %v\n%s", text, err, moved)
		}
		for _, now := range [][]byte{with, moved} {
			if left, err := RemoveHooks(now); err != nil || string(left) != text {
				t.Errorf("%q: after the removal: %q: %v", text, left, err)
			}
		}
	}
}

// holds checks that a file with our hooks still says everything that it said before, in the same order.
func holds(t *testing.T, before, with []byte) {
	t.Helper()
	body := with[bom(with):]
	if !json.Valid(body) {
		t.Fatalf("with Fairlead's hooks it is not JSON:\n%s", with)
	}
	at := 0 // everything is still there, in order
	for _, b := range before {
		i := bytes.IndexByte(with[at:], b)
		if i < 0 {
			t.Fatalf("a part of\n%s\nis missing in\n%s", before, with)
		}
		at += i + 1
	}
	found, err := oursIn(with)
	if err != nil || len(found) != len(Names()) {
		t.Fatalf("it has %d of our hooks (%v):\n%s", len(found), err, with)
	}
}

func TestSettingsThatWereNotThere(t *testing.T) {
	with, err := AddHooks(nil, program)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, nil, with)
	left, err := RemoveHooks(with)
	if err != nil || left != nil {
		t.Fatalf("a container that was created for the hooks remains: %q, %v", left, err)
	}
}

// The user writes around our hooks, changes them, and has a program reformat the file.
func TestHooksAreRemovedFromWhatTheUserMadeOfThem(t *testing.T) {
	with, err := AddHooks([]byte("{\n  \"model\": \"opus\"\n}\n"), program)
	if err != nil {
		t.Fatal(err)
	}
	theirs := `{"type": "command", "command": "mine"}, `
	edited := strings.Replace(string(with), `"hooks": [`+"\n", `"hooks": [`+theirs+"\n", 1)
	edited = strings.Replace(edited, `"model"`, `"added": [true], "model"`, 1)
	edited = strings.ReplaceAll(edited, `"timeout": 30`, `"timeout": 99`)
	left, err := RemoveHooks([]byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	var is, want any
	if err := json.Unmarshal(left, &is); err != nil {
		t.Fatalf("%v:\n%s", err, left)
	}
	if err := json.Unmarshal([]byte(`{"added":[true],"model":"opus","hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"mine"}]}]}}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, is); d != "" {
		t.Error(d)
	}

	var flat bytes.Buffer
	if err := json.Compact(&flat, with); err != nil {
		t.Fatal(err)
	}
	left, err = RemoveHooks(flat.Bytes())
	if err != nil || string(left) != `{"model":"opus"}` {
		t.Errorf("from a reformatted file: %s, %v", left, err)
	}
}

func TestSettingsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "empty",
		" \n":                         "empty",
		"{\n  // mine\n  \"a\": 1\n}": "line 2",
		"{\"a\": 1,}":                 "line 1",
		"[]":                          "object",
		"null":                        "object",
		`{"hooks": []}`:               "not an object",
		`{"hooks": {"Stop": {}}}`:     "not a list",
		`{"hooks": {}, "hooks": {}}`:  "twice",
		`{"hooks": {"Stop": [], "St\u006fp": []}}`:                "twice",
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000): "depth",
	} {
		for what, do := range map[string]func() error{
			"add":    func() error { _, err := AddHooks([]byte(text), program); return err },
			"remove": func() error { _, err := RemoveHooks([]byte(text)); return err },
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: the error is %v, without %q", what, text, err, want)
			}
		}
	}
}

func FuzzSettings(f *testing.F) {
	for _, text := range settingsCases {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"hooks":{"Stop":[{"hooks":[{"command":"x # fairlead install claude"}]}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if text == nil {
			return
		}
		had, err := HasHooks(text)
		if err != nil {
			return
		}
		with, err := AddHooks(text, program)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !json.Valid(with[bom(with):]) {
			t.Fatalf("%q becomes %q", text, with)
		}
		left, err := RemoveHooks(with)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !had && !bytes.Equal(left, text) {
			t.Fatalf("%q becomes %q", text, left)
		}
		if has, err := HasHooks(left); left != nil && (has || err != nil) {
			t.Fatalf("%q: some of Fairlead's hooks are left (%v): %q", text, err, left)
		}
	})
}
