package runstate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// stateWith is a run state with one step that has the fields given.
func stateWith(fields string) string {
	return `{"run_id":"r","workflow_name":"w","steps":{"s":{"status":"PENDING"` + fields + `}}}`
}

// foreignStates are files as other programs may leave them.
var foreignStates = []struct{ name, in string }{
	{"the least", stateWith("")},
	{
		"fields in another order",
		"{\"steps\":{\"b\":{\"logs\":[\"x\"],\"attempts\":2,\"status\":\"FAILED\"},\"a\":{\"status\":\"SKIPPED\"}},\n\"workflow_name\":\"w\",\"updated_at\":\"2025-01-15T14:30:00Z\",\"run_id\":\"r\"}",
	},
	{
		"unknown fields",
		`{"z":{"b":[1,2.50,{"k":null}],"a":{}},"run_id":"r","workflow_name":"w","steps":{"s":{"y":"<&>","status":"PENDING","x":[[],{}]}},"A":"\u00e9\/"}`,
	},
	{
		"unknown fields that differ in case",
		`{"RUN_ID":"q","run_id":"r","workflow_name":"w","Steps":1,"steps":{"s":{"Status":"no","status":"PENDING"}}}`,
	},
	{
		"big and odd numbers",
		stateWith(`,"x":123456789012345678901234567890,"y":1e400,"z":-0.0,"metrics":{"a":1e3,"b":0.10,"c":12345678901234567890}`),
	},
	{
		"characters",
		stateWith(",\"last_error\":\"\\u0000\\b\\f\\n\\r\\t\\u001f \\u007f <>& \\u2028\\u2029 \\ud83d\\ude00 \\\\ \\\" é 日本 \x7f\""),
	},
	{"characters of unknown fields", stateWith(",\"é\":\"\\u00e9\\ud83d\\ude00 \\/ \\u003c\u2028\"")},
	{"half a surrogate", stateWith(`,"last_error":"\ud800"`)},
	{"half a surrogate, unknown", stateWith(`,"x":"\ud800"`)},
	{"nulls", stateWith(`,"report_path":null,"started_at":null,"ended_at":null,"last_error":null,"manual_input_path":null,"blocked_by_loop":null,"x":null`)},
	{"texts that are empty", stateWith(`,"report_path":"","started_at":"","last_error":"","manual_input_path":"","blocked_by_loop":""`)},
	{"a loop", stateWith(`,"loop_index":1,"loop_items":["a",{"b":[1, 2.0]},null],"loop_completed":false,"loop_done":1`)},
	{"a loop without items", stateWith(`,"loop_index":0,"loop_items":null,"loop_completed":false`)},
	{"a loop that another program finished", stateWith(`,"loop_index":2,"loop_items":[1,2],"loop_completed":true`)},
	{"a byte order mark", "\xef\xbb\xbf" + stateWith("")},
	{"white space", " \r\n\t" + strings.ReplaceAll(stateWith(""), ":", " :\t") + "\n\n"},
	{"a step without a name", `{"run_id":"r","workflow_name":"w","steps":{"":{"status":"PENDING"}}}`},
	{"no steps", `{"run_id":"r","workflow_name":"w","steps":{}}`},
	{"as deep as it may be", stateWith(`,"x":` + strings.Repeat("[", 61) + strings.Repeat("]", 61))},
	{"too deep", stateWith(`,"x":` + strings.Repeat("[", 62) + strings.Repeat("]", 62))},
	{"a bracket in a text", stateWith(`,"x":"` + strings.Repeat("[", 70) + `\"["`)},
	{"a name twice, of the run", `{"run_id":"q",` + "\n" + `"run_id":"r","workflow_name":"w","steps":{}}`},
	{"a name twice, of a step", stateWith(`,"status":"FAILED"`)},
	{"a name twice, of a list of steps", `{"run_id":"r","workflow_name":"w","steps":{"s":{"status":"PENDING"},"s":{"status":"FAILED"}}}`},
	{"a name twice, unknown", stateWith(`,"x":1,"x":2`)},
	{"a name twice, inside of an unknown field", stateWith(`,"x":{"a":1,"a":2}`)},
	{"a name twice, spelled in two ways", stateWith(`,"x":1,"\u0078":2`)},
	{"a name twice, of a metric", stateWith(`,"metrics":{"n":1,"n":2}`)},
	{"a byte of no text", stateWith(",\"last_error\":\"\xff\"")},
	{"a byte of no text, as a name", stateWith(",\"\xff\":1")},
	{"a byte 0", stateWith(",\"last_error\":\"\x00\"")},
	{"a byte 0 behind it", stateWith("") + "\x00"},
	{"a line break in a text", stateWith(",\"last_error\":\"a\nb\"")},
	{"broken off", "{\n\"run_id\":\"r\",\n\"workflow_name\":"},
	{"broken off in a text", "{\n\"run_id\":\"r"},
	{"broken off in a letter", "{\n\"run_id\":\"caf\xc3"},
	{"two of them", stateWith("") + "\n" + stateWith("")},
	{"NaN", stateWith(`,"attempts":NaN`)},
	{"a comma too many", stateWith(`,"attempts":1,`)},
	{"a number with a zero", stateWith(`,"attempts":01`)},
	{"no quotes", `{run_id:"r"}`},
	{"a text", `"x"`},
	{"null", `null`},
	{"empty", ""},
	{"no id", `{"workflow_name":"w","steps":{}}`},
	{"no steps at all", `{"run_id":"r","workflow_name":"w"}`},
	{"null for an id", "{\"workflow_name\":\"w\",\n\"run_id\":null,\"steps\":{}}"},
	{"null for a list", stateWith(`,"artifacts":null`)},
	{"null for a count", stateWith(`,"attempts":null`)},
	{"null for steps", `{"run_id":"r","workflow_name":"w","steps":null}`},
	{"null for a step", `{"run_id":"r","workflow_name":"w","steps":{"s":null}}`},
	{"null for metrics", stateWith(`,"metrics":null`)},
	{"null for a metric", stateWith(`,"metrics":{"n":null}`)},
	{"a list for metrics", stateWith(`,"metrics":[]`)},
	{"a list for a metric", stateWith(",\n" + `"metrics":{"n":[]}`)},
	{"a text for a count", stateWith(`,"attempts":"1"`)},
	{"a count that is too large", stateWith(`,"attempts":9223372036854775808`)},
	{"a count with an exponent", stateWith(`,"attempts":1e0`)},
	{"a text for a list", stateWith(`,"logs":"x"`)},
	{"a number in a list", stateWith(",\n" + `"logs":["x",` + "\n" + `7]`)},
	{"a number for a text", stateWith(`,"last_error":7`)},
	{"a word in small letters", strings.Replace(stateWith(""), "PENDING", "pending", 1)},
	{"a number for items", stateWith(`,"loop_items":7`)},
	{"a text for loop_completed", stateWith(`,"loop_completed":"true"`)},
}

