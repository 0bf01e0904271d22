package runstate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// reportHead is the beginning of every valid report.
const reportHead = `{"schema":"run_report@v0","run_id":"f8c1a491","step_id":"coding","agent":"coder","started_at":"2025-01-15T14:32:25Z","ended_at":"2025-01-15T14:40:00Z",`

var theStep = ReportFor{RunID: "f8c1a491", StepID: "coding"}

func TestReports(t *testing.T) {
	for _, c := range []struct {
		name, rest string
		want       workflow.Report
		cost       float64
	}{
		{"least", `"status":"COMPLETED"}`, workflow.Report{}, 0},
		{"word", `"status":" Passed "}`, workflow.Report{}, 0},
		{
			"whole", `"status":"success","artifacts":["PLAN.md","src/a.go"],"metrics":{"coverage":87.5,"ok":true,"note":"fine","none":null,"deep":{"a": [1, 2]},"cost_usd":"0.25"},"logs":["one",2],"next_suggested_steps":["review"],"gate_failure":false}`,
			workflow.Report{Facts: workflow.Facts{
				Artifacts: []string{"PLAN.md", "src/a.go"}, Logs: []string{"one", "2"},
				Metrics: []workflow.Metric{
					{Name: "coverage", Value: "87.5"},
					{Name: "ok", Value: "true"},
					{Name: "note", Value: "fine"},
					{Name: "none", Value: "null"},
					{Name: "deep", Value: `{"a":[1,2]}`},
					{Name: "cost_usd", Value: "0.25"},
				},
			}},
			0.25,
		},
		{
			"failed", `"status":"Error","logs":["a","b","c","d"]}`,
			workflow.Report{Failed: true, Why: "b; c; d", Facts: workflow.Facts{Logs: []string{"a", "b", "c", "d"}}},
			0,
		},
		{
			"gate", `"status":"done","gate_failure":true,"logs":"found P0 issues"}`,
			workflow.Report{GateFailed: true, Why: "found P0 issues", Facts: workflow.Facts{Logs: []string{"found P0 issues"}}},
			0,
		},
		{
			"gate with words", `"status":"ok","gate_failure":"found P0 issues"}`,
			workflow.Report{GateFailed: true, Why: "found P0 issues"},
			0,
		},
		{"gate that says no", `"status":"ok","gate_failure":"False"}`, workflow.Report{}, 0},
		{"nulls", `"status":"ok","artifacts":null,"metrics":null,"logs":null,"gate_failure":null,"next_suggested_steps":null,"memory_updates":[{}]}`, workflow.Report{}, 0},
		{"again", `"status":"ok","again_in_seconds":60}`, workflow.Report{Again: time.Minute}, 0},
		{"again, said as none", `"status":"ok","again_in_seconds":0}`, workflow.Report{}, 0},
		{"again as null", `"status":"ok","again_in_seconds":null}`, workflow.Report{}, 0},
		{
			"angle brackets", `"status":"ok","logs":["<div>","a <b> c"]}`,
			workflow.Report{Facts: workflow.Facts{Logs: []string{"<div>", "a <b> c"}}},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseReport("r.json", []byte(reportHead+c.rest), theStep)
			if err != nil || !reflect.DeepEqual(got.Report, c.want) || got.CostUSD != c.cost {
				t.Errorf("got %+v, %v\nwant %+v", got.Report, err, c.want)
			}
		})
	}
}

