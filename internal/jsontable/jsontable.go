// Package jsontable appends values as JSON, exactly as encoding/json writes them.
//
// A third of the processor time of a durable command was encoding/json: it finds its way through a value by
// reflection, and copies each value that has a method to the heap. Here each type is examined once. The result is a function
// for each field, with the field's offset, so that numbers, strings, times, pointers, slices and structs need no
// reflection.
// Everything else (maps, interfaces, floats, types with a MarshalJSON, strings that need an escape) is given to encoding/json.
//
// The one promise: the bytes are those of json.Marshal, and what it cannot encode is an error here.
package jsontable

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe" // values are read at offsets that reflect gave; nothing is written
)

// appender appends the value at p.
type appender func(dst []byte, p unsafe.Pointer) ([]byte, error)

// Of returns a function that appends a value of type T to dst, as json.Marshal of a pointer to it would encode it.
func Of[T any]() func(dst []byte, v *T) ([]byte, error) {
	encode := table{}.of(reflect.TypeFor[T]())
	return func(dst []byte, v *T) ([]byte, error) { return encode(dst, unsafe.Pointer(v)) }
}

// table has the types that were looked at; a type may contain itself behind a pointer.
type table map[reflect.Type]*appender

func (t table) of(typ reflect.Type) appender {
	if known := t[typ]; known != nil && *known != nil {
		return *known
	} else if known != nil { // it contains itself
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return (*known)(dst, p) }
	}
	made := new(appender)
	t[typ] = made
	*made = t.make(typ)
	return *made
}

func (t table) make(typ reflect.Type) appender {
	behind := reflect.PointerTo(typ)
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return appendTime
	case behind.Implements(reflect.TypeFor[json.Marshaler]()):
		return marshal(typ)
	case behind.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return appendText(typ)
	}
	switch typ.Kind() {
	case reflect.Bool:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return strconv.AppendBool(dst, *(*bool)(p)), nil }
	case reflect.Int:
		return signed[int]
	case reflect.Int64:
		return signed[int64]
	case reflect.Uint64:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return strconv.AppendUint(dst, *(*uint64)(p), 10), nil
		}
	case reflect.String:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return appendString(dst, *(*string)(p)) }
	case reflect.Pointer:
		to := t.of(typ.Elem())
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			if p = *(*unsafe.Pointer)(p); p == nil {
				return append(dst, "null"...), nil
			}
			return to(dst, p)
		}
	case reflect.Slice:
		return t.slice(typ)
	case reflect.Array:
		one, size, n := t.of(typ.Elem()), typ.Elem().Size(), typ.Len()
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return list(dst, p, n, size, one) }
	case reflect.Struct:
		return t.fields(typ)
	default:
		return marshal(typ)
	}
}

// marshal leaves a type to encoding/json.
func marshal(typ reflect.Type) appender {
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		text, err := json.Marshal(reflect.NewAt(typ, p).Interface())
		return append(dst, text...), err
	}
}

func signed[N int | int64](dst []byte, p unsafe.Pointer) ([]byte, error) {
	return strconv.AppendInt(dst, int64(*(*N)(p)), 10), nil
}

func appendTime(dst []byte, p unsafe.Pointer) ([]byte, error) {
	at := (*time.Time)(p)
	text, err := at.AppendText(append(dst, '"'))
	if err != nil {
		_, err = json.Marshal(at)
		return dst, err
	}
	return append(text, '"'), nil
}

func appendText(typ reflect.Type) appender {
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		text, err := reflect.NewAt(typ, p).Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return marshal(typ)(dst, p)
		}
		return appendString(dst, string(text))
	}
}

func appendString(dst []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b >= 0x80 || b == '"' || b == '\\' || b == '<' || b == '>' || b == '&' {
			text, err := json.Marshal(s)
			return append(dst, text...), err
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"'), nil
}

func (t table) slice(typ reflect.Type) appender {
	if typ.Elem().Kind() == reflect.Uint8 {
		return marshal(typ)
	}
	one, size := t.of(typ.Elem()), typ.Elem().Size()
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		of := *(*[]struct{})(p) // its length and its first element, whatever the elements are
		if of == nil {
			return append(dst, "null"...), nil
		}
		return list(dst, unsafe.Pointer(unsafe.SliceData(of)), len(of), size, one)
	}
}

func list(dst []byte, first unsafe.Pointer, n int, size uintptr, one appender) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = one(dst, unsafe.Add(first, uintptr(i)*size)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// field is a field of a struct.
type field struct {
	name   string // quoted, with its colon
	offset uintptr
	encode appender
	absent []func(p unsafe.Pointer) bool // one of them is true: the field is left out
}

// fields encodes a struct. One with a field for which encoding/json has more rules is left to it.
func (t table) fields(typ reflect.Type) appender {
	var all []field
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous || strings.Contains(options, "string"):
			return marshal(typ)
		case !f.IsExported() || name == "-" && options == "":
			continue
		case name == "":
			name = f.Name
		}
		made := field{name: strconv.Quote(name) + ":", offset: f.Offset, encode: t.of(f.Type)}
		if strings.Contains(options, "omitempty") {
			made.absent = append(made.absent, empty(f.Type))
		}
		if strings.Contains(options, "omitzero") {
			made.absent = append(made.absent, zero(f.Type))
		}
		all = append(all, made)
	}
	return func(dst []byte, p unsafe.Pointer) (_ []byte, err error) {
		before := byte('{')
	next:
		for i := range all {
			f := &all[i]
			at := unsafe.Add(p, f.offset)
			for _, absent := range f.absent {
				if absent(at) {
					continue next
				}
			}
			dst = append(append(dst, before), f.name...)
			if dst, err = f.encode(dst, at); err != nil {
				return dst, err
			}
			before = ','
		}
		if before == '{' {
			dst = append(dst, '{')
		}
		return append(dst, '}'), nil
	}
}

// empty says whether omitempty leaves a value out.
func empty(typ reflect.Type) func(p unsafe.Pointer) bool {
	switch typ.Kind() {
	case reflect.Pointer:
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	case reflect.Int64, reflect.Uint64:
		return func(p unsafe.Pointer) bool { return *(*uint64)(p) == 0 }
	case reflect.String:
		return func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return len(*(*[]struct{})(p)) == 0 }
	case reflect.Map:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(typ, p).Elem().Len() == 0 }
	case reflect.Struct:
		return func(unsafe.Pointer) bool { return false }
	case reflect.Array:
		return func(unsafe.Pointer) bool { return typ.Len() == 0 }
	default:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(typ, p).Elem().IsZero() }
	}
}

// zero says whether omitzero leaves a value out.
func zero(typ reflect.Type) func(p unsafe.Pointer) bool {
	type zeroer interface{ IsZero() bool }
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return func(p unsafe.Pointer) bool { return (*time.Time)(p).IsZero() }
	case typ.Kind() != reflect.Pointer && reflect.PointerTo(typ).Implements(reflect.TypeFor[zeroer]()):
		return func(p unsafe.Pointer) bool { return reflect.NewAt(typ, p).Interface().(zeroer).IsZero() }
	default:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(typ, p).Elem().IsZero() }
	}
}
