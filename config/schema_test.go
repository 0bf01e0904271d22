package config

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	schema "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

const schemaPath = "fairlead.schema.json"

// TestSchema generates the JSON Schema from the rules and the comments of the fields. Renew it with UPDATE=1.
func TestSchema(t *testing.T) {
	described := descriptions(t)
	s := schemaOf(configRule(), described)
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", "urn:fairlead:config:1", FileName
	s.Description = fileDescription
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, schemaPath, string(b)+"\n")
}

const fileDescription = "The team of one repository: its agents, their channels and their limits. The file is at the root of the repository."

// descriptions are the comments of the fields of structs, by TYPE.FIELD.
func descriptions(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, is := n.(*ast.TypeSpec); is {
				if typ, is := spec.Type.(*ast.StructType); is {
					for _, f := range typ.Fields.List {
						for _, field := range f.Names {
							all[spec.Name.Name+"."+field.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
						}
					}
				}
			}
			return true
		})
	}
	return all
}

// schemaOf is the JSON Schema of a rule.
func schemaOf(r *rule, described map[string]string) *schema.Schema {
	if r.word != nil && len(r.fields) == 0 {
		return schemaOf(r.word, described)
	}
	s := &schema.Schema{}
	switch r.kinds[0] {
	case file.YAMLObject:
		s.Type = "object"
		if r.item != nil {
			s.MaxProperties, s.AdditionalProperties = &r.many, schemaOf(r.item, described)
			if r.item.name.tag.Get("format") == "name" {
				s.PropertyNames = &schema.Schema{Pattern: namePattern.String()}
			}
			break
		}
		s.AdditionalProperties, s.Properties = &schema.Schema{Not: &schema.Schema{}}, map[string]*schema.Schema{}
		for _, f := range r.fields {
			if f.tag.Get("required") != "" {
				s.Required = append(s.Required, f.key)
			}
			property := schemaOf(f, described)
			property.Description = described[r.typ.Name()+"."+r.typ.Field(f.index).Name]
			s.Properties[f.key], s.PropertyOrder = property, append(s.PropertyOrder, f.key)
		}
		if r.word != nil {
			s = &schema.Schema{AnyOf: []*schema.Schema{schemaOf(r.word, described), s}}
		}
	case file.YAMLList:
		s.Type, s.Items, s.MaxItems, s.UniqueItems = "array", schemaOf(r.item, described), &r.many, r.tag.Get("uniqueItems") != ""
		if r.few > 0 {
			s.MinItems = &r.few
		}
		if r.tag.Get("alone") != "" {
			s = &schema.Schema{AnyOf: []*schema.Schema{schemaOf(r.item, described), s}}
		}
	case file.YAMLText:
		textSchema(s, r)
	case file.YAMLBool:
		s.Type = "boolean"
	default:
		if s.Type = "integer"; r.typ.Kind() == reflect.Float64 {
			s.Type = "number"
		}
		s.Minimum, s.Maximum = &r.least.value, &r.most.value
	}
	if r.standard != nil {
		s.Default = json.RawMessage(r.standard.Text)
		if r.kinds[0] == file.YAMLText || r.word != nil {
			s.Default = encode.JSON(r.standard.Text)
		}
	}
	if r.key != "" && r.tag.Get("nullable") != "" {
		s.Type, s.Types = "", []string{s.Type, "null"}
	}
	return s
}

func textSchema(s *schema.Schema, r *rule) {
	for _, word := range r.words {
		s.Enum = append(s.Enum, word)
	}
	switch {
	case len(r.words) > 0:
		return
	case r.typ.Kind() == reflect.Int64 && !r.isDuration():
		s.Types, s.Pattern = []string{"string", "integer"}, "^(0|[1-9][0-9]{0,5} ?(MB|GB|TB))$"
		return
	case r.tag.Get("scalars") != "":
		s.Types = []string{"string", "number", "boolean"}
	default:
		s.Type = "string"
	}
	if s.MaxLength = &r.many; r.few > 0 {
		s.MinLength = &r.few
	}
	if r.pattern != nil {
		s.Pattern = r.pattern.String()
	}
	if r.tag.Get("format") == "name" {
		s.Pattern = namePattern.String()
	}
}

// general is a general JSON Schema validator with the schema of fairlead.yaml. Rules for names are left out: checker.name
// reports those at the place of the key.
func general(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		t.Fatal(err)
	}
	forgetNames(doc)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("s.json")
}

func forgetNames(doc any) {
	switch doc := doc.(type) {
	case map[string]any:
		delete(doc, "propertyNames")
		for _, v := range doc {
			forgetNames(v)
		}
	case []any:
		for _, v := range doc {
			forgetNames(v)
		}
	}
}

// shape matches the faults that a schema can express.
var shape = regexp.MustCompile(`: (there is no such key here|is missing$|is empty; give it|has \d+ (items|entries|characters);|cannot be .*; it is one of|` +
	`is (empty|a|true) .*should be|is -?[0-9.e+]+; the (least|most) is)`)