// A fault of a report quotes the content; content that breaks off may still be being written.
func TestFaultsOfReports(t *testing.T) {
	good := reportHead + `"status":"COMPLETED"}`
	for _, c := range []struct {
		name, in, want string
		unfinished     bool
	}{
		{"nothing", "", "r.json:1: the file is empty", true},
		{"white", "\n\n", "r.json:1: the file is empty", true},
		{"half", good[:60], "no JSON: unexpected end of JSON input, behind ", true},
		{"half a letter", reportHead + "\"status\":\"caf\xc3", "not valid UTF-8", true},
		{"a bad letter", strings.Replace(good, "coder", "c\xffder", 1), "not valid UTF-8", false},
		{
			"broken", strings.Replace(good, `,"agent"`, `;"agent"`, 1),
			`r.json:1: no JSON: invalid character ';' after object value (expecting ',' or '}'), behind "\",\"run_id\":\"f8c1a491\",\"step_id\":\"coding\""`, false,
		},
		{"two", good + good, "no JSON: invalid character '{' after top-level value", false},
		{"list", "[]", "r.json:1: is no JSON object", false},
		{"missing", `{"schema":"x","status":"ok"}`, "missing: run_id, step_id, agent, started_at, ended_at; a report has schema, ", false},
		{
			"again too late", reportHead + `"status":"ok","again_in_seconds":86401}`,
			`again_in_seconds is 86401; take a number of seconds from 1 to 86400`, false,
		},
		{"again in words", reportHead + `"status":"ok","again_in_seconds":"soon"}`, `again_in_seconds is no whole number`, false},
		{"another run", strings.Replace(good, "f8c1a491", "xyz789", 1), `run_id is "xyz789", and this is run "f8c1a491"`, false},
		{"another step", strings.Replace(good, `"coding"`, `"review"`, 1), `step_id is "review", and this is step "coding"`, false},
		{"status", strings.Replace(good, "COMPLETED", "MAYBE", 1), `status is "maybe"; write COMPLETED or FAILED`, false},
		{
			"placeholder", strings.Replace(good, "COMPLETED", "<COMPLETED or FAILED>", 1),
			`status is "<COMPLETED or FAILED>", which is a placeholder; write what it really is`, false,
		},
		{"placeholder of a run", strings.Replace(good, "f8c1a491", "<run_id>", 1), `run_id is "<run_id>", which is a placeholder`, false},
		{"undecided", strings.Replace(good, "2025-01-15T14:40:00Z", "TBD", 1), `ended_at is "TBD", which is a placeholder`, false},
		{"no agent", strings.Replace(good, `"coder"`, `" "`, 1), "agent is empty", false},
		{"number", strings.Replace(good, `"coder"`, `7`, 1), "agent is no string", false},
		{
			"artifact", reportHead + `"status":"ok","artifacts":["a.md","<path to file>"]}`,
			`artifacts names "<path to file>", its 2., which is no path`, false,
		},
		{"artifacts in a text", reportHead + `"status":"ok","artifacts":"a.md"}`, "artifacts is no list", false},
		{
			"metric", reportHead + `"status":"ok","metrics":{"coverage":"<percent>"}}`,
			`metrics.coverage is "<percent>", which is a placeholder`, false,
		},
		{"log", reportHead + `"status":"ok","logs":["<what you did>"]}`, `logs has "<what you did>", which is a placeholder`, false},
		{
			"the template's artifact", reportHead + `"status":"ok","artifacts":["list of created file paths"]}`,
			`artifacts names "list of created file paths", its 1., which is no path`, false,
		},
		{"marked", reportHead + `"status":"ok","artifacts":["[Replace with actual artifact]"]}`, `which is no path`, false},
		{
			"with its example",
			reportHead + `"status":"ok","logs":["<REPLACE WITH A SHORT SUMMARY OF WHAT YOU ACCOMPLISHED, e.g., Wrote docs/plan.md>"]}`,
			`which is a placeholder; write what was done`, false,
		},
		{
			"the template's log", reportHead + `"status":"ok","logs":["Concise summary of work performed."]}`,
			`which is a placeholder; write what was done`, false,
		},
		{
			"as a text", reportHead + `"status":"ok","logs":"summary of what you accomplished"}`,
			`which is a placeholder; write what was done`, false,
		},
		{
			"the template's time", strings.Replace(good, "2025-01-15T14:40:00Z", "<REPLACE WITH UTC TIMESTAMP WHEN YOU FINISH>", 1),
			`ended_at is "<REPLACE WITH UTC`, false,
		},
		{"gate", reportHead + `"status":"ok","gate_failure":7}`, "gate_failure is neither true nor false, nor a text", false},
		{"large", reportHead + `"status":"` + strings.Repeat("x", reportBytesMax) + `"}`, "larger than 16 MiB", false},
		{
			"deep", reportHead + `"status":"ok","x":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + "}", "nested deeper than 64",
			false,
		},
		{"line", strings.ReplaceAll(strings.Replace(good, "COMPLETED", "no", 1), ",", ",\n"), "r.json:7: status is", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseReport("r.json", []byte(c.in), theStep)
			var fault *ReportFault
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) || fault.Unfinished != c.unfinished {
				t.Errorf("got  %v (%+v)\nwant %s", err, fault, c.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("a fault of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestReportsAndTheirSchema(t *testing.T) {
	schema, err := CompileSchema([]byte(`{"required":["metrics"],"properties":{"metrics":{"required":["coverage"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	of := theStep
	of.Schema = schema
	if _, err := ParseReport("r.json", []byte(reportHead+`"status":"ok"}`), of); err == nil ||
		!strings.Contains(err.Error(), "it does not fit the schema: ") {
		t.Errorf("got %v", err)
	}
	if _, err := ParseReport("r.json", []byte(reportHead+`"status":"ok","metrics":{"coverage":1}}`), of); err != nil {
		t.Errorf("got %v", err)
	}
}

// The same report is read between markers in an agent's output.
func TestReportBetweenMarkers(t *testing.T) {
	var s marker.Scanner
	pieces := append(s.Write([]byte("I am done.\n<<<RUN_REPORT_JSON\n"+reportHead+`"status":"ok"}`+"\nRUN_REPORT_JSON>>>\nBye.\n")),
		s.Flush()...)
	for _, p := range pieces {
		if p.Marker == nil {
			continue
		}
		if r, err := ParseReport("the output", p.Marker.JSON, theStep); err != nil || r.Failed {
			t.Errorf("got %+v, %v", r, err)
		}
		return
	}
	t.Error("no marker was found")
}

// A report is a regular file: no link is followed, and a pipe does not block.
func TestReadReport(t *testing.T) {
	dir := t.TempDir()
	good := put(t, dir, "good.json", reportHead+`"status":"ok"}`)
	if _, err := ReadReport(good, theStep); err != nil {
		t.Error(err)
	}
	if _, err := ReadReport(filepath.Join(dir, "absent.json"), theStep); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := ReadReport(filepath.Join(dir, "no", "absent.json"), theStep); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	link, pipe := filepath.Join(dir, "link.json"), filepath.Join(dir, "pipe.json")
	if err := errors.Join(os.Symlink(good, link), syscall.Mkfifo(pipe, 0o600),
		os.Mkdir(filepath.Join(dir, "folder.json"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, pipe, filepath.Join(dir, "folder.json")} {
		_, err := ReadReport(name, theStep)
		var fault *ReportFault
		if !errors.As(err, &fault) || fault.Unfinished {
			t.Errorf("%s: got %v", name, err)
		}
	}
	large := put(t, dir, "large.json", "")
	if err := os.Truncate(large, 1<<40); err != nil { // a sparse file uses no space
		t.Skip("no sparse files here")
	}
	if _, err := ReadReport(large, theStep); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestManualInputs(t *testing.T) {
	const form = `{"type":"object","required":["release"],"properties":{"release":{"type":"string"}},"additionalProperties":false}`
	for _, c := range []struct {
		name, in, schema string
		approved         bool
		note, fault      string
	}{
		{"empty object", `{}`, "", true, "", ""},
		{"approved", `{"approved":true,"note":"go","by":"ada"}`, "", true, "go", ""},
		{"rejected", `{"approved":false,"note":"not yet"}`, form, false, "not yet", ""},
		{"form", `{"approved":true,"note":"go","release":"v1"}`, form, true, "go", ""},
		{"named by the schema", `{"note":"x"}`, `{"properties":{"note":{"minLength":2}}}`, true, "", "minLength"},
		{"form not filled in", `{"approved":true}`, form, true, "", "h.json:1: does not fit the step's input_schema: "},
		{"quoted", `{"approved":"no"}`, "", true, "", "h.json:1: approved is neither true nor false; write it without quotes"},
		{"odd note", `{"note":7}`, "", true, "", "note is no string"},
		{"text", `"yes"`, "", true, "", "is no JSON object"},
		{"half", `{"approved":`, "", true, "", "unexpected end"},
		{"schema that is none", `{}`, `{"type":7}`, true, "", "input_schema of the step is no JSON Schema"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := ParseManualInput("h.json", []byte(c.in), c.schema)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("got %v, want %s", err, c.fault)
				}
				return
			}
			if err != nil || in.Approved != c.approved || in.Note != c.note || string(in.Raw) != c.in {
				t.Errorf("got %+v, %v", in, err)
			}
		})
	}
	path := put(t, t.TempDir(), "h.json", `{"approved":`)
	_, err := ReadManualInput(path, "")
	var fault *ReportFault
	if !errors.As(err, &fault) || !fault.Unfinished {
		t.Errorf("got %v", err)
	}
}

func TestGates(t *testing.T) {
	open, err := ParseGates("g.json", []byte(`{"ci.tests: passed":true,"deploy":false,"later":null,"a":true}`))
	if err != nil || !reflect.DeepEqual(open, []string{"a", "ci.tests: passed"}) {
		t.Errorf("got %v, %v", open, err)
	}
	for in, want := range map[string]string{
		`{"a":"true"}`: "g.json:1: a is neither true nor false; write it without quotes",
		`["a"]`:        "is no JSON object",
		`{"a":tru`:     "no JSON: ",
	} {
		if _, err := ParseGates("g.json", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(put(t, dir, "real.json", `{"a":true}`), filepath.Join(dir, "g.json")); err != nil {
		t.Fatal(err)
	}
	if open, err := ReadGates(filepath.Join(dir, "g.json")); err != nil || len(open) != 1 {
		t.Errorf("got %v, %v", open, err)
	}
	if _, err := ReadGates(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseReport(f *testing.F) {
	for _, rest := range []string{
		`"status":"ok"}`, `"status":"FAILED","artifacts":["a"],"metrics":{"a":1,"b":{"c":null}},"logs":["x",{}],"gate_failure":"no good"}`,
		`"status":"<x>"`, `"approved":false,"note":"x","status":7}`,
	} {
		f.Add([]byte(reportHead + rest))
	}
	f.Add([]byte(`{"a":true,"b":false}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReport("r.json", b, theStep)
		_, err2 := ParseManualInput("h.json", b, `{"properties":{"a":{"type":"string"}}}`)
		_, err3 := ParseGates("g.json", b)
		for _, err := range []error{err, err2, err3} {
			var fault *ReportFault
			if err != nil && (!errors.As(err, &fault) || fault.Line < 1 || fault.Text == "") {
				t.Fatalf("a fault without a place: %v", err)
			}
		}
		if err == nil && r.Status != StepCompleted && r.Status != StepFailed {
			t.Fatalf("taken: %+v", r)
		}
	})
}
