package file

import (
	"encoding/json"
	"strconv"
	"strings"
)

// YAMLToJSON converts a value to JSON on one line, with its keys in order. A fault is a place and what is
// wrong there.
func YAMLToJSON(n *YAMLNode) (text string, at Place, fault string) {
	var w strings.Builder
	at, fault = appendJSON(&w, n)
	return w.String(), at, fault
}

func appendJSON(w *strings.Builder, n *YAMLNode) (Place, string) {
	switch n.Kind {
	case YAMLObject:
		w.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				w.WriteByte(',')
			}
			w.Write(Quoted(f.Name))
			w.WriteByte(':')
			if at, fault := appendJSON(w, f.Value); fault != "" {
				return at, fault
			}
		}
		w.WriteByte('}')
	case YAMLList:
		w.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				w.WriteByte(',')
			}
			if at, fault := appendJSON(w, item); fault != "" {
				return at, fault
			}
		}
		w.WriteByte(']')
	case YAMLText:
		w.Write(Quoted(n.Text))
	case YAMLNumber:
		number, ok := jsonNumber(n.Text)
		if !ok {
			return n.Place, "is not a number that JSON knows; put it in quotes if it is text"
		}
		w.WriteString(number)
	case YAMLBool:
		w.WriteString(strings.ToLower(n.Text))
	default:
		w.WriteString("null")
	}
	return Place{}, ""
}

// jsonNumber keeps a number as written where that is valid JSON.
func jsonNumber(s string) (string, bool) {
	if json.Valid([]byte(s)) {
		return s, true
	}
	v, ok := ParseYAMLNumber(s)
	if i, whole := v.(int64); whole {
		return strconv.FormatInt(i, 10), true
	}
	if f, _ := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64), true
	}
	return "", false
}
