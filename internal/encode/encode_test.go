package encode

import (
	"math"
	"testing"
)

func TestJSON(t *testing.T) {
	if got, want := string(JSON(map[string]any{"a": []string{"<b> & c"}, "n": 1})), `{"a":["<b> & c"],"n":1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a number that is not finite is encoded")
		}
	}()
	JSON(math.Inf(1))
}
