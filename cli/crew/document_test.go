package crew

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
)

// A crew document as other programs write it, from a file and from standard input.
func TestDocumentOfAnotherProgram(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, "\xef\xbb\xbf" + `{"a":1}`: `{"a":1}`, "\xef\xbb\xbf[]": "",
		"\xef\xbb\xbf": "",
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, "-"} {
			got, err := document(&cli.App{In: strings.NewReader(text)}, name)
			if (err == nil) != (want != "") || string(got) != want {
				t.Errorf("%q: %q, %v", text, got, err)
			}
		}
	}
}
