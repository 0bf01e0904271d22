package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Content is the text of a JSON file that another program wrote.
type Content struct {
	File string // a path or a name for messages
	Text []byte

	LastCounts bool // of values for one name, as in Python and JavaScript; otherwise a name that occurs twice is a fault
}

const behindMax = 40 // bytes before a fault that a message quotes

// foreign reads half of a surrogate pair, which Python can write, as U+FFFD. Other invalid UTF-8 is refused before.
var foreign = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(count), json.UnmarshalFromFunc(truth))))

// Decode reads one JSON object of at most most bytes into a struct with tags, a map or Fields. null is as good as a field that
// is missing, but not for a bool; an int is a whole number from 0 on; a name that occurs twice is a fault unless LastCounts,
// because readers disagree about its value. The error is a *JSONFault.
func (c Content) Decode(most int, to any) error {
	text := c.unmarked()
	whole := &JSONFault{File: c.File, Line: 1}
	switch invalid := FirstInvalid(text); {
	case len(text) > most:
		whole.Fault = fmt.Sprintf("larger than %d MiB; keep other data in a file of its own", most>>20)
		return whole
	case len(bytes.TrimSpace(text)) == 0:
		whole.Fault, whole.Unfinished = "the file is empty", true
		return whole
	case invalid < int64(len(text)):
		fault := c.at(invalid, "", "not valid UTF-8")
		fault.Unfinished = invalid >= int64(len(text))-utf8.UTFMax && !utf8.FullRune(text[invalid:])
		return fault
	}
	options := json.JoinOptions(foreign, jsontext.AllowDuplicateNames(c.LastCounts))
	if err := wellFormed(text, options); err != nil { // as a whole first: what breaks off is not judged by its beginning
		return c.explained(err)
	}
	if deep := TooDeep(text); deep >= 0 {
		return c.at(deep, "", fmt.Sprintf("nested deeper than %d; flatten it", DepthMax))
	}
	if bytes.TrimSpace(text)[0] != '{' {
		whole.Fault = ErrNoObject.Error()
		return whole
	}
	if err := json.Unmarshal(text, to, options); err != nil {
		return c.explained(err)
	}
	return nil
}

// wellFormed returns the first fault of a text that is to be one JSON value.
func wellFormed(text []byte, options json.Options) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(text), options)
	if err := d.SkipValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Wrong returns a fault of one value, or of one that is missing.
func (c Content) Wrong(where jsontext.Pointer, fault string) *JSONFault {
	path, at := c.find(where)
	return c.at(at, path, fault)
}

func (c Content) unmarked() []byte {
	rest := Unmarked(c.Text)
	if len(rest) == len(c.Text) {
		return c.Text
	}
	return append([]byte("   "), rest...) // offsets stay
}

func (c Content) at(offset int64, path, fault string) *JSONFault {
	offset = min(offset, int64(len(c.Text)))
	return &JSONFault{File: c.File, Path: path, Line: 1 + bytes.Count(c.Text[:offset], []byte("\n")), Offset: offset, Fault: fault}
}

// explained says in plain words what the library refused, and where.
func (c Content) explained(err error) *JSONFault {
	if syntax, is := errors.AsType[*jsontext.SyntacticError](err); is {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			path, _ := c.find(syntax.JSONPointer)
			return c.at(syntax.ByteOffset, path, "is given twice; leave one of them out")
		}
		unfinished := errors.Is(err, io.ErrUnexpectedEOF)
		what := syntax.Err.Error()
		if unfinished {
			what = "unexpected end of JSON input"
		}
		fault := c.at(syntax.ByteOffset, "", "no JSON: "+what+c.behind(syntax.ByteOffset))
		fault.Unfinished = unfinished
		return fault
	}
	value, is := errors.AsType[*json.SemanticError](err)
	if !is {
		return c.at(0, "", err.Error())
	}
	return c.Wrong(value.JSONPointer, kindFault(value))
}