// sameVerdict compares the reader with the general validator.
func sameVerdict(t *testing.T, with *jsonschema.Schema, source []byte) {
	t.Helper()
	var read findings
	root := parseTree(source, &read)
	if root == nil || len(read.faults) > 0 {
		return // the YAML is not valid, or part of it has no value
	}
	_, err := Parse(FileName, t.TempDir(), source, nil)
	switch general := with.Validate(plain(root)); {
	case general != nil && err == nil:
		t.Fatalf("only the general validator reports %v for\n%s", general, source)
	case general == nil && err != nil && shape.MatchString(err.Error()):
		t.Fatalf("only the reader reports %v for\n%s", err, source)
	}
}

// TestShapeAgrees checks that the reader and a general validator with the schema accept the same values.
func TestShapeAgrees(t *testing.T) {
	with := general(t)
	for _, source := range shapeCorpus(t) {
		sameVerdict(t, with, source)
	}
}

// FuzzShapeAgrees is TestShapeAgrees for generated files.
func FuzzShapeAgrees(f *testing.F) {
	for _, source := range shapeCorpus(f) {
		f.Add(source)
	}
	with := general(f)
	f.Fuzz(func(t *testing.T, source []byte) { sameVerdict(t, with, source) })
}

// shapeCorpus returns all files of the tests, and files that keep and break each rule of the schema.
func shapeCorpus(t testing.TB) [][]byte {
	t.Helper()
	all := [][]byte{[]byte(contract), Starter(StarterConfig)}
	files, err := filepath.Glob("testdata/faults/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, []byte(sections(string(b))[FileName]))
	}
	for _, line := range []string{
		"version: 2", "version: 1.0", "version: 1.5", "version: '1'", "version:", "version: true", "[]", "5",
		"version: 1\nagents:", "version: 1\nagents: {a: }", "version: 1\nagents: {a: []}", "version: 1\nnope: 1", "version: 1\nlisten: ''",
		"version: 1\nteam: {size: 0}", "version: 1\nteam: {size: 1}", "version: 1\nteam: {size: 8}", "version: 1\nteam: {size: 9}",
		"version: 1\nteam: {size: 2.5}", "version: 1\nteam: {size: 1e0}",
		"version: 1\nagents: {a: {driver: exec, command: []}}", "version: 1\nagents: {a: {driver: exec, command: [x, x]}}",
		"version: 1\nagents: {a: {driver: exec, command: ['']}}",
		"version: 1\nagents: {a: {driver: nope}}", "version: 1\nagents: {a: {driver: 5}}",
		"version: 1\nagents: {a: {driver: script, script: " + strings.Repeat("x", 5000) + "}}",
		"version: 1\nagents: {a: {permissions: {can_write: [a, b, a]}}}", "version: 1\nagents: {a: {permissions: {can_write: [1, '1']}}}",
		"version: 1\nagents: {a: {permissions: {can_write: [[], []]}}}",
		"version: 1\nagents: {a: {mode: '', resume: never, mcp: auto}}", "version: 1\nagents: {a: {resume: on, mcp: off, mode: 5}}",
		"version: 1\nagents: {a: {permissions: {allow: [Read], deny: [], timeout: 5, otherwise: ask}}}",
		"version: 1\nchannels: {c: {agents: [a, a]}}", "version: 1\nchannels: {c: {agents: [a], humanInterruptMode: shout}}",
		"version: 1\nchannels: {c: {agents: [a, b], maxRounds: -1}}",
		"version: 1\nsession: {main: a, ranker: B, threshold: 0.5}", "version: 1\nsession: {threshold: 1001, tools: [a, a], sandbox: off}",
		"version: 1\nsession:", "version: 1\nsession: {tools: [1], sandbox: true}",
		"version: 1\nagents: {a: {sandbox: {mode: auto, read: [a], write: [a], hide: [a], sockets: [a]}}}",
		"version: 1\nagents: {a: {sandbox: {mode: 5, sockets: true}}}", "version: 1\nagents: {a: {sandbox: [a]}}",
		"version: 1\nagents: {a: {sandbox: {reads: [a], hide: ['']}}}",
		"version: 1\ndispatch: {sandbox: {mode: off, write: [a]}}", "version: 1\ndispatch: {sandbox: {sockets: a}}",
		"version: 1\nagents: {a: {env: {K: 1, L: true, M: x, N: }}}", "version: 1\nagents: {a: {env: [x]}}",
		"version: 1\nagents: {a: {limits: {tokens: 1.5, cost_per_day_usd: 0}}}",
	} {
		all = append(all, []byte(line+"\n"))
	}
	return all
}

// plain is the value as JSON Schema sees it.
func plain(n *file.YAMLNode) any {
	switch n.Kind {
	case file.YAMLObject:
		m := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			m[f.Name] = plain(f.Value)
		}
		return m
	case file.YAMLList:
		a := make([]any, len(n.Items))
		for i, item := range n.Items {
			a[i] = plain(item)
		}
		return a
	case file.YAMLText:
		return n.Text
	case file.YAMLNumber:
		v, _ := file.ParseYAMLNumber(n.Text)
		return v
	case file.YAMLBool:
		return strings.EqualFold(n.Text, "true")
	default:
		return nil
	}
}
