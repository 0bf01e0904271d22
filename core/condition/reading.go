package condition

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// reading checks a condition before the expression library checks its types: it finds the steps
// that are named, and refuses expressions that could run without bound. Loops over lists cannot be
// nested, and an expression cannot create a list.
type reading struct {
	source file.Source
	kind   Kind
	known  func(id string) bool
	steps  []string
	item   bool
	faults []*Fault

	meaningless bool // a fault is not only an unknown step: what the types are is not known
}

const faultsMax = 20 // of one condition; a person corrects these first

// functions are those that a condition may use. Each takes as long as what it is given.
var functions = []string{
	"all", "any", "one", "none", "count", "filter", "map", "len", "lower", "upper", "trim", "abs", "int", "float", "string", "first",
	"last",
	"hasPrefix", "hasSuffix", "split", "join", "max", "min",
}

// ours are functions that are not the language's.
var ours = []string{"number", "text"}

// names are what a condition may begin with.
func (r *reading) names() []string {
	if r.kind == Until {
		return []string{"steps", "report", "item", "index"}
	}
	return []string{"steps"}
}

func (r *reading) wrong(n ast.Node, format string, args ...any) {
	r.meaningless = true
	r.note(n, format, args...)
}

func (r *reading) note(n ast.Node, format string, args ...any) {
	if len(r.faults) < faultsMax {
		fault := r.at(n)
		fault.Text = fmt.Sprintf(format, args...)
		r.faults = append(r.faults, fault)
	}
}

// read looks at a node and at all below it; inside is how many lists are being gone through.
func (r *reading) read(n ast.Node, inside int) {
	if n == nil {
		return
	}
	switch n := n.(type) {
	case *ast.IdentifierNode:
		r.name(n)
	case *ast.MemberNode:
		r.member(n, inside)
		return
	case *ast.BuiltinNode:
		r.builtin(n, inside)
		return
	case *ast.CallNode:
		r.call(n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "..":
			r.wrong(n, "a range makes a list out of nothing; compare with >= and <=")
		case "**", "^":
			r.wrong(n, "%s is not for conditions; let a step work it out and report it as a metric", n.Operator)
		case "<", "<=", ">", ">=":
			if isText(n.Left) || isText(n.Right) {
				r.wrong(n, "%s puts numbers in order, and there is a text; leave the quotes out, or take == or !=", n.Operator)
			}
		}
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		r.wrong(n, "a condition is one expression, without let and ;")
	}
	for _, child := range children(n) {
		r.read(child, inside)
	}
}

func (r *reading) name(n *ast.IdentifierNode) {
	switch {
	case n.Value == "steps":
		r.wrong(n, `steps as a whole cannot be asked for; name one: steps.NAME, or steps["NAME"] where it has a - or a .`)
	case !slices.Contains(r.names(), n.Value):
		hint := ""
		if r.kind == When && slices.Contains([]string{"report", "item", "index"}, n.Value) {
			hint = "; that is for until_condition alone"
		} else if r.known != nil && r.known(n.Value) {
			hint = "; steps." + n.Value + " is meant?"
		}
		r.wrong(n, "%q means nothing; a condition begins with %s%s", cut(n.Value), strings.Join(r.names(), ", "), hint)
	case n.Value == "item":
		r.item = true
	}
}

// member is x.y or x["y"].
func (r *reading) member(n *ast.MemberNode, inside int) {
	if base, ok := n.Node.(*ast.IdentifierNode); !ok || base.Value != "steps" {
		r.read(n.Node, inside)
		if _, plain := n.Property.(*ast.StringNode); !plain {
			r.read(n.Property, inside)
		}
		return
	}
	id, ok := n.Property.(*ast.StringNode)
	switch {
	case !ok:
		r.wrong(n.Property, `a step is named as it is written, as steps["code.review"], and not worked out`)
	case r.known != nil && !r.known(id.Value):
		r.note(n.Property, "no step is called %q", cut(id.Value))
	default:
		r.steps = append(r.steps, id.Value)
	}
}

func (r *reading) builtin(n *ast.BuiltinNode, inside int) {
	if !slices.Contains(functions, n.Name) {
		r.wrong(n, "there is no %s in conditions; there is %s", n.Name, strings.Join(slices.Concat(functions, ours), ", "))
	}
	if inside > 0 && slices.ContainsFunc(n.Arguments, goesThrough) {
		r.wrong(n, "%s within another one goes through a list once for each entry of another; let a step find it out and report it", n.Name)
		return
	}
	for _, a := range n.Arguments {
		if goesThrough(a) {
			r.read(a, inside+1)
			continue
		}
		r.read(a, inside)
	}
}

func goesThrough(n ast.Node) bool {
	_, is := n.(*ast.PredicateNode)
	return is
}

func isText(n ast.Node) bool {
	_, is := n.(*ast.StringNode)
	return is
}

// call is a function that is not the language's own.
func (r *reading) call(n *ast.CallNode) {
	if name, ok := n.Callee.(*ast.IdentifierNode); ok && slices.Contains(ours, name.Value) {
		return
	}
	r.wrong(n, "there is no such function in conditions; there is %s", strings.Join(slices.Concat(functions, ours), ", "))
}

// children are the nodes right below one, but for the name of a function that is called.
func children(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return []ast.Node{n.Node}
	case *ast.BinaryNode:
		return []ast.Node{n.Left, n.Right}
	case *ast.ChainNode:
		return []ast.Node{n.Node}
	case *ast.SliceNode:
		return []ast.Node{n.Node, n.From, n.To}
	case *ast.CallNode:
		return n.Arguments
	case *ast.PredicateNode:
		return []ast.Node{n.Node}
	case *ast.ConditionalNode:
		return []ast.Node{n.Cond, n.Exp1, n.Exp2}
	case *ast.ArrayNode:
		return n.Nodes
	case *ast.MapNode:
		return n.Pairs
	case *ast.PairNode:
		return []ast.Node{n.Key, n.Value}
	case *ast.IdentifierNode, *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.BytesNode,
		*ast.ConstantNode, *ast.PointerNode, *ast.VariableDeclaratorNode, *ast.SequenceNode:
		return nil
	}
	panic("condition: the language has a kind of node that reading does not handle: " + reflect.TypeOf(n).String())
}
