package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	textBytesMax = 16 << 10 // as the core's; a longer one belongs into a step
	nodesMax     = 1000     // words and signs of one condition; a longer one is not readable
	itemBytesMax = 16 << 10 // of the item at hand: the work of a condition grows with it
	memoryMax    = 100_000  // values made on the way, in the machine's own count
	listMax      = 10_000   // artifacts that a condition looks through
)

// Kind says where a condition is used, and so what it may name.
type Kind string

const (
	When  Kind = "when"            // whether a step is to be done at all
	Until Kind = "until_condition" // whether a loop has come to its end: report, item and index too
)

// Step is what a condition may ask of a step (seed 004, Step Runtime Object).
type Step struct {
	Status    string // one of the seed's six words
	Iteration int
	Attempts  int
	Artifacts []string
	Metrics   map[string]string
}

// Report is what a condition may ask about the report that has just come in.
type Report struct {
	Status     string // COMPLETED or FAILED
	GateFailed bool   // gate_failure
	Why        string // of either, in the report's words
	Artifacts  []string
	Metrics    map[string]string
}

// World is what a condition is weighed against.
type World struct {
	Steps  func(id string) (Step, bool) // asked for the steps that the condition names, and no others
	Report Report                       // of Until, as the next two
	Item   string                       // a JSON text; empty: null
	Index  int                          // of the item, from 0
}

// Fault says why a condition means nothing, or cannot be weighed.
type Fault struct {
	Line, Column int // in the condition's own text, from 1, in characters
	Text         string
}

func (f *Fault) Error() string {
	if f.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Text)
	}
	return fmt.Sprintf("column %d: %s", f.Column, f.Text)
}

// Condition is one that was read through. It may be weighed any number of times, also by many at
// once.
type Condition struct {
	kind    Kind
	steps   []string
	item    bool // it names the item
	program *vm.Program
}

// Check reads a condition through. The steps that it may name are those that known says; nil: any.
// The error is a *Fault.
func Check(text string, kind Kind, known func(id string) bool) (*Condition, error) {
	c, faults := read(text, kind, known)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return c, nil
}

// Faults are all faults that Check can find at once.
func Faults(text string, kind Kind, known func(id string) bool) []*Fault {
	_, faults := read(text, kind, known)
	return faults
}

func read(text string, kind Kind, known func(id string) bool) (*Condition, []*Fault) {
	switch {
	case kind != When && kind != Until:
		panic("condition: no such kind: " + string(kind))
	case strings.TrimSpace(text) == "":
		return nil, []*Fault{{1, 1, "is empty; say what is to be true"}}
	case len(text) > textBytesMax:
		return nil, []*Fault{{1, 1, fmt.Sprintf("%d bytes, %d at most; let a step find it out and report it", len(text), textBytesMax)}}
	case !utf8.ValidString(text):
		return nil, []*Fault{{1, 1, "is no UTF-8"}}
	}
	tree, err := parser.ParseWithConfig(text, syntax())
	if err != nil {
		return nil, []*Fault{faultOf(err)}
	}
	seen := &reading{source: tree.Source, kind: kind, known: known}
	seen.read(tree.Node, 0)
	if seen.meaningless {
		return nil, seen.faults
	}
	program, err := expr.Compile(text, options(kind)...)
	if err != nil {
		seen.faults = append(seen.faults, faultOf(err))
	}
	if len(seen.faults) > 0 {
		return nil, seen.faults
	}
	slices.Sort(seen.steps)
	return &Condition{kind: kind, steps: slices.Compact(seen.steps), item: seen.item, program: program}, nil
}

// Eval weighs a condition. The error is a *Fault: a metric is missing or no number, an item is
// of another shape, or it is too much work.
func (c *Condition) Eval(w World) (bool, error) {
	world, err := c.world(w)
	if err != nil {
		return false, err
	}
	machine := vm.VM{MemoryBudget: memoryMax}
	result, err := machine.Run(c.program, world)
	if err != nil {
		return false, faultOf(err)
	}
	holds, ok := result.(bool)
	if !ok {
		return false,
			&Fault{1, 1, fmt.Sprintf("comes to %s, which is neither true nor false; compare it with something", cut(fmt.Sprint(result)))}
	}
	return holds, nil
}

// Eval reads a condition through and weighs it, in one go.
func Eval(text string, kind Kind, w World) (bool, error) {
	c, err := Check(text, kind, nil)
	if err != nil {
		return false, err
	}
	return c.Eval(w)
}

// syntax is how a condition is parsed for being looked at: every name is let through, because
// the faults are to be in our words.
func syntax() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = nodesMax
	c.Strict = false
	return c
}

// faultOf puts a fault of the language in our form: in one line, with its place.
func faultOf(err error) *Fault {
	var own *Fault
	if errors.As(err, &own) && own.Line > 0 {
		return own
	}
	var placed *file.Error
	if !errors.As(err, &placed) {
		return &Fault{1, 1, cut(plainly(firstLine(err.Error())))}
	}
	text := firstLine(placed.Message)
	if own != nil {
		text = own.Text
	}
	text = plainly(text)
	return &Fault{Line: max(1, placed.Line), Column: placed.Column + 1, Text: cut(text)}
}

// plainly says in our words what the language says in its own.
func plainly(text string) string {
	for _, w := range words {
		if strings.Contains(text, w.theirs) {
			return strings.ReplaceAll(text, w.theirs, w.ours) + w.hint
		}
	}
	return text
}

// words replaces the expression library's terms for Go types by terms that authors of conditions
// know.
var words = []struct{ theirs, ours, hint string }{
	{"type condition.stepView has", "a step has", "; it has status, iteration, attempts, artifacts, metrics"},
	{"type condition.reportView has", "a report has", "; it has status, gate_failure, why, artifacts, metrics"},
	{"type condition.metric has", "a metric has", "; compare it as it is"},
	{"condition.metric", "metric", "; number(…) makes a number of a metric, text(…) a text"},
	{`unexpected token Operator("=")`, "a single = means nothing", "; == compares"},
	{"unexpected token EOF", "breaks off here", "; something is to follow"},
	{"unexpected end of expression", "breaks off here", "; something is to follow"},
	{"compilation failed: expression exceeds maximum allowed nodes", "is too long from here on", "; let a step find it out and report it"},
	{"expected bool, but got", "is to be true or false, and comes to", "; compare it with something"},
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// cut shortens a quotation, which may be another program's data.
func cut(s string) string {
	return clip.Text(s, 200) // a line on a screen, and a half
}

// at is the place of a node.
func (r *reading) at(n ast.Node) *Fault {
	e := (&file.Error{Location: n.Location()}).Bind(r.source)
	return &Fault{Line: e.Line, Column: e.Column + 1}
}
