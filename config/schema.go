package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/file"
)

//go:embed fairlead.schema.json
var schemaJSON []byte

// SchemaJSON returns the JSON Schema (draft 2020-12) of fairlead.yaml, for editors.
func SchemaJSON() []byte { return bytes.Clone(schemaJSON) }

// schema holds the keywords of JSON Schema that fairlead.schema.json uses; any other keyword fails to decode.
// A general validator would double the start-up time of the program
// (doc/adr/0009-own-check-of-our-own-schema.md); the tests compare this check with one.
type schema struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Default     any    `json:"default"`

	Ref  string             `json:"$ref"`
	Defs map[string]*schema `json:"$defs"`

	Type  oneOrMore `json:"type"`
	Const *int64    `json:"const"`
	Enum  []string  `json:"enum"`

	Properties    map[string]*schema `json:"properties"`
	Required      []string           `json:"required"`
	PropertyNames *schema            `json:"propertyNames"` // checker.name gives a better message
	MaxProperties *int               `json:"maxProperties"`
	Others        *otherFields       `json:"additionalProperties"`

	Items       *schema `json:"items"`
	MinItems    *int    `json:"minItems"`
	MaxItems    *int    `json:"maxItems"`
	UniqueItems bool    `json:"uniqueItems"`

	MinLength *int    `json:"minLength"` // in characters
	MaxLength *int    `json:"maxLength"`
	Pattern   pattern `json:"pattern"`

	Minimum *json.Number `json:"minimum"`
	Maximum *json.Number `json:"maximum"`
}

// oneOrMore is "string" or ["string", "null"].
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// otherFields is false, or the schema of fields that are not listed by name.
type otherFields struct{ schema *schema }

func (o *otherFields) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		return nil
	}
	return strictly(b, &o.schema)
}

type pattern struct{ *regexp.Regexp }

func (p *pattern) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	re, err := regexp.Compile(text)
	p.Regexp = re
	return err
}