// TestBytesOfRunStates holds what is made of a run_state.json by other programs: the bytes that are written back, and
// those after the run went through the machine, or the fault.
func TestBytesOfRunStates(t *testing.T) {
	var page strings.Builder
	for _, c := range foreignStates {
		fmt.Fprintf(&page, "== %s\n%s\n", c.name, strings.ReplaceAll(fmt.Sprintf("%q", c.in), `\"`, `"`))
		s, err := ParseRunState([]byte(c.in))
		if err != nil {
			fmt.Fprintf(&page, "-- fault\n%v\n", err)
			continue
		}
		once := string(s.Render())
		fmt.Fprintf(&page, "-- written\n%s\n", once)
		plan := workflow.Plan{Name: s.WorkflowName}
		for _, step := range s.Steps {
			one := workflow.Step{ID: workflow.StepID(step.ID), Command: []string{"x"}}
			if step.Loop != nil {
				one.Loop = &workflow.Loop{ItemsFromArtifact: "i.json"}
			}
			plan.Steps = append(plan.Steps, one)
		}
		in, err := StateFoundOf(s, plan, workflow.DefaultOptions(1), "ada")
		if err != nil {
			fmt.Fprintf(&page, "-- not taken\n%v\n", err)
			continue
		}
		r := &workflow.Run{}
		changes, err := r.Decide(in, workflow.Now{At: noon})
		if err != nil {
			fmt.Fprintf(&page, "-- not taken\n%v\n", err)
			continue
		}
		for _, change := range changes {
			r.Apply(change)
		}
		back := RunStateOf(r)
		back.UpdatedAt, back.CreatedAt = s.UpdatedAt, s.CreatedAt
		if again := string(back.Render()); again == once {
			page.WriteString("-- the same after the machine\n")
		} else {
			fmt.Fprintf(&page, "-- after the machine\n%s\n", again)
		}
	}
	golden.Check(t, "testdata/run_state_bytes.golden", page.String())
}

