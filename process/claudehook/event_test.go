package claudehook

import (
	"errors"
	"strings"
	"testing"
)

// Names of fields are case-sensitive, and a name that is given twice is a fault: otherwise a call would be
// judged by another tool or input than the one that the program uses.
func TestFieldNamesAreExact(t *testing.T) {
	for _, text := range []string{
		`{"session_id":"s","tool_name":"Bash","tool_input":{"command":"rm"},"Tool_Name":"Read","TOOL_INPUT":{},"Session_ID":"other"}`,
		`{"Tool_Name":"Read","TOOL_INPUT":{},"Session_ID":"other","session_id":"s","tool_name":"Bash","tool_input":{"command":"rm"}}`,
	} {
		is, err := Decode(strings.NewReader(text))
		if err != nil || is.Tool != "Bash" || is.Session != "s" || string(is.Input) != `{"command":"rm"}` {
			t.Errorf("%s is read as %+v, %v", text, is, err)
		}
	}
	half := `{"session_id":"s","prompt":"\ud800","tool_input":{"command":"ls","Command":"\ud800"}}`
	if is, err := Decode(strings.NewReader(half)); err != nil || is.Session != "s" ||
		string(is.Input) != `{"command":"ls","Command":"\ud800"}` {
		t.Errorf("%s is read as %+v, %v", half, is, err)
	}
	for text, want := range map[string]string{
		`{"session_id":"s","tool_name":"Read","tool_name":"Bash"}`: `its field "tool_name" is given twice`,
		`{"session_id":"s","tool_name":["Bash"]}`:                  "its field tool_name has the wrong type",
		`["session_id"]`: "it is not an object",
		`null`:           "it is not an object",
		`{"session_id":"s","tool_input":{"command":"ls","command":"rm"}}`: `its field "command" is given twice`,
		`{"session_id":"s"} {}`:           "invalid character",
		`{"session_id":"s","tool_name":"`: "unexpected end",
		``:                                "unexpected end",
	} {
		var fault *Fault
		if _, err := Decode(strings.NewReader(text)); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
