package api

import (
	"os"
	"testing"
)

// FuzzStat: a process chooses its own name, and may so forge what stands behind it.
func FuzzStat(f *testing.F) {
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(self)
	f.Add([]byte("7 (a) S 1 (b) S 99 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Add([]byte("7 (a\nb) Z -1"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, text []byte) {
		is, parent, err := parseStat(7, text)
		if err == nil && (is.pid != 7 || parent < 0) {
			t.Fatalf("%q: %+v, parent %d", text, is, parent)
		}
	})
}

// A name with a bracket in it moves nothing.
func TestForgedName(t *testing.T) {
	is, parent, err := parseStat(7, []byte("7 (x) S 1 1 (y) S 42 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	if err != nil || parent != 42 || is.began != 99 {
		t.Errorf("%+v, parent %d, %v", is, parent, err)
	}
}
