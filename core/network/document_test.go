package network

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// doc/network.md has the tables of this package.
func TestDocument(t *testing.T) {
	const path = "../../doc/network.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, want := range map[string]string{
		"ranges": rangesTable(), "registries": registriesTable(), "services": servicesTable(), "programs": programsTable(),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s lacks the lines %q and %q", path, begin, end)
		}
		page = before + begin + want + end + after
	}
	golden.Check(t, path, page)
}

func rangesTable() string {
	var order []Range
	prefixes := map[Range][]string{}
	for _, row := range special {
		if prefixes[row.kind] == nil {
			order = append(order, row.kind)
		}
		prefix := strings.TrimSuffix(row.prefix, "/128")
		if strings.Contains(prefix, ".") {
			prefix = strings.TrimSuffix(prefix, "/32")
		}
		prefixes[row.kind] = append(prefixes[row.kind], prefix)
	}
	table := "| addresses of | reached by | ranges |\n|---|---|---|\n"
	for _, kind := range order {
		by := "a named host"
		if !kind.byName() {
			by = "the named address"
		}
		table += fmt.Sprintf("| %s | %s | %s |\n", kind, by, strings.Join(prefixes[kind], ", "))
	}
	return table
}

func registriesTable() string {
	table := "| registry | hosts |\n|---|---|\n"
	for _, r := range Registries() {
		table += "| " + r.Name + " | `" + strings.Join(r.Hosts, "` `") + "` |\n"
	}
	return table
}

func servicesTable() string {
	table := "| service | variables of its keys | hosts |\n|---|---|---|\n"
	for _, p := range Providers() {
		var hosts []string
		for _, h := range p.Hosts {
			hosts = append(hosts, h.Name)
		}
		table += "| " + p.Name + " | `" + strings.Join(p.Keys, "` `") + "` | `" + strings.Join(hosts, "` `") + "` |\n"
	}
	return table
}

func programsTable() string {
	table := "| program | without a key | led to another address by (with keys of) |\n|---|---|---|\n"
	for _, of := range programs {
		var ways []string
		services := map[string][]string{}
		for _, b := range of.bases {
			way := b.variable
			if len(b.arguments) > 0 {
				way = strings.Join(b.arguments, " ")
			}
			if services[way] == nil {
				ways = append(ways, way)
			}
			services[way] = append(services[way], b.providers...)
		}
		for i, way := range ways {
			ways[i] = "`" + way + "` (" + strings.Join(services[way], ", ") + ")"
		}
		table += "| " + of.names[0] + " | " + of.signedIn + " | " + strings.Join(ways, "; ") + " |\n"
	}
	return table
}
