package file

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestSameContent(t *testing.T) {
	long := strings.Repeat("x", 32<<10)
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"a", "", false},
		{"", "a", false},
		{"a", "b", false},
		{long, long, true},
		{long, long + "y", false},
		{long + "y", long + "z", false},
		{long + long, long + long, true},
	} {
		if same, err := SameContent(iotest.OneByteReader(strings.NewReader(c.a)), strings.NewReader(c.b)); same != c.want || err != nil {
			t.Errorf("%d and %d bytes: %v, %v", len(c.a), len(c.b), same, err)
		}
	}
	wrong := errors.New("it cannot be read")
	if _, err := SameContent(strings.NewReader("a"), io.MultiReader(strings.NewReader("a"), iotest.ErrReader(wrong))); !errors.Is(err,
		wrong) {
		t.Error(err)
	}
}
