package config

import (
	"cmp"
	"encoding"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// rule is what the type of a field and its tags say about a value of the file:
//
//	yaml                   the key
//	required, nullable     the key must be there; it may have no value
//	default                the value if the key is absent
//	enum, pattern, format  of a text; formatted has the formats. A bool with an enum is true for the first word
//	minLength, maxLength   of a text, in characters. In a list, these and those above are about its items
//	minItems, maxItems     of a list, or of a mapping by name
//	uniqueItems            no two items of a list are equal
//	minimum, maximum       of a number, or of a duration
//	unit                   the number is a duration in this unit
//	scalars                numbers and booleans are taken for the text that was written
//	word                   a text in place of the mapping is the value of this field
//	alone                  a text in place of the list is its only item
//	drivers, loop          a key of an agent has an effect only with these
//
// A slice of structs is a mapping by name; the first field of the struct is the name.
type rule struct {
	typ   reflect.Type
	tag   reflect.StructTag
	key   string
	index int // of the field in its struct

	kinds       []file.YAMLKind // the allowed ones, the usual one first
	standard    *file.YAMLNode  // the default; nil: none
	least, most bound           // of a number or a duration
	few, many   int             // characters, items or entries
	words       []string
	pattern     *regexp.Regexp
	item        *rule   // of a list, or of a mapping by name
	fields      []*rule // of a mapping
	name, word  *rule   // the field for the name, and that with the tag word
}

// The limits of values without tags for them.
const (
	durationMin = "1ms"
	durationMax = "8760h" // a year; longer ones are a mistake in the unit
	lengthMax   = "4096"  // the longest path of Linux
	itemsMax    = "1024"
)

// configRule is made at first use, because some commands read no configuration and must start fast.
var configRule = sync.OnceValue(func() *rule { return ruleOf(reflect.TypeFor[Config](), "") })

func ruleOf(t reflect.Type, tag reflect.StructTag) *rule {
	r := &rule{typ: t, tag: tag}
	switch {
	case t.Kind() == reflect.Slice:
		r.item = ruleOf(t.Elem(), tag)
		if r.kinds = []file.YAMLKind{file.YAMLList}; r.item.name != nil {
			r.kinds[0] = file.YAMLObject
		}
		r.few, r.many = r.number("minItems", "0"), r.number("maxItems", itemsMax)
	case r.isText():
		r.kinds = []file.YAMLKind{file.YAMLText}
		if tag.Get("scalars") != "" {
			r.kinds = append(r.kinds, file.YAMLNumber, file.YAMLBool)
		}
		r.few, r.many = r.number("minLength", "1"), r.number("maxLength", lengthMax)
		r.words = strings.FieldsFunc(tag.Get("enum"), func(c rune) bool { return c == ',' })
		if pattern := tag.Get("pattern"); pattern != "" {
			r.pattern = regexp.MustCompile(pattern)
		}
	case t.Kind() == reflect.Struct:
		r.addFields()
	case t.Kind() == reflect.Bool:
		r.kinds = []file.YAMLKind{file.YAMLBool}
	default:
		r.kinds = []file.YAMLKind{file.YAMLNumber}
	}
	low, high := "-Inf", "Inf"
	if r.isDuration() {
		low, high = durationMin, durationMax
	}
	r.least, r.most = boundOf(cmp.Or(tag.Get("minimum"), low)), boundOf(cmp.Or(tag.Get("maximum"), high))
	return r
}

// addFields adds the rules of a struct's fields: of those with a key or the tag word, and of a name.
func (r *rule) addFields() {
	for i := range r.typ.NumField() {
		f := r.typ.Field(i)
		key, word := f.Tag.Get("yaml"), f.Tag.Get("word") != ""
		if key == "" && !word && i > 0 {
			continue
		}
		field := ruleOf(f.Type, f.Tag)
		field.key, field.index = key, i
		if text, is := f.Tag.Lookup("default"); is {
			field.standard = &file.YAMLNode{Kind: field.kinds[len(field.kinds)-1], Text: text}
		}
		if key != "" {
			r.fields = append(r.fields, field)
		}
		if word {
			r.word = field
		}
		if key == "" && !word {
			r.name = field
		}
	}
	if len(r.fields) > 0 {
		r.kinds = append(r.kinds, file.YAMLObject)
	}
	if r.word != nil {
		r.kinds = append(r.kinds, r.word.kinds...)
	}
}

// field returns the rule of a key, or nil.
func (r *rule) field(key string) *rule {
	for _, f := range r.fields {
		if f.key == key {
			return f
		}
	}
	return nil
}

// Keys returns the keys of the mapping at a path, in the order of doc/config.md.
func Keys(path ...string) (keys []string) {
	r := configRule()
	for _, key := range path {
		if r.item == nil {
			r = cmp.Or(r.field(key), &rule{})
		} else {
			r = r.item
		}
	}
	for _, f := range r.fields {
		keys = append(keys, f.key)
	}
	return keys
}

func (r *rule) number(tag, otherwise string) int {
	n, err := strconv.Atoi(cmp.Or(r.tag.Get(tag), otherwise))
	if err != nil {
		panic("config: the tag " + tag + " is not a number: " + err.Error())
	}
	return n
}

func (r *rule) isText() bool {
	return r.typ.Kind() == reflect.String || r.isDuration() || r.tag.Get("scalars") != "" ||
		r.typ.Kind() == reflect.Bool && r.tag.Get("enum") != "" ||
		reflect.PointerTo(r.typ).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func (r *rule) isDuration() bool {
	return r.typ == reflect.TypeFor[time.Duration]() && r.tag.Get("unit") == ""
}

// bound is the least or the greatest number, or duration in nanoseconds.
type bound struct {
	text  string
	value float64
}

func boundOf(text string) bound {
	if d, err := time.ParseDuration(text); err == nil {
		return bound{text, float64(d)}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("config: a tag is neither a number nor a duration: " + err.Error())
	}
	return bound{text, n}
}
