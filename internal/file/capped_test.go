package file

import (
	"io"
	"strings"
	"testing"
)

// The limit holds however the content arrives: in pieces, and by io.Copy as from a program.
func TestCapped(t *testing.T) {
	t.Parallel()
	c := &Capped{Max: 5}
	for _, piece := range []string{"ab", "cd"} {
		if n, err := io.WriteString(c, piece); n != 2 || err != nil || c.Cut {
			t.Errorf("%q: %d, %v, cut %t", piece, n, err, c.Cut)
		}
	}
	n, err := io.Copy(c, struct{ io.Reader }{strings.NewReader(strings.Repeat("e", 100_000))})
	if n != 100_000 || err != nil || c.String() != "abcde" || len(c.Bytes()) != 5 || !c.Cut {
		t.Errorf("%d, %v, %q, cut %t", n, err, c, c.Cut)
	}
}