// behind quotes the text before an offset; at the beginning there is none.
func (c Content) behind(at int64) string {
	if at <= 0 {
		return ""
	}
	at = min(at, int64(len(c.Text)))
	from := max(0, at-behindMax)
	for from < at && !utf8.RuneStart(c.Text[from]) {
		from++
	}
	return fmt.Sprintf(", behind %q", Unmarked(c.Text[from:at]))
}

// kindFault says that a value is of another kind than its field.
func kindFault(err *json.SemanticError) string {
	if bad, is := errors.AsType[badValue](err); is {
		return string(bad)
	}
	if err.GoType != nil {
		switch err.GoType.Kind() { //nolint:exhaustive // the kinds that a file's fields have
		case reflect.String:
			return "is no string"
		case reflect.Slice:
			return "is no list"
		case reflect.Struct, reflect.Map:
			return ErrNoObject.Error()
		}
	}
	return err.Error()
}

// badValue says what is wrong with one value.
type badValue string

func (b badValue) Error() string { return string(b) }

// BadValue is an error for UnmarshalJSONFrom that Decode passes on with the value's place.
func BadValue(format string, args ...any) error { return badValue(fmt.Sprintf(format, args...)) }

// count reads an int.
func count(d *jsontext.Decoder, to *int) error {
	value, err := d.ReadValue()
	if err != nil || value.Kind() == 'n' {
		*to = 0
		return err
	}
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 {
		return BadValue("is no whole number from 0 on")
	}
	*to = n
	return nil
}

// truth reads a bool.
func truth(d *jsontext.Decoder, to *bool) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	*to = value.Kind() == 't'
	if !*to && value.Kind() != 'f' {
		return BadValue("is neither true nor false; write it without quotes")
	}
	return nil
}

// EachMember reads an object in order: member reads the value of each name. Its BadValue is about this value.
func EachMember(d *jsontext.Decoder, member func(name string) error) error {
	if d.PeekKind() != '{' {
		return BadValue("%v", ErrNoObject)
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err == nil {
			err = member(name.String())
		}
		if bad, is := err.(badValue); is { //nolint:errorlint // one that is wrapped has its place already
			err = &json.SemanticError{JSONPointer: d.StackPointer(), ByteOffset: d.InputOffset(), Err: bad}
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return err
}

// find returns a value's path, as steps.coding.logs[0], and its offset; of a missing one that of the object.
func (c Content) find(where jsontext.Pointer) (path string, offset int64) {
	text, missing := c.unmarked(), false
	for token := range where.Tokens() {
		d := jsontext.NewDecoder(bytes.NewBuffer(text[offset:]), foreign, jsontext.AllowDuplicateNames(true))
		list := d.PeekKind() == '['
		if list {
			path += "[" + token + "]"
		} else {
			path += "." + token
		}
		before := before(d, token, list)
		if missing = missing || before < 0; missing {
			continue
		}
		rest := text[offset+before:]
		offset += before + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n:,")))
	}
	return strings.TrimPrefix(path, "."), offset
}

// before is the offset before the value of a name, the last of them, or before an element of a list; -1: there is none.
func before(d *jsontext.Decoder, token string, list bool) int64 {
	at := int64(-1)
	_, err := d.ReadToken()
	for i := 0; err == nil && d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		name := strconv.Itoa(i)
		if !list {
			var read jsontext.Token
			read, err = d.ReadToken()
			name = read.String()
		}
		if err == nil && name == token {
			at = d.InputOffset()
		}
		err = errors.Join(err, d.SkipValue())
	}
	return at
}

// Encode writes a struct with tags like Python's json.dump with indent=2: an empty list or object on one line, otherwise one
// line for each element. What a field of another program holds is written as it was, with this indent.
func Encode(v any) ([]byte, error) { return Pack(v, jsontext.WithIndent("  ")) }
