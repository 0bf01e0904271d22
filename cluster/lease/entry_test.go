package lease

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	if name, incarnation, ok := parseKey(key("b-1", 7)); name != "b-1" || incarnation != 7 || !ok {
		t.Error(name, incarnation, ok)
	}
	for _, text := range []string{"", "b", "b.", ".1", "b.01", "b.-1", "b.1.2", "B.1", "b.18446744073709551616"} {
		if _, _, ok := parseKey(text); ok {
			t.Errorf("%q is a key", text)
		}
	}
}

// A value that no Keeper writes is an entry without a renewal. It never closes a lease.
func FuzzParseEntry(f *testing.F) {
	good, err := json.Marshal(Entry{Host: "b", Incarnation: 1, Daemon: "b-1", N: 3, Closed: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"host":"c","incarnation":1,"closed":true}`))
	f.Add([]byte(`{"host":"b","incarnation":1}{}`))
	f.Add([]byte(strings.Repeat(" ", 600) + string(good)))
	f.Fuzz(func(t *testing.T, value []byte) {
		e := parseEntry("b", 1, value)
		if e.Host != "b" || e.Incarnation != 1 || len(e.Daemon) > daemonMax {
			t.Errorf("%+v", e)
		}
		if whole := json.Valid(value) && len(value) <= entryMax; !whole && e != (Entry{Host: "b", Incarnation: 1}) {
			t.Errorf("%q is taken: %+v", value, e)
		}
	})
}
