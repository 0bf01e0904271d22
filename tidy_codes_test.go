package fairlead_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// proseNames are the names of fields and variables that hold text for people, or the id of a row of the
// specification. Code decides on codes, states and events instead.
var proseNames = []string{"Why", "Note", "Row", "Reason", "Detail"}

// proseParsers are functions of package strings that take a text apart or look into it.
var proseParsers = []string{
	"HasPrefix", "HasSuffix", "Contains", "ContainsAny", "Cut", "CutPrefix", "CutSuffix", "Split", "SplitN", "Index", "LastIndex",
	"EqualFold", "Fields",
}

// proseExceptions are the files that may compare or parse prose, each with the reason.
var proseExceptions = map[string]string{
	"core/control/classify.go":              "compares a whole agent_state.json with the one before: a new note is a new order, and a foreign loop may write back ours",
	"core/control/act.go":                   "recognises the note of a hold that a foreign loop wrote back unchanged",
	"work/agents/files.go":                  "compares the fields of agent_state.json on disk with those that it should have",
	"app/plan.go":                           "groups lines of the dry run that show the same sentence",
	"cli/crew/summon.go":                    "prints the sentence again only when it changed",
	"work/crew/presencefiles.go":            "logs the text of an error again only when it changed",
	"core/workflow/process.go":              "the same fault of an answer, found again, is no change",
	"process/shim/agent.go":                 "leaves the commonest text out of an error that lists folders",
	"api/client/stream.go":                  "the fixed words of the last event of the feed",
	"process/driver/speech/conversation.go": "the fixed words for how an agent program stopped",
}

// No code decides on sentences or row ids: both change when people improve the wording, and a decision must
// not. A comparison with the empty string is allowed, since it only asks whether there is a text. Where a
// field named Reason holds a typed code, comparing it with a named constant is allowed, too.
func TestNoDecisionOnProse(t *testing.T) {
	r, used := readTree(t), map[string]bool{}
	for _, file := range r.goFiles() {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/test/") {
			continue // tests compare what people read
		}
		f := r.goes[file]
		for _, found := range proseUses(f.File) {
			if _, may := proseExceptions[file]; may {
				used[file] = true
				continue
			}
			t.Errorf("%s: %s; compare a code, a state or an event, and render the text from it", f.at(found.pos), found.what)
		}
	}
	for file := range proseExceptions {
		if !used[file] {
			t.Errorf("%s compares no prose any more; remove it from proseExceptions", file)
		}
	}
}

type proseUse struct {
	pos  token.Pos
	what string
}

func proseUses(file *ast.File) (found []proseUse) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ || plain(n.X) || plain(n.Y) {
				return true
			}
			for i, side := range []ast.Expr{n.X, n.Y} {
				if name := proseName(side); name != "" && (!strings.EqualFold(name, "Reason") || literal([]ast.Expr{n.Y, n.X}[i])) {
					found = append(found, proseUse{n.Pos(), "compares " + name})
					break
				}
			}
		case *ast.SwitchStmt:
			if name := proseName(n.Tag); name != "" && !strings.EqualFold(name, "Reason") {
				found = append(found, proseUse{n.Pos(), "switches on " + name})
			}
		case *ast.CallExpr:
			fun, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				return true
			}
			pkg, _ := fun.X.(*ast.Ident)
			if pkg == nil || pkg.Name != "strings" || !slices.Contains(proseParsers, fun.Sel.Name) {
				return true
			}
			if name := proseName(n.Args[0]); name != "" {
				found = append(found, proseUse{n.Pos(), fmt.Sprintf("calls strings.%s on %s", fun.Sel.Name, name)})
			}
		}
		return true
	})
	return found
}

func literal(x ast.Expr) bool {
	lit, ok := x.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// plain says whether an expression is the empty string or nil.
func plain(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Value == `""`
	case *ast.Ident:
		return x.Name == "nil"
	default:
		return false
	}
}

// proseName gives the name of a field or variable that holds prose; empty: it is none.
func proseName(x ast.Expr) string {
	name := ""
	switch x := x.(type) {
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.Ident:
		name = x.Name
	}
	for _, prose := range proseNames {
		if name == prose || name == strings.ToLower(prose) {
			return name
		}
	}
	return ""
}

// The check itself finds what it forbids.
func TestProseUsesAreFound(t *testing.T) {
	for code, want := range map[string]int{
		`if x.Why == "stopped" {}`:                1,
		`if "X10" != v.Row {}`:                    1,
		`switch s.Note { case "a": }`:             1,
		`if strings.HasPrefix(s.Why, "limit") {}`: 1,
		`_, b, _ := strings.Cut(why, ": ")`:       1,
		`if s.Why == "" || s.Note != nil {}`:      0,
		`if s.Reason == session.ReasonDied {}`:    0,
		`if s.Reason == "died" {}`:                1,
		`if s.EndReason == EndLimit {}`:           0,
		`if strings.HasPrefix(line, s.Why) {}`:    0,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+code+"\n}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := proseUses(parsed); len(got) != want {
			t.Errorf("%s: found %v", code, got)
		}
	}
}

// What the state does not allow is a machine.Refusal, which has status 409 and exit code 3. A problem that is only a text would have the
// status without the exit code.
func TestConflictsAreRefusals(t *testing.T) {
	r := readTree(t)
	for _, file := range r.goFiles() {
		if strings.HasSuffix(file, "_test.go") || file == "api/problem.go" {
			continue
		}
		f := r.goes[file]
		ast.Inspect(f.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, _ := call.Fun.(*ast.SelectorExpr)
			status, _ := call.Args[0].(*ast.SelectorExpr)
			if fun != nil && status != nil && fun.Sel.Name == "NewProblem" && status.Sel.Name == "StatusConflict" {
				t.Errorf("%s: return a *machine.Refusal", f.at(n.Pos()))
			}
			return true
		})
	}
}
