package runs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A file with a loop's items, as other programs write it.
func TestItemsOfAFile(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	for _, c := range []struct {
		text string
		want []string // nil: it is refused
	}{
		{`["a", {"b": 1}]`, []string{`"a"`, `{"b": 1}`}},
		{mark + `["a", {"b": 1}]`, []string{`"a"`, `{"b": 1}`}},
		{`{"items": [1]}`, []string{"1"}},
		{mark + `{"items": [1]}`, []string{"1"}},
		{mark + "\n []", []string{}},
		{mark + mark + "[]", nil},
		{mark, nil},
		{`{"items": null}`, nil},
		{mark + `"a"`, nil},
	} {
		repo := t.TempDir()
		if err := os.WriteFile(filepath.Join(repo, "items.json"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readItems(repo, "items.json")
		if (err == nil) != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
}
