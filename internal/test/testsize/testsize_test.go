package testsize

import (
	"flag"
	"testing"
)

func TestPick(t *testing.T) {
	for value, want := range map[string]string{"": "short", "ci": "ci", "1": "long", "yes": "long"} {
		t.Setenv("FAIRLEAD_LONG", value)
		if got := Pick("short", "ci", "long"); got != want {
			t.Errorf("FAIRLEAD_LONG=%q gives %s, want %s", value, got, want)
		}
	}
}

func TestParallel(t *testing.T) {
	was := flag.Lookup("test.parallel").Value.String()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	defer func() { _ = flag.Set("test.parallel", was) }()
	Parallel(7)
	if now := flag.Lookup("test.parallel").Value.String(); !given && now != "7" || given && now != was {
		t.Errorf("-parallel was %s (given: %v) and is %s after Parallel(7)", was, given, now)
	}
}