// TestBytesOfReports holds what is read from a report by another program, or the fault.
func TestBytesOfReports(t *testing.T) {
	var page strings.Builder
	for _, c := range []struct{ name, in string }{
		{"unknown fields", reportHead + `"status":"ok","STATUS":"no","x":{"a":[1,{}]}}`},
		{"odd order", `{"metrics":{"b":1,"a":2},"status":"ok",` + reportHead[1:len(reportHead)-1] + "}"},
		{"numbers", reportHead + `"status":"ok","metrics":{"a":123456789012345678901234567890,"b":1E+2,"c":-0.0,"cost_usd":1e-2}}`},
		{"characters", reportHead + `"status":"ok","logs":["\u0000\u2028\ud83d\ude00 <b> \u00e9"],"metrics":{"\u00e9":"\u003c"}}`},
		{"half a surrogate", reportHead + `"status":"ok","logs":["\ud800"]}`},
		{"values of a log", reportHead + `"status":"ok","logs":[1, {"a" : [ 1 ]}, null, true, "x"]}`},
		{"a number as schema", strings.Replace(reportHead, `"run_report@v0"`, "1.0", 1) + `"status":"ok"}`},
		{"a negative number as schema", strings.Replace(reportHead, `"run_report@v0"`, "-1", 1) + `"status":"ok"}`},
		{"a byte order mark", "\xef\xbb\xbf" + reportHead + `"status":"ok"}`},
		{"a byte order mark, and a fault", "\xef\xbb\xbf" + reportHead + "\n" + `"status":"what"}`},
		{"a name twice", reportHead + "\n" + `"status":"ok","status":"failed"}`},
		{"a name twice, of a metric", reportHead + `"status":"ok","metrics":{"a":1,"b":2,"a":3}}`},
		{"a name twice, inside of an unknown field", reportHead + `"status":"ok","x":{"a":1,"a":3}}`},
		{"a byte 0", reportHead + "\"status\":\"ok\x00\"}"},
		{"a path with a 0", reportHead + `"status":"ok","artifacts":["a\u0000b"]}`},
		{"an empty path", reportHead + `"status":"ok","artifacts":[""]}`},
		{"a number as path", reportHead + "\n" + `"status":"ok","artifacts":["a",1]}`},
		{"metrics as list", reportHead + `"status":"ok","metrics":[]}`},
		{"logs as number", reportHead + `"status":"ok","logs":7}`},
		{"next steps as object", reportHead + `"status":"ok","next_suggested_steps":{}}`},
		{"null as status", reportHead + `"status":null}`},
		{"null as agent", strings.Replace(reportHead, `"coder"`, "null", 1) + `"status":"ok"}`},
		{"list as status", reportHead + "\n" + `"status":[]}`},
		{"a list as gate", reportHead + `"status":"ok","gate_failure":[]}`},
		{"a fraction of a second", reportHead + `"status":"ok","again_in_seconds":1.5}`},
		{"less than no second", reportHead + `"status":"ok","again_in_seconds":-1}`},
		{"broken off behind a fault", reportHead + `"status":7,`},
		{"two faults", reportHead + `"status":7,"artifacts":8}`},
	} {
		fmt.Fprintf(&page, "== %s\n%s\n", c.name, strings.ReplaceAll(fmt.Sprintf("%q", c.in), `\"`, `"`))
		got, err := ParseReport("r.json", []byte(c.in), theStep)
		if err != nil {
			fmt.Fprintf(&page, "-- %v\n", err)
			continue
		}
		fmt.Fprintf(&page, "-- failed %v, gate failed %v, why %q, again %v, cost %v\n", got.Failed, got.GateFailed, got.Why,
			got.Again/time.Second, got.CostUSD)
		fmt.Fprintf(&page, "-- artifacts %q, logs %q, metrics %q\n", got.Artifacts, got.Logs, got.Metrics)
	}
	golden.Check(t, "testdata/report_bytes.golden", page.String())
}

