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
		panic("config: the embedded schema says what checkShape does not read: " + err.Error())
	}
	return &s.schema
})

// checkShape compares the tree with the schema and reports every difference. The messages quote no value that
// may be a secret.
func checkShape(root *node, found *findings) {
	s := shape{defs: ourSchema().Defs, found: found}
	s.check(root, root.place, ourSchema())
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
func (s *shape) check(n *node, key place, rule *schema) {
	rule = s.follow(rule)
	if n.kind == broken {
		return
	}
	if len(rule.Type) > 0 && !slices.ContainsFunc(rule.Type, n.is) {
		at := n.place
		if n.kind == null {
			at = key
		}
		s.found.add(at, n.path, "%s", typeText(n, rule.Type))
		return
	}
	s.checkWords(n, rule)
	switch n.kind {
	case object:
		s.checkFields(n, key, rule)
	case list:
		s.checkItems(n, rule)
	case text:
		s.checkText(n, rule)
	case number:
		s.checkNumber(n, rule)
	}
}

// is reports whether the value has a type of JSON Schema.
func (n *node) is(typ string) bool {
	switch typ {
	case "object":
		return n.kind == object
	case "array":
		return n.kind == list
	case "string":
		return n.kind == text
	case "boolean":
		return n.kind == boolean
	case "null":
		return n.kind == null
	case "number":
		return n.kind == number
	case "integer":
		return n.kind == number && n.float() == math.Trunc(n.float())
	default:
		panic("config: the schema asks for the type " + typ)
	}
}

// float returns a number's value.
func (n *node) float() float64 {
	switch v, _ := parseNumber(n.text); v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	default:
		return 0
	}
}

func (s *shape) checkWords(n *node, rule *schema) {
	if rule.Const != nil && (n.kind != number || n.float() != float64(*rule.Const)) {
		s.found.add(n.place, n.path, "is %s; this program reads %d", shown(n), *rule.Const)
	}
	if len(rule.Enum) == 0 || n.kind == text && slices.Contains(rule.Enum, n.text) {
		return
	}
	words := strings.Join(rule.Enum, ", ")
	if strings.HasSuffix(n.path, ".driver") {
		s.found.add(n.place, n.path, "unknown driver %s%s; there are %s", shown(n), didYouMean(n.text, rule.Enum), words)
		return
	}
	s.found.add(n.place, n.path, "cannot be %s%s; it is one of %s", shown(n), didYouMean(n.text, rule.Enum), words)
}

func (s *shape) checkFields(n *node, key place, rule *schema) {
	if most := rule.MaxProperties; most != nil && len(n.fields) > *most {
		s.found.add(n.place, n.path, "has %d entries; the most is %d", len(n.fields), *most)
	}
	for _, name := range rule.Required {
		if n.field(name) == nil {
			s.found.add(key, join(n.path, name), "is missing")
		}
	}
	for _, f := range n.fields {
		next := rule.Properties[f.name]
		if next == nil && rule.Others != nil {
			next = rule.Others.schema
			if next == nil {
				known := slices.Sorted(maps.Keys(rule.Properties))
				s.found.add(f.place, f.value.path, "there is no such key here%s", didYouMean(f.name, known))
			}
		}
		if next != nil {
			s.check(f.value, f.place, next)
		}
	}
}

func (s *shape) checkItems(n *node, rule *schema) {
	if least := rule.MinItems; least != nil && len(n.items) < *least {
		s.found.add(n.place, n.path, "needs at least %s", count(*least, "item"))
	}
	if most := rule.MaxItems; most != nil && len(n.items) > *most {
		s.found.add(n.place, n.path, "has %d items; the most is %d", len(n.items), *most)
	}
	if i, j := twins(n.items); rule.UniqueItems && j > 0 {
		s.found.add(n.place, n.path, "items %d and %d are the same", i+1, j+1)
	}
	if rule.Items == nil {
		return
	}
	for _, item := range n.items {
		s.check(item, item.place, rule.Items)
	}
}

// twins returns the indexes of the first two equal scalars, or 0, 0.
func twins(items []*node) (int, int) {
	seen := map[[2]string]int{}
	for j, item := range items {
		if item.kind == object || item.kind == list {
			continue // lists with unique items hold scalars; other items were reported
		}
		value := [2]string{kindName(item.kind), item.text}
		if i, ok := seen[value]; ok {
			return i, j
		}
		seen[value] = j
	}
	return 0, 0
}

func (s *shape) checkText(n *node, rule *schema) {
	length := utf8.RuneCountInString(n.text)
	if least := rule.MinLength; least != nil && length < *least {
		s.found.add(n.place, n.path, "is empty; give it a value or take the line out")
	}
	if most := rule.MaxLength; most != nil && length > *most {
		s.found.add(n.place, n.path, "has %d characters; the most is %d", length, *most)
	}
	if rule.Pattern.Regexp != nil && !rule.Pattern.MatchString(n.text) {
		s.found.add(n.place, n.path, "%s is not a name: %s", shown(n), nameRule)
	}
}

func (s *shape) checkNumber(n *node, rule *schema) {
	if rule.Minimum != nil {
		if least, _ := rule.Minimum.Float64(); n.float() < least {
			s.found.add(n.place, n.path, "is %s; the least is %s", shown(n), rule.Minimum)
		}
	}
	if rule.Maximum != nil {
		if most, _ := rule.Maximum.Float64(); n.float() > most {
			s.found.add(n.place, n.path, "is %s; the most is %s", shown(n), rule.Maximum)
		}
	}
}

const nameRule = "lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, 64 at most"

func typeText(n *node, want []string) string {
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
	if path == oldDispatchKey { // the mapping, not a limit of that name
		return false
	}
	return slices.Contains([]string{"session", "turn_timeout", "status_timeout", "hatch_timeout", "first", "max", "grace", "timeout"}, last)
}

var kindWords = map[string]string{
	"object": "a mapping (key: value)", "array": "a list", "string": "a text",
	"number": "a number", "integer": "a whole number", "boolean": "true or false",
}

func kindName(k kindOf) string {
	return map[kindOf]string{object: "a mapping", list: "a list", text: "a text", number: "a number", boolean: "true or false", null: "empty"}[k]
}

// shown formats a scalar for a message. Environments and addresses never get here: the schema checks only
// their type and length.
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