func strictly(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// ourSchema is decoded at first use, because some commands read no configuration and must start fast.
var ourSchema = sync.OnceValue(func() *schema {
	var s struct {
		schema
		Dialect string `json:"$schema"`
		Name    string `json:"$id"`
	}
	if err := strictly(schemaJSON, &s); err != nil {
		panic("config: the embedded schema has a keyword that checkShape does not support: " + err.Error())
	}
	return &s.schema
})

// checkShape compares the tree with the schema and reports every difference. The messages quote no value that
// may be a secret.
func checkShape(root *file.YAMLNode, found *findings) {
	s := shape{defs: ourSchema().Defs, found: found}
	s.check(root, root.Place, ourSchema())
}

type shape struct {
	defs  map[string]*schema
	found *findings
}

// follow resolves a reference.
func (s *shape) follow(rule *schema) *schema {
	for rule.Ref != "" {
		rule = s.defs[strings.TrimPrefix(rule.Ref, "#/$defs/")]
	}
	return rule
}

// check reports what is wrong with one value and the values below it. key is the place of its key, or of the
// value itself. A value of the wrong type is one fault; its content is not checked.
func (s *shape) check(n *file.YAMLNode, key file.Place, rule *schema) {
	rule = s.follow(rule)
	if n.Kind == file.YAMLBroken {
		return
	}
	if len(rule.Type) > 0 && !slices.ContainsFunc(rule.Type, func(typ string) bool { return is(n, typ) }) {
		at := n.Place
		if n.Kind == file.YAMLNull {
			at = key
		}
		s.found.add(at, n.Path, "%s", typeText(n, rule.Type))
		return
	}
	s.checkWords(n, rule)
	switch n.Kind {
	case file.YAMLObject:
		s.checkFields(n, key, rule)
	case file.YAMLList:
		s.checkItems(n, rule)
	case file.YAMLText:
		s.checkText(n, rule)
	case file.YAMLNumber:
		s.checkNumber(n, rule)
	}
}

// is reports whether the value has a type of JSON Schema.
func is(n *file.YAMLNode, typ string) bool {
	switch typ {
	case "object":
		return n.Kind == file.YAMLObject
	case "array":
		return n.Kind == file.YAMLList
	case "string":
		return n.Kind == file.YAMLText
	case "boolean":
		return n.Kind == file.YAMLBool
	case "null":
		return n.Kind == file.YAMLNull
	case "number":
		return n.Kind == file.YAMLNumber
	case "integer":
		return n.Kind == file.YAMLNumber && n.Float(0) == math.Trunc(n.Float(0))
	default:
		panic("config: the schema asks for the type " + typ)
	}
}

func (s *shape) checkWords(n *file.YAMLNode, rule *schema) {
	if rule.Const != nil && (n.Kind != file.YAMLNumber || n.Float(0) != float64(*rule.Const)) {
		s.found.add(n.Place, n.Path, "is %s; this program reads %d", shown(n), *rule.Const)
	}
	if len(rule.Enum) == 0 || n.Kind == file.YAMLText && slices.Contains(rule.Enum, n.Text) {
		return
	}
	words := strings.Join(rule.Enum, ", ")
	if strings.HasSuffix(n.Path, ".driver") {
		s.found.add(n.Place, n.Path, "unknown driver %s%s; there are %s", shown(n), didYouMean(n.Text, rule.Enum), words)
		return
	}
	s.found.add(n.Place, n.Path, "cannot be %s%s; it is one of %s", shown(n), didYouMean(n.Text, rule.Enum), words)
}

func (s *shape) checkFields(n *file.YAMLNode, key file.Place, rule *schema) {
	if most := rule.MaxProperties; most != nil && len(n.Fields) > *most {
		s.found.add(n.Place, n.Path, "has %d entries; the most is %d", len(n.Fields), *most)
	}
	for _, name := range rule.Required {
		if n.Field(name) == nil {
			s.found.add(key, join(n.Path, name), "is missing")
		}
	}
	for _, f := range n.Fields {
		next := rule.Properties[f.Name]
		if next == nil && rule.Others != nil {
			next = rule.Others.schema
			if next == nil {
				known := slices.Sorted(maps.Keys(rule.Properties))
				s.found.add(f.Place, f.Value.Path, "there is no such key here%s", didYouMean(f.Name, known))
			}
		}
		if next != nil {
			s.check(f.Value, f.Place, next)
		}
	}
}

func (s *shape) checkItems(n *file.YAMLNode, rule *schema) {
	if least := rule.MinItems; least != nil && len(n.Items) < *least {
		s.found.add(n.Place, n.Path, "needs at least %s", count(*least, "item"))
	}
	if most := rule.MaxItems; most != nil && len(n.Items) > *most {
		s.found.add(n.Place, n.Path, "has %d items; the most is %d", len(n.Items), *most)
	}
	if i, j := twins(n.Items); rule.UniqueItems && j > 0 {
		s.found.add(n.Place, n.Path, "items %d and %d are the same", i+1, j+1)
	}
	if rule.Items == nil {
		return
	}
	for _, item := range n.Items {
		s.check(item, item.Place, rule.Items)
	}
}

// twins returns the indexes of the first two equal scalars, or 0, 0.
func twins(items []*file.YAMLNode) (int, int) {
	seen := map[[2]string]int{}
	for j, item := range items {
		if item.Kind == file.YAMLObject || item.Kind == file.YAMLList {
			continue // lists with unique items hold scalars; other items were reported
		}
		value := [2]string{file.YAMLKindWords[item.Kind], item.Text}
		if i, ok := seen[value]; ok {
			return i, j
		}
		seen[value] = j
	}
	return 0, 0
}

func (s *shape) checkText(n *file.YAMLNode, rule *schema) {
	length := utf8.RuneCountInString(n.Text)
	if least := rule.MinLength; least != nil && length < *least {
		s.found.add(n.Place, n.Path, "is empty; give it a value or remove the line")
	}
	if most := rule.MaxLength; most != nil && length > *most {
		s.found.add(n.Place, n.Path, "has %d characters; the most is %d", length, *most)
	}
	if rule.Pattern.Regexp != nil && !rule.Pattern.MatchString(n.Text) {
		s.found.add(n.Place, n.Path, "%s is not a name: %s", shown(n), nameRule)
	}
}

func (s *shape) checkNumber(n *file.YAMLNode, rule *schema) {
	if rule.Minimum != nil {
		if least, _ := rule.Minimum.Float64(); n.Float(0) < least {
			s.found.add(n.Place, n.Path, "is %s; the least is %s", shown(n), rule.Minimum)
		}
	}
	if rule.Maximum != nil {
		if most, _ := rule.Maximum.Float64(); n.Float(0) > most {
			s.found.add(n.Place, n.Path, "is %s; the most is %s", shown(n), rule.Maximum)
		}
	}
}

const nameRule = "lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, 64 at most"

func typeText(n *file.YAMLNode, want []string) string {
	expected := make([]string, 0, len(want))
	for _, w := range want {
		if w != "null" {
			expected = append(expected, kindWords[w])
		}
	}
	wanted := strings.Join(expected, " or ")
	if slices.Contains(want, "string") {
		wanted = kindWords["string"] // a number is accepted too and taken as written
	}
	switch {
	case n.Kind == file.YAMLBool && strings.HasSuffix(n.Path, ".sandbox.sockets"):
		return "is " + file.YAMLKindWords[n.Kind] + "; a wall opens single sockets only, so list their paths: sockets: [PATH]"
	case n.Kind == file.YAMLNull:
		return "is empty; give it " + wanted + " or remove the line"
	case n.Kind == file.YAMLNumber && isDuration(n.Path):
		return "is a bare number; write the unit with it, such as 90s, 10m or 2h"
	case (n.Kind == file.YAMLNumber || n.Kind == file.YAMLBool) && slices.Contains(want, "string"):
		return "is " + file.YAMLKindWords[n.Kind] + " and should be a text; put it in quotes"
	default:
		return "is " + file.YAMLKindWords[n.Kind] + " and should be " + wanted
	}
}

func isDuration(path string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	return slices.Contains([]string{"session", "turn_timeout", "status_timeout", "hatch_timeout", "first", "max", "grace", "timeout"}, last)
}

var kindWords = map[string]string{
	"object": "a mapping (key: value)", "array": "a list", "string": "a text",
	"number": "a number", "integer": "a whole number", "boolean": "true or false",
}

// shown formats a scalar for a message. Environments and addresses never get here: the schema checks only
// their type and length.
func shown(n *file.YAMLNode) string {
	switch n.Kind {
	case file.YAMLText:
		return quoteShort(n.Text)
	case file.YAMLNumber, file.YAMLBool:
		return strings.Trim(quoteShort(n.Text), `"`)
	default:
		return file.YAMLKindWords[n.Kind]
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
