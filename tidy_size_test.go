package fairlead_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

const (
	methodsMax      = 40   // of one type
	packageLinesMax = 6000 // of one package, without tests
)

// tooMany lists the types that have more methods than methodsMax, each with its number. The number may only
// fall: when it does, write the new one here, or remove the type. doc/adr/0019 says what a split would be.
var tooMany = map[string]int{
	"controller/channels.ChannelController": 47,
	"controller/runs.RunController":         50,
	"controller/sessions.SessionController": 50,
	"driver/acp.play":                       53,
	"internal/test/sim.world":               53,
	"loop.Loop":                             57,
	"machine/crew.crewDraft":                42,
	"machine/workflow.Run":                  47,
	"policy.shell":                          45,
	"team.Team":                             44,
}

// tooLong lists the packages that have more lines than packageLinesMax, in the same way. There is none.
var tooLong = map[string]int{}

// A type with very many methods, or a package with very many lines, has more than one subject. Files may be
// as many as they like: a cap on files would only move lines about.
func TestSizes(t *testing.T) {
	r := readTree(t)
	methods, lines := map[string]int{}, map[string]int{}
	for _, file := range r.goFiles() {
		f, dir := r.goes[file], path.Dir(file)
		if f.test {
			continue
		}
		lines[dir] += strings.Count(r.text[file], "\n")
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[dir+"."+receiver(fn.Recv.List[0].Type)]++
			}
		}
	}
	if len(lines) < 40 || len(methods) < 200 {
		t.Fatalf("%d packages and %d types with methods were found", len(lines), len(methods))
	}
	check(t, "methods", methods, tooMany, methodsMax)
	check(t, "lines", lines, tooLong, packageLinesMax)
}

// check compares each count with the limit, or with its known excess.
func check(t *testing.T, what string, counts, known map[string]int, limit int) {
	t.Helper()
	for name, n := range counts {
		switch was, listed := known[name]; {
		case !listed && n > limit:
			t.Errorf("%s has %d %s, %d at most; split it by subject", name, n, what, limit)
		case listed && n > was:
			t.Errorf("%s has %d %s, and had %d; it may only shrink", name, n, what, was)
		case listed && n < was:
			t.Errorf("%s has %d %s by now; write that in place of %d, or remove it from the list", name, n, what, was)
		}
	}
	for name := range known {
		if counts[name] <= limit {
			t.Errorf("%s keeps to the limit of %d %s; remove it from the list", name, limit, what)
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
