package fairlead_test

import (
	"strconv"
	"strings"
	"testing"
)

// The part of TestTidy that keeps the programs light.

// heavy are modules whose init costs every start of the program milliseconds.
var heavy = map[string]string{
	"github.com/santhosh-tekuri/jsonschema/":     "doc/adr/0009-own-check-of-our-own-schema.md",
	"github.com/alecthomas/chroma/v2/lexers":     "git/diff/doc.go",
	"github.com/alecthomas/chroma/v2/formatters": "git/diff/doc.go",
	"github.com/alecthomas/chroma/v2/styles":     "git/diff/doc.go",
	"github.com/alecthomas/chroma/v2/quick":      "git/diff/doc.go",
}

func (r *tree) lightToStart(t *testing.T) {
	for _, p := range r.goFiles() {
		if r.goes[p].test {
			continue
		}
		for _, spec := range r.goes[p].Imports {
			for module, why := range heavy {
				if name, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(name, module) {
					t.Errorf("%s imports %s, which makes every start slow; only tests may (%s)", p, name, why)
				}
			}
		}
	}
}