// TestBytesOfAnswers holds what is read from answers of reviewers and of people, and from gate-state files.
func TestBytesOfAnswers(t *testing.T) {
	var page strings.Builder
	for _, in := range []string{
		`{"findings":[{"id":"F1","text":"a\u0000b \u2028","file":"a/b.go","line":12,"severity":"SHOULD","x":[1]}],"resolved":["F0"],"y":1}`,
		`{"findings":null}`,
		`{"findings":[null]}`,
		"{\"findings\":[\n{\"id\":7,\"text\":\"x\"}]}",
		`{"findings":[{"id":"F1","text":"x","id":"F2"}]}`,
		`{"findings":[{"id":"F1","text":"x","line":1.5}]}`,
		`{"findings":[{"id":"F1","text":"x","severity":null}]}`,
		`{"findings":[{"id":"F1","text":null}]}`,
		`{"findings":[],"resolved":["F1",7]}`,
		`{"findings":[],"findings":[{"id":"F1","text":"x"}]}`,
		"{\"findings\":[],\"resolved\":[\"F1\"",
	} {
		a, err := ParseReview("a.json", []byte(in), reviewOf)
		fmt.Fprintf(&page, "== review %q\n-- %v %q, %v\n", in, a.Findings, a.Resolved, err)
	}
	for _, in := range []string{
		`{"approved":true,"note":"\u2028 \u0000","by":"ada","extra":{"a":[1, 2.50]}}`,
		`{"approved":true,"approved":false}`,
		`{"approved":null}`, `{"approved":1}`, `{"note":null,"by":null}`, `{"note":["x"]}`,
		"{\"note\":\"\xff\"}", "{\n\"approved\":tru", "{\"note\":\"\x00\"}", "[]", "",
	} {
		got, err := ParseManualInput("h.json", []byte(in), "")
		fmt.Fprintf(&page, "== answer %q\n-- %v %q %q %q, %v\n", in, got.Approved, got.Note, got.By, got.Raw, err)
	}
	const form = `{"properties":{"by":{"type":"string"},"n":{"type":"number","maximum":1e30}},"additionalProperties":false}`
	for _, in := range []string{
		`{"approved":true,"by":"ada","note":"x","n":1e30}`,
		`{"approved":true,"by":7}`, `{"n":1e31}`, `{"m":1}`,
	} {
		_, err := ParseManualInput("h.json", []byte(in), form)
		fmt.Fprintf(&page, "== form %q\n-- %v\n", in, err)
	}
	for _, in := range []string{
		`{"b":true,"a":true,"c":false,"d":null,"\u0065":true}`, `{"a":false,"a":true}`, "{\"a\":true,\n\"b\":1}", "{\"a\":{}}", `[]`,
		"{\"a\":true,}",
	} {
		open, err := ParseGates("g.json", []byte(in))
		fmt.Fprintf(&page, "== gates %q\n-- %q, %v\n", in, open, err)
	}
	golden.Check(t, "testdata/answer_bytes.golden", page.String())
}
