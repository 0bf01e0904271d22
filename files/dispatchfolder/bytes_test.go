package dispatchfolder

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

const ourField = `"fairlead": {"row": "D2", "event": "input", "line": 2, "at": "2024-12-18T14:30:22.5+01:00", "actor": {"kind": "human"}, "now": {"phase": "talking", "line": 2, "made": 1, "open": {"n": 1, "began": "2024-12-18T14:30:22Z", "input": "x"}}}`

// TestBytesOfLines holds what is read from lines of state.jsonl and messages.jsonl by any program, and what is written.
func TestBytesOfLines(t *testing.T) {
	var page strings.Builder
	for _, line := range []string{
		`{"timestamp":"2024-12-18T14:30:22","type":"transition","conversation_id":"conv_001","state":"coder","trigger":"go","previous":"MAIN","workspace":"/x/conv_001/outputs/","permissions":{"can_write":["\u00e9 <b>"],"n":1.50},"mood":{"a":[1]}}`,
		`{"type":"session_init","parameters":{"mode":"response","path":"/x"},"agent_list":"a, b","agent_descriptions":"c"}`,
		`{"type":7,"state":"a","trigger":null,"parameters":"x","workspace":[1],"permissions":7}`,
		`{"type":"transition","state":["a"],"trigger":{"a":1},"parameters":{"mode":1,"path":"p"}}`,
		`{"TYPE":"transition","State":"a"}`,
		`{"type":"transition","type":"session_end","state":"a"}`,
		`{"type":"transition","state":"a\ud800"}`,
		"{\"type\":\"transition\",\"state\":\"a\xff\"}",
		"{\"type\":\"transition\",\"state\":\"a\x00\"}",
		"{\"type\":\"transition\",\"state\":\"a\u2028\"}\r\n",
		"\xef\xbb\xbf {\"type\":\"transition\"}",
		`{"type":"transition"} {}`, `{"type":"transition"`, `[1]`, `null`, `7`, "", " \t", `{"type":NaN}`,
		`{"type":"transition","x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
		`{"type":"transition","x":12345678901234567890123456789,"y":1e999}`,
		`{"type": "conversation_start", "state": "MAIN", ` + ourField + `}`,
		`{"type": 7, "state": "MAIN", ` + ourField + `}`,
		`{"state": "MAIN", ` + ourField + `, ` + ourField + `}`,
		`{"state": "MAIN", ` + strings.Replace(ourField, `"line": 2, "at"`, `"line": "2", "at"`, 1) + `}`,
		`{"state": "MAIN", ` + strings.Replace(ourField, "talking", "dreaming", 1) + `}`,
		`{"state": "MAIN", ` + strings.Replace(ourField, `"event": "input"`, `"event": "none", "new": 1`, 1) + `}`,
		`{"state": "MAIN", "fairlead": null}`, `{"state": "MAIN", "fairlead": 7}`, `{"state": "MAIN", "Fairlead": {}}`,
		`{"x":"` + strings.Repeat("x", foreignBytesMax) + `"}`,
		`{"fairlead":null,"x":"` + strings.Repeat("x", foreignBytesMax) + `"}`,
		`{"x":"` + strings.Repeat("x", lineBytesMax) + `"}`,
	} {
		r, err := parseRecord([]byte(line))
		read, _ := json.Marshal(r) //nolint:errchkjson // of what was read
		fmt.Fprintf(&page, "== state %.300q\n-- %s, %v\n", line, read, err)
	}
	for _, line := range []string{
		`{"conversation_id":"conv_001","timestamp":"2024-12-18T14:30:22","summary":"s\u2028 \"","files_created":[{"path":"a","summary":"b","x":1}],"agents_used":["a"],"mood":1}`,
		`{"conversation_id":"conv_1000","summary":7,"files_created":"x","agents_used":[1]}`,
		`{"conversation_id":"conv_002","files_created":null,"agents_used":["a",7]}`,
		`{"conversation_id":"conv_001","conversation_id":"conv_002"}`,
		`{"conversation_id":["conv_001"]}`, `{"conversation_id":"conv_0001"}`, `{"conversation_id":"conv_001"`, `[]`, "",
		"{\"conversation_id\":\"conv_001\",\"summary\":\"\xff\"}",
	} {
		m, is := parseMessage([]byte(line))
		fmt.Fprintf(&page, "== message %q\n-- %v %+v\n", line, is, m)
	}
	f := &Folder{path: "/s"}
	for _, in := range []string{
		`{"summary":"s","conversation_id":"conv_001","timestamp":"t","agents_used":["a"],"files_created":[{"path":"p","summary":"\u2028 <é>"}]}`,
		`{"session_path":"/s","conversation_data":{"conversation_id":"conv_002"}}`,
		`{"conversation_id":"conv_003","z":{"b":1.50,"a":[ 1 , {} ]},"a":"\u2028 \u00e9 : ,","m":12345678901234567890123}`,
		`{"conversation_id":"conv_003","session_path":"/s","x":null}`,
		`{"conversation_id":"conv_003","session_path":"/other"}`,
		`{"conversation_id":"conv_003","conversation_id":"conv_004","x":1,"x":2}`,
		`{"conversation_id":"conv_003","summary":7}`, `{"conversation_id":"conv_003","files_created":"x"}`,
		`{"conversation_data":{"conversation_id":"conv_9"}}`, `{"conversation_data":7}`,
		`{"conversation_data":null,"conversation_id":"conv_005"}`,
		"{\"conversation_id\":\"conv_003\",\"summary\":\"\xff\"}", `{"conversation_id":"conv_003"`, `[]`, ``,
		"{\"conversation_id\":\"conv_003\",\n\"summary\":7}",
	} {
		n, line, err := f.logLine([]byte(in))
		fmt.Fprintf(&page, "== log %q\n-- %d, %v\n%s\n", in, n, err, line)
	}
	for _, v := range []any{
		"a:b,c \u2028\u2029 \\u2028 <&> é \x00\x7f \xff \"",
		map[string]any{"a:": json.RawMessage(`{"b":"\u00e9,:","c":[1,2.50]}`), "b": []string{}, "c": nil, "d": map[string]int{}},
		message{ID: "conv_001", Files: []dispatch.File{{Path: "p", Summary: "s"}}},
		record{
			Timestamp: "t", State: "MAIN", Permissions: jsontext.Value(`{"a": [ ] }`),
			Ours: &ours{Row: "D1", Now: dispatch.Now{Phase: dispatch.Ready, Line: 1}},
		},
	} {
		fmt.Fprintf(&page, "== written %+q\n%s\n", fmt.Sprintf("%T", v), jsonLine(v))
	}
	golden.Check(t, "testdata/lines.golden", page.String())
}
