package sandbox

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Intercept()
	os.Exit(m.Run())
}

// TestProbe has the whole of it done once for real.
func TestProbe(t *testing.T) {
	if _, why := Supported(); why != "" {
		t.Skip("skipped: ", why)
	}
	if err := Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
}
