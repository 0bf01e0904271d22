package agentstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// seedExample is the example in seed 000, byte for byte.
func seedExample(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/agent_state.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSeedsExampleStaysAsItIs(t *testing.T) {
	s, err := Parse(seedExample(t))
	if err != nil {
		t.Fatal(err)
	}
	want := State{
		DesiredState: Continuous, CurrentState: Continuous, Timestamp: "2025-10-15T22:39:14.372Z",
		SetBy: SetByHuman, Note: "Started via Mission Control (auto mode)",
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(seedExample(t)), string(s.Render())); diff != "" {
		t.Error(diff)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, file, rendered string }{
		{"only the wish", `{"desired_state":"pause"}`, "{\n  \"desired_state\": \"pause\"\n}"},
		{
			"any order, any spacing", "\n{\"note\" : \"n\",\t\"desired_state\":\"run_once\"}\n",
			"{\n  \"desired_state\": \"run_once\",\n  \"note\": \"n\"\n}",
		},
		{
			"an unknown wish stays as written (C13)", `{"desired_state":"Turbo <fast> & loud"}`,
			"{\n  \"desired_state\": \"Turbo <fast> & loud\"\n}",
		},
		{"an empty wish", `{"desired_state":""}`, "{\n  \"desired_state\": \"\"\n}"},
		{
			"names are exact", `{"desired_state":"pause","Desired_State":"x"}`,
			"{\n  \"desired_state\": \"pause\",\n  \"Desired_State\": \"x\"\n}",
		},
		{
			"of two the last, as Python reads it", `{"desired_state":"pause","x":1,"y":2,"desired_state":"run_once","x":3}`,
			"{\n  \"desired_state\": \"run_once\",\n  \"x\": 3,\n  \"y\": 2\n}",
		},
		{
			"unknown fields keep their bytes (X7)",
			`{"n":1e400, "b":12345678901234567890,"desired_state":"pause","o":{ "k" : [1, 2.50] },"e":"\u00e9<"}`,
			"{\n  \"desired_state\": \"pause\",\n  \"n\": 1e400,\n  \"b\": 12345678901234567890,\n  \"o\": { \"k\" : [1, 2.50] },\n  \"e\": \"\\u00e9<\"\n}",
		},
		{
			"a known field that is no string is kept", `{"desired_state":"pause","note":{"a":1},"current_state":null}`,
			"{\n  \"desired_state\": \"pause\",\n  \"note\": {\"a\":1},\n  \"current_state\": null\n}",
		},
		{
			"Python's escapes are read", `{"desired_state":"pause","note":"caf\u00e9 \u2013 ok"}`,
			"{\n  \"desired_state\": \"pause\",\n  \"note\": \"café – ok\"\n}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse([]byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.rendered, string(s.Render())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMalformedSaysWhereAndWhy(t *testing.T) {
	var out bytes.Buffer
	for _, c := range []struct{ name, file string }{
		{"empty", ""},
		{"only white space", " \n\n"},
		{"half", "{\n  \"desired_state\": \"conti"},
		{"half, at a line's end", "{\n  \"desired_state\": \"pause\",\n"},
		{"no JSON", "desired_state: pause"},
		{"a list", "[]"},
		{"a string", `"pause"`},
		{"null", "null"},
		{"no wish", "{\n  \"current_state\": \"pause\"\n}"},
		{"the wish is null", "{\n  \"note\": \"\",\n  \"desired_state\": null\n}"},
		{"the wish is a number", `{"desired_state": 1}`},
		{"the last wish counts", `{"desired_state": "pause", "desired_state": {}}`},
		{"two objects", "{\"desired_state\": \"pause\"}\n{}"},
		{"a rest of a longer file", "{\"desired_state\": \"pause\"}e\"\n}"},
		{"a comma too many", "{\"desired_state\": \"pause\",\n}"},
		{"NaN", "{\"desired_state\": \"pause\",\n \"load\": NaN}"},
		{"no UTF-8", "{\"desired_state\": \"pause\",\n \"note\": \"caf\xe9\"}"},
		{"too deep", `{"desired_state":"pause","x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`},
		{"much too deep", `{"desired_state":"pause","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`},
		{"too large", `{"desired_state":"pause","x":"` + strings.Repeat("x", agentStateBytesMax) + `"}`},
		{"a binary file", "\x7fELF\x00\x00"},
	} {
		s, err := Parse([]byte(c.file))
		var m *Malformed
		if !errors.As(err, &m) || m.Fault == "" || m.Line < 1 {
			t.Errorf("%s: %+v, %v", c.name, s, err)
			continue
		}
		fmt.Fprintf(&out, "%s\n    %s\n", c.name, m)
	}
	golden.Check(t, "testdata/malformed.txt", out.String())
}

// A byte order mark, which some editors write, is skipped and counts for no line.
func TestByteOrderMark(t *testing.T) {
	if s, err := Parse([]byte("\xef\xbb\xbf{\n\"desired_state\": \"pause\"}")); err != nil || s.DesiredState != Pause {
		t.Errorf("%+v, %v", s, err)
	}
	var m *Malformed
	if _, err := Parse([]byte("\xef\xbb\xbf{\n?")); !errors.As(err, &m) || m.Line != 2 {
		t.Errorf("%v", err)
	}
}

func TestAtTheDepthLimitItIsRead(t *testing.T) {
	n := file.DepthMax - 1
	file := `{"desired_state":"pause","x":` + strings.Repeat("[", n) + `"[[[{"` + strings.Repeat("]", n) + `}`
	if _, err := Parse([]byte(file)); err != nil {
		t.Error(err)
	}
}

func TestWithCommandLeavesTheRestAlone(t *testing.T) {
	at := time.Date(2025, 10, 15, 22, 39, 14, 372_999_999, time.FixedZone("", 3600))
	found, err := Parse([]byte(`{"desired_state":"pause","current_state":"run_once","timestamp":5,"note":["x"],"setBy":"agent","pid":7}`))
	if err != nil {
		t.Fatal(err)
	}
	got := string(found.WithCommand(Continuous, SetByHuman, "<go>", at).Render())
	want := "{\n  \"desired_state\": \"continuous\",\n  \"current_state\": \"run_once\",\n  \"timestamp\": \"2025-10-15T21:39:14.372Z\",\n  \"setBy\": \"human\",\n  \"note\": \"<go>\",\n  \"pid\": 7\n}"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if found.SetBy != SetByAgent || len(found.Extra) != 3 {
		t.Errorf("the one it was made from changed: %+v", found)
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"2025-10-15T22:39:14.372Z":         "2025-10-15T22:39:14.372Z",
		"2025-10-15T22:39:14.372123Z":      "2025-10-15T22:39:14.372Z", // the seed's isoformat()+"Z"
		"2025-10-15T22:39:14Z":             "2025-10-15T22:39:14.000Z", // the same with 0 microseconds
		"2025-10-15T22:39:14.9999999999Z":  "2025-10-15T22:39:14.999Z",
		"2025-10-15T22:39:14.5+02:00":      "2025-10-15T20:39:14.500Z",
		"2025-10-15T22:39:14.372+00:00Z":   "2025-10-15T22:39:14.372Z", // the same for a time with a zone
		"2025-10-15 22:39:14.372z":         "2025-10-15T22:39:14.372Z",
		" 2025-10-15t22:39:14.372Z\n":      "2025-10-15T22:39:14.372Z",
		"":                                 "",
		"yesterday":                        "",
		"2025-10-15T22:39:14.372":          "", // no zone, so the time is ambiguous
		"2025-13-15T22:39:14Z":             "",
		"1760567954":                       "",
		strings.Repeat("2", 1<<16):         "",
		"2025-10-15T22:39:14.372Z garbage": "",
	} {
		at, err := State{Timestamp: text}.Time()
		got := ""
		if err == nil {
			got = file.FormatTime(at)
		}
		if got != want || len(fmt.Sprint(err)) > 200 {
			t.Errorf("%.60q is read as %q, want %q (%v)", text, got, want, err)
		}
	}
}

func TestSum(t *testing.T) {
	if got := file.SumOf(nil); got != "e3b0c44298fc1c14" {
		t.Error(got)
	}
}

func FuzzParseAgentState(f *testing.F) {
	f.Add(seedExample(f))
	for _, s := range []string{
		"", "{", "{}", "null", "[]", `{"desired_state":"pause"}`, `{"desired_state":1}`,
		`{"desired_state":"a","desired_state":"b","x":[{"y":null}]}`,
		`{"desired_state":"\ud800","note":"\u2028<&>","current_state":7,"":"","\u0000":1e999}`, "{\"desired_state\":\"pause\"}\n\t \r",
		`{"desired_state":"pause","setBy":[[[[]]]],"note":false}`, "{\"desired_state\":\"\xff\"}", "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			var m *Malformed
			if !errors.As(err, &m) || m.Offset < 0 || m.Offset > int64(len(b)) || m.Line < 1 || m.Fault == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if s.Render(); !json.Valid(s.Render()) {
			t.Fatalf("rendered no JSON: %s", s.Render())
		}
		once, err := Parse(s.Render())
		if len(s.Render()) > agentStateBytesMax {
			return // a file at the size limit may exceed it once indented; Write refuses that
		}
		if err != nil {
			t.Fatalf("not read again: %v\n%s", err, s.Render())
		}
		if !bytes.Equal(once.Render(), s.Render()) {
			t.Fatalf("not stable:\n%s\n%s", s.Render(), once.Render())
		}
		if diff := cmp.Diff(s, once); diff != "" {
			t.Fatal(diff)
		}
		sameFields(t, b, s.WithCommand(RunOnce, SetByHuman, "fuzz", time.Unix(0, 0)).Render())
	})
}

// A timestamp makes no difference, everything else does.
func TestSameAs(t *testing.T) {
	at := func(change func(*State)) State {
		s := State{
			DesiredState: Pause, CurrentState: Pause, Timestamp: "2026-11-26T10:00:00Z", SetBy: SetByHuman, Note: "a",
			Extra: file.Fields{{Name: "mood", Raw: jsontext.Value("1")}},
		}
		change(&s)
		return s
	}
	one := at(func(*State) {})
	for name, c := range map[string]struct {
		change func(*State)
		same   bool
	}{
		"the time":      {func(s *State) { s.Timestamp = "2026-11-26T11:00:00Z" }, true},
		"no time":       {func(s *State) { s.Timestamp = "" }, true},
		"desired_state": {func(s *State) { s.DesiredState = RunOnce }, false},
		"current_state": {func(s *State) { s.CurrentState = RunOnce }, false},
		"setBy":         {func(s *State) { s.SetBy = SetByAgent }, false},
		"note":          {func(s *State) { s.Note = "" }, false},
		"extra":         {func(s *State) { s.Extra = file.Fields{{Name: "mood", Raw: jsontext.Value("2")}} }, false},
	} {
		other := at(c.change)
		if one.SameAs(other) != c.same || other.SameAs(one) != c.same {
			t.Errorf("%s: want %t", name, c.same)
		}
	}
}

// sameFields checks with another parser that a command changes only the fields that it may change.
func sameFields(t *testing.T, before, after []byte) {
	t.Helper()
	var b, a map[string]json.RawMessage
	if err := json.Unmarshal(before, &b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(after, &a); err != nil {
		t.Fatalf("%v\n%s", err, after)
	}
	var empty string
	for name, raw := range b {
		switch name {
		case fieldDesired, fieldTimestamp, fieldSetBy, fieldNote:
			continue
		case fieldCurrent: // a string may be encoded differently; empty means absent
			var was, is string
			if json.Unmarshal(raw, &was) == nil {
				_ = json.Unmarshal(a[name], &is)
				if was != is {
					t.Fatalf("current_state was %q, is %q", was, is)
				}
				continue
			}
		}
		if !bytes.Equal(raw, a[name]) {
			t.Fatalf("%q was %s, is %s", name, raw, a[name])
		}
	}
	if err := json.Unmarshal(a[fieldDesired], &empty); err != nil || empty != RunOnce {
		t.Fatalf("the command is not there: %s", after)
	}
}
