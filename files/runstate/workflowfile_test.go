package runstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// workflowFiles returns the files of one part of the corpus.
func workflowFiles(t testing.TB, part string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "workflows", part, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows in %s (%v)", part, err)
	}
	return files
}

// goldenName returns the path of a workflow's golden file, relative to testdata.
func goldenName(file, suffix string) string {
	return strings.TrimPrefix(strings.TrimSuffix(filepath.ToSlash(file), ".yaml"), "testdata/") + suffix
}

func corpusPlaces(t testing.TB) PromptPlaces {
	t.Helper()
	repo, err := filepath.Abs(filepath.Join("testdata", "workflows"))
	if err != nil {
		t.Fatal(err)
	}
	return PromptPlaces{Repo: repo}
}

func TestGoodWorkflows(t *testing.T) {
	places := corpusPlaces(t)
	for _, file := range workflowFiles(t, "good") {
		w, err := ReadWorkflow(file, places)
		if err != nil {
			t.Errorf("%s:\n%v", file, err)
			continue
		}
		for id, path := range w.Prompts {
			w.Prompts[id] = places.shown(path)
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(map[string]any{"plan": w.Plan, "prompts": w.Prompts}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/"+goldenName(file, ".json"), b.String())
	}
}

// Every fault of a file is listed with file, line and column.
func TestFaultsOfWorkflows(t *testing.T) {
	for _, part := range []string{"shape", "graph"} {
		for _, file := range workflowFiles(t, part) {
			_, err := ReadWorkflow(file, corpusPlaces(t))
			var faults *FileFaults
			if !errors.As(err, &faults) {
				t.Errorf("%s: got %v", file, err)
				continue
			}
			golden.Check(t, "testdata/"+goldenName(file, ".faults"), err.Error()+"\n")
		}
	}
}

func TestNoWorkflow(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "flow.yaml:1:1: is empty; a workflow has a name and steps"},
		{"comment", "# nothing\n", "flow.yaml:1:1: is empty; a workflow has a name and steps"},
		{"list", "- a\n", "flow.yaml:1:1: is no mapping; a workflow has a name and steps"},
		{"tab", "name: a\nsteps:\n\t- id: b\n", "flow.yaml:3:1: a tab cannot indent YAML; use spaces"},
		{"colon", "name: a: b\n", "flow.yaml:1:8: a key cannot begin here; look at the indentation, or put a text with a colon in quotes"},
		{"control", "name: a\x00\n", `flow.yaml:1:8: holds a control character (U+0000); take it out, or write it as "\x00" in quotes`},
		{"latin", "name: caf\xe9\n", "flow.yaml:1:10: is not UTF-8 from here on; save the file as UTF-8"},
		{"two", "name: a\n---\nname: b\n", "flow.yaml:2:1: a second document begins here; the file holds one, take out the line ---"},
		{
			"alias", "name: *a\n",
			"flow.yaml:1:7: an alias (*name) has no anchor (&name) before it; put a text that begins with * or & in quotes",
		},
		{"twice", "name: a\nsteps: [{id: b, command: [c]}]\nname: d\n", "flow.yaml:3:1: name: is written twice; it is on line 1 already"},
		{"bomb", "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + bomb(8) + "name: z\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseWorkflow("flow.yaml", []byte(c.in), nil)
			if err == nil || c.want != "" && err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// bomb returns nested aliases: 10 to the power of n values.
func bomb(n int) string {
	var b strings.Builder
	for i := range n {
		name, before := string(rune('b'+i)), string(rune('a'+i))
		fmt.Fprintf(&b, "%s: &%s [%s]\n", name, name, strings.Repeat("*"+before+",", 10))
	}
	return b.String()
}

// The schema for editors and the reader agree: the reader refuses what the schema refuses, and the schema
// accepts what the reader accepts.
func TestSchemaAndReaderAgree(t *testing.T) {
	schema := editorsSchema(t)
	for part, shape := range map[string]bool{"good": true, "graph": true, "shape": false} {
		for _, file := range workflowFiles(t, part) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(asJSON(t, b)); (err == nil) != shape {
				t.Errorf("%s: the schema says %v", file, err)
			}
		}
	}
	var keys struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(WorkflowSchema(), &keys); err != nil {
		t.Fatal(err)
	}
	same := func(of string, known []field, said map[string]any) {
		if len(known) != len(said) {
			t.Errorf("%s: the reader knows %d fields, the schema %d", of, len(known), len(said))
		}
		for _, k := range known {
			if said[k.name] == nil {
				t.Errorf("%s: the schema does not know %s", of, k.name)
			}
		}
	}
	same("workflow", planFields(&workflow.Plan{}), keys.Properties)
	same("step", stepFields(&workflow.Step{}), keys.Defs["step"].Properties)
	same("loop", loopFields(&workflow.Loop{}), keys.Defs["loop"].Properties)
}

func editorsSchema(t testing.TB) *santhosh.Schema {
	t.Helper()
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(WorkflowSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := santhosh.NewCompiler()
	if err := c.AddResource("workflow.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON converts YAML for a validator.
func asJSON(t testing.TB, b []byte) any {
	t.Helper()
	root := workflowFormat.Read(b, func(at file.Place, path, text string) { t.Helper(); t.Fatalf("%v %s: %s", at, path, text) })
	text, _, fault := file.YAMLToJSON(root)
	if fault != "" {
		t.Fatal(fault)
	}
	doc, err := santhosh.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A plan of 10,000 steps is read quickly.
func TestLargeWorkflow(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: large\nsteps:\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  - id: s%d\n    command: [make, test]\n    when: true\n", i)
		if i > 0 {
			fmt.Fprintf(&b, "    needs: [s%d]\n", i-1)
		}
	}
	w, err := ParseWorkflow("large.yaml", []byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.Plan.Steps); n != 10_000 {
		t.Errorf("got %d steps", n)
	}
	at := w.Place(workflow.Fault{Step: 9_999, ID: "s9999", Field: "needs", Item: 0, Fault: "as an example"})
	if at.Line != 40_001 || at.Column != 13 || at.Path != "steps.s9999.needs[0]" {
		t.Errorf("got %v", at)
	}
}

func FuzzParseWorkflow(f *testing.F) {
	for _, part := range []string{"good", "shape", "graph"} {
		for _, file := range workflowFiles(f, part) {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte("name: a\nsteps: [{id: b, command: [c], when: \"\\x41\"}, {<<: [*a]}]"))
	schema := editorsSchema(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ParseWorkflow("flow.yaml", b, nil)
		if err == nil {
			if faults := w.Plan.Check(); len(faults) > 0 {
				t.Fatalf("taken with a fault: %v", faults[0])
			}
			// The schema for editors takes no fields of other tools; the reader warns of them.
			if err := schema.Validate(asJSON(t, b)); err != nil && len(w.Warnings) == 0 {
				t.Fatalf("the reader takes what the schema for editors does not: %v", err)
			}
			return
		}
		var faults *FileFaults
		if !errors.As(err, &faults) || len(faults.List) == 0 {
			t.Fatalf("refused without a fault: %v", err)
		}
		lines := 2
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // YAML accepts all of these line ends
			lines += strings.Count(string(b), end)
		}
		for _, one := range faults.List {
			if one.Line < 1 || one.Line > lines || one.Column < 1 || one.Text == "" {
				t.Fatalf("a fault without a place: %v", one)
			}
		}
	})
}
