package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed fairlead.schema.json
var schemaJSON []byte

// SchemaJSON is the JSON Schema (draft 2020-12) of fairlead.yaml, for editors.
func SchemaJSON() []byte { return bytes.Clone(schemaJSON) }

// schema is compiled at first use: not every command reads a configuration, and
// some must start fast.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		panic("config: the embedded schema is not JSON: " + err.Error())
	}
	c := jsonschema.NewCompiler()
	const name = "fairlead.schema.json"
	if err := c.AddResource(name, doc); err != nil {
		panic("config: the embedded schema is not taken: " + err.Error())
	}
	return c.MustCompile(name)
})

// checkShape compares the tree with the schema and reports every difference in
// our own words: the validator's quote values, and values may be secrets.
func checkShape(root *node, found *findings) {
	err := schema().Validate(root.plain())
	if err == nil {
		return
	}
	fault, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the validator returns it bare
	if !ok {
		panic("config: the validator fails: " + err.Error())
	}
	s := shape{root: root, found: found}
	for _, leaf := range leaves(fault, nil) {
		s.report(leaf)
	}
}

type shape struct {
	root  *node
	found *findings
}

// leaves are the findings themselves, without the groups they come in. A value of
// the wrong type is one finding: the validator looks no further there.
func leaves(e *jsonschema.ValidationError, into []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	_, named := e.ErrorKind.(*kind.PropertyNames)
	if len(e.Causes) == 0 || named {
		return append(into, e)
	}
	for _, c := range e.Causes {
		into = leaves(c, into)
	}
	return into
}

// at finds the node that a finding is about, and where its key stands.
func (s *shape) at(location []string) (n *node, key place) {
	n = s.root
	key = n.place
	for _, step := range location {
		switch n.kind {
		case object:
			f := n.field(step)
			n, key = f.value, f.place
		case list:
			i, _ := strconv.Atoi(step)
			n = n.items[i]
			key = n.place
		default:
			return n, key
		}
	}
	return n, key
}

func (s *shape) report(e *jsonschema.ValidationError) {
	n, key := s.at(e.InstanceLocation)
	if n.kind == broken {
		return
	}
	at, say := n.place, func(format string, args ...any) { s.found.add(n.place, n.path, format, args...) }
	if n.kind == null {
		at = key
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := s.keysAt(e)
		for _, name := range k.Properties {
			f := n.field(name)
			s.found.add(f.place, f.value.path, "there is no such key here%s", didYouMean(name, known))
		}
	case *kind.PropertyNames:
		// The validator misplaces these; checker.name finds them.
	case *kind.Required:
		for _, name := range k.Missing {
			s.found.add(key, join(n.path, name), "is missing")
		}
	case *kind.Type:
		s.found.add(at, n.path, "%s", typeText(n, k.Want))
	case *kind.Const:
		say("is %s; this program reads %v", shown(n), k.Want)
	case *kind.Enum:
		words := enumWords(k.Want)
		if strings.HasSuffix(n.path, ".driver") {
			say("unknown driver %s%s; there are %s", shown(n), didYouMean(n.text, words), strings.Join(words, ", "))
			return
		}
		say("cannot be %s%s; it is one of %s", shown(n), didYouMean(n.text, words), strings.Join(words, ", "))
	default:
		say("%s", boundText(n, e.ErrorKind))
	}
}

const nameRule = "lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, 64 at most"

// keysAt lists the keys that the schema knows where an unknown one stands.
func (s *shape) keysAt(e *jsonschema.ValidationError) []string {
	sch := schema()
	for _, step := range e.InstanceLocation {
		sch = follow(sch)
		if next, ok := sch.Properties[step]; ok {
			sch = next
		} else if next, ok := sch.AdditionalProperties.(*jsonschema.Schema); ok {
			sch = next
		}
	}
	var keys []string
	for name := range follow(sch).Properties {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

func follow(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

// boundText words what is of the right type and yet out of bounds.
func boundText(n *node, e jsonschema.ErrorKind) string {
	switch k := e.(type) {
	case *kind.Minimum:
		return fmt.Sprintf("is %s; the least is %s", shown(n), k.Want.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("is %s; the most is %s", shown(n), k.Want.RatString())
	case *kind.MinItems:
		return fmt.Sprintf("needs at least %s", count(k.Want, "item"))
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items; the most is %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d entries; the most is %d", k.Got, k.Want)
	case *kind.MinLength:
		return "is empty; give it a value or take the line out"
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters; the most is %d", k.Got, k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are the same", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.Pattern:
		return fmt.Sprintf("%s is not a name: %s", shown(n), nameRule)
	default:
		return "does not have the shape that the reference asks for"
	}
}

func typeText(n *node, want []string) string {
	expected := make([]string, 0, len(want))
	for _, w := range want {
		if w != "null" {
			expected = append(expected, kindWords[w])
		}
	}
	wanted := strings.Join(expected, " or ")
	if slices.Contains(want, "string") {
		wanted = kindWords["string"] // a number in its place is taken as it is written
	}
	switch {
	case n.kind == null:
		return "is empty; give it " + wanted + " or take the line out"
	case n.kind == number && isDuration(n.path):
		return "is a bare number; write the unit with it, such as 90s, 10m or 2h"
	case (n.kind == number || n.kind == boolean) && slices.Contains(want, "string"):
		return "is " + kindName(n.kind) + " and should be a text; put it in quotes"
	default:
		return "is " + kindName(n.kind) + " and should be " + wanted
	}
}

func isDuration(path string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	return slices.Contains([]string{"session", "turn_timeout", "first", "max", "grace"}, last)
}

var kindWords = map[string]string{
	"object": "a mapping (key: value)", "array": "a list", "string": "a text",
	"number": "a number", "integer": "a whole number", "boolean": "true or false",
}

func kindName(k kindOf) string {
	return map[kindOf]string{object: "a mapping", list: "a list", text: "a text", number: "a number", boolean: "true or false", null: "empty"}[k]
}

func enumWords(want []any) []string {
	words := make([]string, len(want))
	for i, w := range want {
		words[i] = fmt.Sprint(w)
	}
	return words
}

// shown is a scalar as it may stand in a message. Environments and addresses
// never come here: the schema asks nothing of them but their type and length.
func shown(n *node) string {
	switch n.kind {
	case text:
		return quoteShort(n.text)
	case number, boolean:
		return strings.Trim(quoteShort(n.text), `"`)
	default:
		return kindName(n.kind)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
