package shim

import (
	"os"
	"testing"
)

func FuzzStat(f *testing.F) {
	own, _ := os.ReadFile("/proc/self/stat")
	f.Add(own)
	f.Add([]byte("7 (a) b) (c) Z 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Add([]byte("7 () S"))
	f.Add([]byte(")("))
	f.Add([]byte("7 (a) S 1 (b) S 99 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Add([]byte("7 (a\nb) Z -1"))
	f.Add([]byte("7 (a) S -1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, ok := parseStat(raw); ok && (p.PID <= 0 || p.parent < 0) {
			t.Fatalf("%+v", p)
		}
	})
}

func TestStat(t *testing.T) {
	p, ok := parseStat([]byte("7 (a) b) (c) Z 1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	if !ok || p.PID != 7 || p.Command != "a) b) (c" || p.parent != 1 || p.group != 5 || p.Start != 99 || !p.zombie {
		t.Fatalf("%+v", p)
	}
	if self, ok := readProcess(os.Getpid()); !ok || self.parent != os.Getppid() || self.Start == 0 {
		t.Fatalf("%+v", self)
	}
}

// A name with a bracket in it moves nothing: a process chooses its own.
func TestForgedName(t *testing.T) {
	p, ok := parseStat([]byte("7 (x) S 1 1 (y) S 42 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	if !ok || p.parent != 42 || p.Start != 99 {
		t.Errorf("%+v, %v", p, ok)
	}
	if p, ok := parseStat([]byte("7 (x) S -1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0")); ok {
		t.Errorf("a parent below 0: %+v", p)
	}
}
