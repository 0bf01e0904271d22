package loop

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/team"
)

// The hash chain is over the encoded changes, so every kind of change is encoded as encoding/json does it.
func TestEncodedAsBefore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 18))
		var body team.Body
		kind := reflect.ValueOf(&body).Elem().Field(int(seed) % reflect.TypeFor[team.Body]().NumField())
		kind.Set(reflect.New(kind.Type().Elem()))
		fill(t, rnd, kind.Elem(), 0)
		want, err := json.Marshal(&body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendBody()(nil, &body)
		if err != nil || string(got) != string(want) {
			t.Fatalf("seed %d:\n%s, %v\n%s", seed, got, err, want)
		}
	}
}

var oddTexts = []string{"", "", "a", "control/coder", "two words", "<&>", "a\"b\\c\n", "ü 重试", "\u2028", "\xff", "\x00\x1f\x7f"}

// fill sets a value at random; every field has its zero value about half of the time.
func fill(t *testing.T, rnd *rand.Rand, v reflect.Value, depth int) {
	switch is := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*is = []json.RawMessage{nil, json.RawMessage(`{ "a" : "<" }`)}[rnd.IntN(2)]
		return
	case *time.Time:
		*is = []time.Time{{}, time.Unix(rnd.Int64N(4e9), rnd.Int64N(1e9)).UTC(), time.Unix(rnd.Int64N(4e9), 0).In(time.FixedZone("", 60*rnd.IntN(800)))}[rnd.IntN(3)]
		return
	}
	if rnd.IntN(2) == 0 && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rnd.Int64() >> rnd.IntN(64) * (1 - 2*rnd.Int64N(2)))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(rnd.Uint64() >> rnd.IntN(64))
	case reflect.Float64:
		v.SetFloat([]float64{1e-9, 0.25, 3, 1e22, -0.1}[rnd.IntN(5)])
	case reflect.String:
		v.SetString(oddTexts[rnd.IntN(len(oddTexts))])
	case reflect.Pointer:
		if depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, rnd, v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rnd.IntN(3), 3))
		for i := range v.Len() {
			fill(t, rnd, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, rnd, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rnd.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, rnd, key, depth+1)
			fill(t, rnd, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, rnd, v.Field(i), depth+1)
			}
		}
	default:
		t.Fatalf("a change has a %s, which this test cannot make up", v.Type())
	}
}
