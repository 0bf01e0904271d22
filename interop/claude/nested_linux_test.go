package claude

import (
	"fmt"
	"testing"
)

func TestWhoseParentAProcessIs(t *testing.T) {
	for stat, want := range map[string]string{
		"12 (sh) S 7 12 12": "sh 7 true", "12 (a (b) c) R 9 1": "a (b) c 9 true", "": " 0 false", "12 (sh": " 0 false", "12 (sh) S": " 0 false", "12 (sh) S x": "sh 0 false",
	} {
		name, parent, ok := parentOf([]byte(stat))
		if got := fmt.Sprint(name, " ", parent, " ", ok); got != want {
			t.Errorf("%q: %s", stat, got)
		}
	}
}
