package runstate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// C12 and SPEC's corrections of 2026-11-28: a byte order mark, which some editors write, is skipped in every file that others write.
// With it each reader gives the same as without, faults and their lines included.
func TestByteOrderMarks(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	whole := func(more string) string { return reportHead + `"status":"COMPLETED"` + more + "}" }
	schema := `{"type":"object","required":["metrics"]}`
	readers := map[string]func(path, text string) (any, error){
		"report": func(path, _ string) (any, error) { return ReadReport(path, theStep) },
		"report under a schema": func(path, _ string) (any, error) {
			compiled, err := CompileSchema([]byte(schema))
			if err != nil {
				return nil, err
			}
			of := theStep
			of.Schema = compiled
			return ReadReport(path, of)
		},
		"review": func(path, _ string) (any, error) { return ReadReview(path, theStep) },
		"gates":  func(path, _ string) (any, error) { return ReadGates(path) },
		"answer": func(path, _ string) (any, error) {
			in, err := ReadManualInput(path, "")
			in.Raw = []byte(strings.TrimSpace(string(in.Raw)))
			return in, err
		},
		"form": func(path, _ string) (any, error) {
			in, err := ReadManualInput(path, schema)
			in.Raw = nil
			return in, err
		},
		"schema": func(_, text string) (any, error) { _, err := CompileSchema([]byte(text)); return nil, err },
		"state":  func(path, _ string) (any, error) { return ReadRunState(path) },
		"flow": func(path, _ string) (any, error) {
			w, err := ReadWorkflow(path, PromptPlaces{})
			if w != nil {
				w.root = nil
			}
			return w, err
		},
		"listing": func(path, _ string) (any, error) {
			found, _ := FindWorkflows(filepath.Dir(path), nil)
			return len(found), nil
		},
	}
	for _, c := range []struct{ reader, text string }{
		{"report", whole("")},
		{"report", whole(`,"artifacts":["a"]`)},
		{"report", "{\n\"schema\": }"},
		{"report", "[]"},
		{"report", ""},
		{"report", "{\"a\":"},
		{"report", whole(`,"artifacts":7`)},
		{"report under a schema", whole(`,"metrics":{"a":1}`)},
		{"report under a schema", whole("")},
		{"review", `{"findings":[],"resolved":[]}`},
		{"review", whole(`,"findings":[]`)},
		{"review", "{\n;}"},
		{"gates", `{"ok":true}`},
		{"gates", "{\n\"ok\": yes}"},
		{"gates", ""},
		{"answer", `{"approved":false,"note":"x"}`},
		{"answer", "\n{]"},
		{"form", `{"metrics":1}`},
		{"form", `{"approved":true}`},
		{"schema", schema},
		{"schema", "{\"type\": }"},
		{"schema", "true"},
		{"state", "{}"},
		{"state", "{\n\"run_id\": }"},
		{"flow", "name: w\nsteps: [{id: a, command: [x]}]\n"},
		{"flow", "nam: w\nsteps: []\n"},
		{"flow", "{\"name\": \"w\", \"steps\": [{\"id\": \"a\", \"when\": \"nope\", \"command\": [\"x\"]}]}"},
		{"flow", ""},
		{"listing", "name: w\nsteps: [{id: a, command: [x]}]\n"},
	} {
		path := filepath.Join(t.TempDir(), "file.yaml")
		place := regexp.MustCompile(` \(byte [0-9]+\)`) // of the file as it is
		said := func(text string) string {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readers[c.reader](path, text)
			if review, ok := got.(ReviewAnswer); ok {
				return fmt.Sprintf("%+v, %+v, %v", review.Findings, review.Report != nil, err)
			}
			return place.ReplaceAllString(fmt.Sprintf("%+v, %v", got, err), "")
		}
		if want, got := said(c.text), said(mark+c.text); got != want {
			t.Errorf("%s of %q\nwith a mark %s\nwithout     %s", c.reader, c.text, got, want)
		}
	}
}
