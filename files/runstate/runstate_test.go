package runstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// example is one of the seed's four files.
func example(t testing.TB, n int) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("run_state_%d.json", n)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The seed's examples are written back with the same fields, order and values. The seed prints short lists on
// one line while its tool does not, so both sides are normalised like Python's json.dump.
func TestRunStateExamples(t *testing.T) {
	for n := 1; n <= 4; n++ {
		in := example(t, n)
		s, err := ParseRunState(in)
		if err != nil {
			t.Fatalf("example %d: %v", n, err)
		}
		var flat, want bytes.Buffer
		if err := json.Compact(&flat, in); err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&want, flat.Bytes(), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := s.Render(); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("example %d: got\n%s\nwant\n%s", n, got, want.Bytes())
		}
		again, err := ParseRunState(s.Render())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("example %d: what was written is read as something else (%v)", n, err)
		}
	}
}

func TestRunStateSaysWhatItMeans(t *testing.T) {
	s, err := ParseRunState(example(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	review, approval := s.Steps[0], s.Steps[1]
	if s.RunID != "hij456" || review.ID != "code_review" || approval.Status != StepWaiting || approval.Attempts != 1 ||
		approval.ReportPath != nil {
		t.Errorf("got %+v", s)
	}
	if approval.ManualInputPath == nil || !strings.HasSuffix(*approval.ManualInputPath, "hij456__manual_approval.json") {
		t.Errorf("got %v", approval.ManualInputPath)
	}
	if want := (Metrics{{Name: "issues_found", Value: "3"}, {Name: "severity", Value: "medium"}}); !reflect.DeepEqual(review.Metrics,
		want) {
		t.Errorf("got %v", review.Metrics)
	}
}

// SPEC X7, W15: unknown fields survive, also within a step; the loop's fields follow the seed's.
func TestRunStateKeepsWhatItDoesNotKnow(t *testing.T) {
	in := `{"run_id":"r","workflow_name":"w","x-tool":{"a":[1,2.50,"<b>"]},"steps":{"s":{"status":"RUNNING","loop_items":["a",{"b":1}],"retry":1e3,"loop_index":1,"loop_completed":false,"loop_done":1,"metrics":{"n":87.5,"ok":true}}}}`
	s, err := ParseRunState([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	got := string(s.Render())
	for _, want := range []string{
		"\"x-tool\": {\n    \"a\": [\n      1,\n      2.50,\n      \"<b>\"\n    ]\n  }\n}",
		"\"metrics\": {\n        \"n\": \"87.5\",\n        \"ok\": \"true\"\n      }",
		"\"blocked_by_loop\": null,\n      \"loop_index\": 1,\n      \"loop_items\": [\n        \"a\",\n        {\n          \"b\": 1\n        }\n      ],\n      \"loop_completed\": false,\n      \"loop_done\": 1,\n      \"retry\": 1e3\n    }",
		"\"attempts\": 0", "\"artifacts\": [],", "\"report_path\": null",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nis missing in\n%s", want, got)
		}
	}
}

// A malformed file is refused with its line and the fault.
func TestRunStateFaults(t *testing.T) {
	good := `{"run_id":"r","workflow_name":"w","steps":{"s":{"status":"RUNNING"}}}`
	for _, c := range []struct{ name, in, fault string }{
		{"empty", " \n", "run_state.json is malformed at line 1 (byte 0): the file is empty"},
		{
			"half", good[:40],
			"run_state.json is malformed at line 1 (byte 40): no JSON: unexpected end of JSON input, behind \"{\\\"run_id\\\":\\\"r\\\",\\\"workflow_name\\\":\\\"w\\\",\\\"steps\"",
		},
		{"no object", "[]", "run_state.json is malformed at line 1 (byte 0): is no JSON object"},
		{"no name", `{"run_id":"r","steps":{}}`, "run_state.json is malformed at line 1 (byte 0): workflow_name is missing"},
		{
			"no status", "{\"run_id\":\"r\",\"workflow_name\":\"w\",\n\"steps\":{\"s\":{\n\"attempts\":1}}}",
			"run_state.json is malformed at line 2 (byte 48): steps.s.status is missing",
		},
		{
			"odd status", "{\"run_id\":\"r\",\n\"steps\":{\"s\":{\"status\":\"DONE\"}}}",
			`run_state.json is malformed at line 2 (byte 38): steps.s.status is "DONE"; the words are [PENDING RUNNING WAITING_ON_HUMAN COMPLETED FAILED SKIPPED]`,
		},
		{"number for text", `{"run_id":7}`, "run_state.json is malformed at line 1 (byte 10): run_id is no string"},
		{
			"half a try", `{"steps":{"s":{"status":"RUNNING","attempts":1.5}}}`,
			"run_state.json is malformed at line 1 (byte 45): steps.s.attempts is no whole number from 0 on",
		},
		{
			"less than none", `{"steps":{"s":{"status":"RUNNING","iteration_count":-1}}}`,
			"run_state.json is malformed at line 1 (byte 52): steps.s.iteration_count is no whole number from 0 on",
		},
		{
			"odd artifact", `{"steps":{"s":{"status":"RUNNING","artifacts":["a",{}]}}}`,
			"run_state.json is malformed at line 1 (byte 51): steps.s.artifacts[1] is no string",
		},
		{
			"odd metric", `{"steps":{"s":{"status":"RUNNING","metrics":{"m":{}}}}}`,
			"run_state.json is malformed at line 1 (byte 49): steps.s.metrics.m is neither a string nor a number",
		},
		{"steps in a list", `{"steps":[]}`, "run_state.json is malformed at line 1 (byte 9): steps is no JSON object"},
		{
			"deep", `{"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}",
			"run_state.json is malformed at line 1 (byte 68): nested deeper than 64; flatten it",
		},
		{"not UTF-8", "{\"run_id\":\"\xff\"}", "run_state.json is malformed at line 1 (byte 11): not valid UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseRunState([]byte(c.in))
			var fault *file.JSONFault
			if !errors.As(err, &fault) || err.Error() != c.fault {
				t.Errorf("got  %v\nwant %s", err, c.fault)
			}
		})
	}
}

func FuzzParseRunState(f *testing.F) {
	for n := 1; n <= 4; n++ {
		f.Add(example(f, n))
	}
	f.Add([]byte(`{"run_id":"r","workflow_name":"w","steps":{"s":{"status":"RUNNING","loop_items":[1],"x":[{}]}},"y":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseRunState(b)
		if err != nil {
			var fault *file.JSONFault
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Offset > int64(len(b)) {
				t.Fatalf("a fault without a place: %v", err)
			}
			return
		}
		once := s.Render()
		again, err := ParseRunState(once)
		if err != nil {
			t.Fatalf("what we write, we do not read: %v\n%s", err, once)
		}
		if twice := again.Render(); !bytes.Equal(once, twice) {
			t.Fatalf("written twice, it differs:\n%s\n%s", once, twice)
		}
	})
}

// BenchmarkRunState measures writing and reading a state of 1,000 steps.
func BenchmarkRunState(b *testing.B) {
	path := "/repo/.agents/runs/f8c1a491/reports/f8c1a491__planning.json"
	s := RunState{RunID: "f8c1a491", WorkflowName: "workflow"}
	for i := range 1000 {
		s.Steps = append(s.Steps, StepState{
			ID: fmt.Sprint("step_", i), Status: StepCompleted, Attempts: 1, ReportPath: &path, StartedAt: &path, EndedAt: &path,
			Artifacts: []string{"PLAN.md"}, Logs: []string{"Created development plan in PLAN.md"},
		})
	}
	file := s.Render()
	b.Run("render", func(b *testing.B) {
		b.SetBytes(int64(len(file)))
		for b.Loop() {
			s.Render()
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(file)))
		for b.Loop() {
			if _, err := ParseRunState(file); err != nil {
				b.Fatal(err)
			}
		}
	})
}
