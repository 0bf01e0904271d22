package uitest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// quote returns a Go string as a JavaScript literal. JSON is a subset of it.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("uitest: quote %q: %v", s, err))
	}
	return string(b)
}

// UIDir returns the folder ui of the repository. Tests run in the folder of their package, so the
// root is the first parent that contains go.mod.
func UIDir() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(fmt.Sprintf("uitest: find the working folder: %v", err))
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "ui")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("uitest: no parent of the working folder holds go.mod")
		}
		dir = parent
	}
}

// Axe runs axe-core on the page and fails for each broken rule, with the elements that break it. It
// is loaded through the debugger, so the page's policy need not allow it. With PICTURES=folder in
// the environment it also takes a picture of what it checks.
func (p *Page) Axe() {
	p.t.Helper()
	if dir := os.Getenv("PICTURES"); dir != "" {
		p.pictures++
		p.Screenshot(filepath.Join(dir, fmt.Sprintf("%s-%02d.png", strings.ReplaceAll(p.t.Name(), "/", "-"), p.pictures)))
	}
	if !Eval[bool](p, `window.axe !== undefined`) { // half a megabyte; once a page is enough
		source, err := os.ReadFile(filepath.Join(UIDir(), "node_modules", "axe-core", "axe.min.js"))
		if err != nil {
			Lacks(p.t, "the rules of accessibility are not here; fetch them with (cd ui && npm ci --ignore-scripts)")
		}
		Eval[bool](p, string(source)+"\n;true")
	}
	type node struct {
		Target  []any  `json:"target"`
		Summary string `json:"failureSummary"`
	}
	broken := Eval[[]struct {
		ID    string `json:"id"`
		Help  string `json:"help"`
		Nodes []node `json:"nodes"`
	}](p, `axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => ({id: v.id, help: v.help,
		nodes: v.nodes.slice(0, 4).map(n => ({target: n.target.map(String), failureSummary: n.failureSummary}))})))`)
	for _, b := range broken {
		var where []string
		for _, n := range b.Nodes {
			where = append(where, fmt.Sprintf("  %v\n    %s", n.Target, strings.ReplaceAll(n.Summary, "\n", "\n    ")))
		}
		p.t.Errorf("axe: %s: %s\n%s", b.ID, b.Help, strings.Join(where, "\n"))
	}
}
