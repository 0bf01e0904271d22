package jsontable

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

type inner struct {
	Deep  *inner `json:"deep,omitempty"`
	Words []word `json:"words"`
}

type word string

func (w word) MarshalText() ([]byte, error) { return []byte("<" + w + ">"), nil }

type odd struct{ N int }

func (o *odd) IsZero() bool                { return o.N%2 == 1 }
func (o odd) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{ "odd": "<%d>" }`, o.N), nil }

type sample struct {
	No       string `json:"-"`
	hidden   int
	Plain    string
	Text     string          `json:"text,omitempty"`
	At       time.Time       `json:"at,omitzero"`
	Ends     *time.Time      `json:"ends"`
	N        int             `json:"n,omitempty"`
	U        uint64          `json:"u"`
	Small    int8            `json:"small"`
	Cost     float64         `json:"cost,omitempty"`
	Yes      bool            `json:"yes,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Bytes    []byte          `json:"bytes"`
	Map      map[string]int  `json:"map,omitempty"`
	Any      any             `json:"any"`
	Inner    inner           `json:"inner,omitzero"`
	Pair     [2]odd          `json:"pair,omitempty"`
	Odd      odd             `json:"odd,omitzero"`
	Word     word            `json:"word,omitempty"`
	Embedded struct{ inner }
	Quoted   struct {
		N int `json:",string"`
	}
}

// Every kind of field, with values that need care.
func TestAsJSON(t *testing.T) {
	t.Parallel()
	encode := Of[sample]()
	at := time.Date(2026, 11, 26, 7, 5, 0, 120, time.FixedZone("", 5400))
	for _, s := range []sample{
		{},
		{No: "no", hidden: 1, Plain: "plain", Text: "a<b>&\"c\\\n\x7f\u2028ü\xff", At: at, Ends: &at, N: -1, U: 1 << 63, Small: -8, Cost: 1e-9, Yes: true},
		{Raw: json.RawMessage(`{ "a" : "<" }`), Bytes: []byte("x"), Map: map[string]int{"b": 1, "a": 2}, Any: []any{1, "<"}},
		{Inner: inner{Deep: &inner{Deep: &inner{}, Words: []word{}}, Words: []word{"a", "b"}}, Pair: [2]odd{{1}, {2}}, Odd: odd{2}, Word: "w"},
		{Odd: odd{3}, Map: map[string]int{}},
		{At: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Any: func() {}},
		{Raw: json.RawMessage(`{`)},
	} {
		want, wantErr := json.Marshal(&s)
		got, err := encode([]byte("before "), &s)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != "before "+string(want) {
			t.Errorf("%+v:\n%s %v\n%s %v", s, got, err, want, wantErr)
		}
	}
}
