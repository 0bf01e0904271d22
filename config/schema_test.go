package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

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

// sameVerdict compares checkShape with the general validator.
func sameVerdict(t *testing.T, with *jsonschema.Schema, source []byte) {
	t.Helper()
	var read, found findings
	root := parseTree(source, &read)
	if root == nil || len(read.faults) > 0 {
		return // the YAML is not valid, or part of it has no value
	}
	checkShape(root, &found)
	err := with.Validate(plain(root))
	if (err == nil) != (len(found.faults) == 0) {
		t.Fatalf("checkShape reports %v, a general validator %v, for\n%s", found.faults, err, source)
	}
}

// TestShapeAgrees checks that checkShape and a general validator accept the same files.
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
