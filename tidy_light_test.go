package fairlead_test

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The part of TestTidy that keeps the programs light.

// heavy are modules whose init costs every start of the program milliseconds.
var heavy = map[string]string{
	"github.com/santhosh-tekuri/jsonschema/":     "doc/adr/0009-own-check-of-our-own-schema.md",
	"github.com/alecthomas/chroma/v2/lexers":     "task/diff/doc.go",
	"github.com/alecthomas/chroma/v2/formatters": "task/diff/doc.go",
	"github.com/alecthomas/chroma/v2/styles":     "task/diff/doc.go",
	"github.com/alecthomas/chroma/v2/quick":      "task/diff/doc.go",
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

// noNATS are what no program links, also by other modules: hosts that only run sessions do not talk NATS
// (doc/adr/0037-transport-and-security-of-many-hosts.md).
var noNATS = []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats-server", module + "/cluster/lease", module + "/cluster/node", module + "/journal/jetstream"}

// noServerInPrograms checks what the programs link.
func noServerInPrograms(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, module+"/cmd/fairlead") || !slices.Contains(packages, module+"/loop") {
		t.Fatalf("go list names %d packages, and not all of the programs", len(packages))
	}
	for _, p := range packages {
		for _, not := range noNATS {
			if p == not || strings.HasPrefix(p, not+"/") {
				t.Errorf("cmd links %s; only a program of its own may", p)
			}
		}
	}
}
