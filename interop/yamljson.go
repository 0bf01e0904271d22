package interop

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// yamlJSON writes a value of a file as JSON in one line, with its keys in their order. A fault is
// a place and what is wrong there.
func yamlJSON(n *yamlNode) (text string, at place, fault string) {
	var w strings.Builder
	at, fault = appendJSON(&w, n)
	return w.String(), at, fault
}

func appendJSON(w *strings.Builder, n *yamlNode) (place, string) {
	switch n.kind {
	case yamlObject:
		w.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(jsonText(f.name))
			w.WriteByte(':')
			if at, fault := appendJSON(w, f.value); fault != "" {
				return at, fault
			}
		}
		w.WriteByte('}')
	case yamlList:
		w.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				w.WriteByte(',')
			}
			if at, fault := appendJSON(w, item); fault != "" {
				return at, fault
			}
		}
		w.WriteByte(']')
	case yamlText:
		w.WriteString(jsonText(n.text))
	case yamlNumber:
		number, ok := jsonNumber(n.text)
		if !ok {
			return n.place, "is not a number that JSON knows; put it in quotes if it is text"
		}
		w.WriteString(number)
	case yamlBool:
		w.WriteString(strings.ToLower(n.text))
	default:
		w.WriteString("null")
	}
	return place{}, ""
}

// jsonText writes a text as JSON, without HTML escaping (X6).
func jsonText(s string) string {
	var w strings.Builder
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("interop: a text does not encode: " + err.Error())
	}
	return strings.TrimSuffix(w.String(), "\n")
}

// jsonNumber keeps a number as it was written, where JSON writes it so.
func jsonNumber(s string) (string, bool) {
	if json.Valid([]byte(s)) {
		return s, true
	}
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return strconv.FormatInt(i, 10), true
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	return strconv.FormatFloat(f, 'g', -1, 64), true
}
