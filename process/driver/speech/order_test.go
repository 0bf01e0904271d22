package speech_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

func TestReadOrders(t *testing.T) {
	in := `{"type":"prompt","text":"a","of":"a newer engine"}` + "\n\nplain words\n" + `{"type":"explode"}` + "\n{half\n" +
		strings.Repeat("x", speech.OrderBytesMax+1) + "\n" + `{"type":"cancel"}`
	orders := make(chan speech.Order, 10)
	var complaints []string
	speech.ReadOrders(strings.NewReader(in), orders, func(err error) { complaints = append(complaints, err.Error()) })
	var got []speech.Order
	for o := range orders {
		got = append(got, o)
	}
	want := []speech.Order{
		{Type: speech.OrderPrompt, Text: "a", End: int64(strings.Index(in, "\n") + 1)},
		{Type: speech.OrderPrompt, Text: "plain words", End: int64(strings.Index(in, "words\n") + 6)},
		{Type: speech.OrderCancel, End: int64(len(in))},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("orders: %.300v", got)
	}
	if len(complaints) != 3 {
		t.Errorf("complaints: %q", complaints)
	}
}

func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"type":"answer","id":"ask-1","option":"allow"}`))
	f.Add([]byte(`{"type":"steer","id":"7","text":"use v2"}`))
	f.Add([]byte("plain \xff words"))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := speech.ParseOrder(line)
		if err != nil {
			return
		}
		if again, err := speech.ParseOrder(bytes.TrimSpace(o.Encode())); err != nil || !bytes.Equal(again.Encode(), o.Encode()) {
			t.Fatalf("%+v was decoded as %+v, %v", o, again, err)
		}
	})
}
