package change

import (
	"reflect"
	"strings"
	"testing"
)

type noted struct {
	Text string `json:"text,omitempty"`
}

func (*noted) JSONKey() string { return "noted" }

// A body comes back as it was, and what is not exactly one known body is refused.
func TestDecode(t *testing.T) {
	known := Bodies{&noted{}}
	for _, body := range []*noted{{}, {Text: "a <b>"}} {
		data, err := Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := known.Decode(data); err != nil || !reflect.DeepEqual(back, Body(body)) {
			t.Errorf("%s comes back as %+v, %v", data, back, err)
		}
	}
	if known[0].(*noted).Text != "" {
		t.Error("a decoded body was written into the list of known ones")
	}
	for text, want := range map[string]string{
		``: "object", `null`: "object", `[]`: "object", `{}`: "no change has the key", `{"other":{}}`: "no change has the key other",
		`{"noted":{},"other":{}}`: "one key", `{"noted":{}`: "one key", `{"noted":7}`: "number",
	} {
		if body, err := known.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %+v, %v; want an error with %q", text, body, err, want)
		}
	}
	if As[noted](nil) != nil || As[noted](&noted{Text: "x"}).Text != "x" {
		t.Error("As finds a body where there is none, or none where there is one")
	}
}

func TestName(t *testing.T) {
	for want, actor := range map[string]Actor{"human/ann": {"human", "ann"}, "engine": {"engine", ""}, "": {}} {
		if got := actor.Name(); got != want {
			t.Errorf("%+v is named %q", actor, got)
		}
	}
}
