package config

import (
	"encoding"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// checker makes a Config from the tree and reports all that is wrong with the values.
type checker struct {
	*findings
	root      *file.YAMLNode
	dir       string // absolute, links resolved
	lookupEnv func(string) (string, bool)
	kept      []SourceFile // they need not exist
	names     []string     // of the agents of the file
}

// read gives a field its value, or its default if there is no value, and reports what the rule does not allow. A value of the
// wrong kind is one fault; its content is not read. The messages quote no value that may be a secret. key is the place of the
// value's key, or of the value itself.
func (c *checker) read(n *file.YAMLNode, key file.Place, r *rule, to reflect.Value) {
	switch {
	case n == nil, n.Kind == file.YAMLNull && r.key != "" && r.tag.Get("nullable") != "":
		if r.standard != nil {
			c.read(r.standard, key, r, to)
			return
		}
		for _, f := range r.fields {
			c.read(nil, key, f, to.Field(f.index))
		}
	case n.Kind == file.YAMLBroken: // already reported
	case r.item != nil && r.tag.Get("alone") != "" && n.Kind == file.YAMLText:
		c.readItems(&file.YAMLNode{Place: n.Place, Kind: file.YAMLList, Path: n.Path, Items: []*file.YAMLNode{n}}, r, to)
	case r.word != nil && n.Kind != file.YAMLObject && n.Kind != file.YAMLList && n.Kind != file.YAMLNull:
		c.read(n, key, r.word, to.Field(r.word.index))
	case len(r.words) > 0:
		c.readWord(n, r, to)
	case n.Kind == file.YAMLNull:
		c.add(key, n.Path, "is empty; give it %s or remove the line", r.wanted())
	case !slices.Contains(r.kinds, n.Kind):
		c.fault(n, "%s", r.unlike(n))
	case n.Kind == file.YAMLObject && r.item != nil:
		c.readEntries(n, r, to)
	case n.Kind == file.YAMLObject:
		c.readFields(n, key, r, to)
	case n.Kind == file.YAMLList:
		c.readItems(n, r, to)
	case r.kinds[0] == file.YAMLText:
		c.readText(n, r, to)
	case n.Kind == file.YAMLBool:
		to.SetBool(strings.EqualFold(n.Text, "true"))
	default:
		c.readNumber(n, r, to)
	}
}

var kindWords = map[file.YAMLKind]string{
	file.YAMLObject: "a mapping (key: value)", file.YAMLList: "a list", file.YAMLText: "a text", file.YAMLNumber: "a number",
	file.YAMLBool: "true or false",
}

// unlike says that a value is of another kind than its field.
func (r *rule) unlike(n *file.YAMLNode) string {
	is, scalar := "is "+file.YAMLKindWords[n.Kind], n.Kind == file.YAMLNumber || n.Kind == file.YAMLBool
	switch {
	case n.Kind == file.YAMLNumber && r.isDuration():
		return "is a bare number; write the unit with it, such as 90s, 10m or 2h"
	case scalar && r.kinds[0] == file.YAMLText:
		return is + " and should be a text; put it in quotes"
	}
	return is + " and should be " + r.wanted()
}

func (r *rule) wanted() string {
	if r.kinds[0] == file.YAMLNumber && r.typ.Kind() != reflect.Float64 {
		return "a whole number"
	}
	return kindWords[r.kinds[0]]
}

func (c *checker) readWord(n *file.YAMLNode, r *rule, to reflect.Value) {
	i := slices.Index(r.words, n.Text)
	switch {
	case n.Kind != file.YAMLText || i < 0:
		c.fault(n, "cannot be %s%s; it is one of %s", shown(n), didYouMean(n.Text, r.words), strings.Join(r.words, ", "))
	case to.Kind() == reflect.Bool:
		to.SetBool(i == 0)
	default:
		to.SetString(n.Text)
	}
}

func (c *checker) readFields(n *file.YAMLNode, key file.Place, r *rule, to reflect.Value) {
	known := make([]string, len(r.fields))
	for i, f := range r.fields {
		known[i] = f.key
		field := n.Field(f.key)
		if field == nil {
			field = &file.YAMLField{Place: key}
			if f.tag.Get("required") != "" {
				c.add(key, join(n.Path, f.key), "is missing")
			}
		}
		c.read(field.Value, field.Place, f, to.Field(f.index))
	}
	for _, f := range n.Fields {
		if !slices.Contains(known, f.Name) {
			c.add(f.Place, f.Value.Path, "there is no such key here%s", didYouMean(f.Name, known))
		}
	}
}

// readEntries reads a mapping by name. Entries of the wrong kind are left out.
func (c *checker) readEntries(n *file.YAMLNode, r *rule, to reflect.Value) {
	c.count(n, len(n.Fields), "entries", r)
	for _, f := range n.Fields {
		entry := reflect.New(r.item.typ).Elem()
		c.read(&file.YAMLNode{Place: f.Place, Kind: file.YAMLText, Path: f.Value.Path, Text: f.Name}, f.Place, r.item.name, entry.Field(0))
		c.read(f.Value, f.Place, r.item, entry)
		if slices.Contains(r.item.kinds, f.Value.Kind) {
			to.Set(reflect.Append(to, entry))
		}
	}
}

func (c *checker) readItems(n *file.YAMLNode, r *rule, to reflect.Value) {
	c.count(n, len(n.Items), "items", r)
	to.Set(reflect.MakeSlice(r.typ, len(n.Items), len(n.Items)))
	first := map[any]int{}
	for i, item := range n.Items {
		c.read(item, item.Place, r.item, to.Index(i))
		value := to.Index(i).Interface()
		if j, twice := first[value]; twice && !to.Index(i).IsZero() && r.tag.Get("uniqueItems") != "" {
			c.fault(n, "items %d and %d are the same", j+1, i+1)
		}
		first[value] = i
	}
}

func (c *checker) readText(n *file.YAMLNode, r *rule, to reflect.Value) {
	if !c.count(n, utf8.RuneCountInString(n.Text), "characters", r) {
		return
	}
	if r.pattern != nil && !r.pattern.MatchString(n.Text) {
		c.fault(n, "%s does not match %s", shown(n), r.pattern)
		return
	}
	text := c.formatted(n, r.tag.Get("format"))
	var err error
	switch into := to.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		err = into.UnmarshalText([]byte(text))
	case *time.Duration:
		if *into, err = time.ParseDuration(text); err != nil {
			err = errors.New("is not a duration; write it like 90s, 10m or 2h")
			break
		}
		c.between(n, float64(*into), r)
	case *int64:
		*into, err = bytesOf(text)
	default:
		to.SetString(text)
	}
	if err != nil {
		c.fault(n, "%s %s", shown(n), err)
	}
}

func (c *checker) readNumber(n *file.YAMLNode, r *rule, to reflect.Value) {
	v := n.Float(0)
	switch {
	case !c.between(n, v, r):
	case to.CanFloat():
		to.SetFloat(v)
	case v != math.Trunc(v):
		c.fault(n, "%s", r.unlike(n))
	default:
		unit, _ := time.ParseDuration(r.tag.Get("unit"))
		to.SetInt(int64(v) * max(1, int64(unit)))
	}
}

// between reports a number or a duration that is out of bounds.
func (c *checker) between(n *file.YAMLNode, v float64, r *rule) bool {
	switch {
	case v < r.least.value:
		c.fault(n, "is %s; the least is %s", shown(n), r.least.text)
	case v > r.most.value:
		c.fault(n, "is %s; the most is %s", shown(n), r.most.text)
	default:
		return true
	}
	return false
}

// count reports that there are too few or too many of something.
func (c *checker) count(n *file.YAMLNode, has int, of string, r *rule) bool {
	switch {
	case has < r.few:
		c.fault(n, "is empty; give it a value or remove the line")
	case has > r.many:
		c.fault(n, "has %d %s; the most is %d", has, of, r.many)
	default:
		return true
	}
	return false
}
