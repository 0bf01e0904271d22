package runstate

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// meantLess is how many letters of an unknown field are wrong at the least if no known one is meant.
const meantLess = 3

// unnamed is the name of a workflow without one, as in the seed's tool.
const unnamed = "unnamed"

// field is a field of a mapping (SPEC Workflow), and where its value goes.
type field struct {
	name string
	to   any
}

// Values that are not taken like others of their kind.
type (
	predicate string   // `when:` without a value is a fault, because it would otherwise mean true
	object    string   // a mapping as JSON
	items     []string // each as JSON
	fromOne   int
)

func planFields(p *workflow.Plan) []field {
	return []field{
		{"name", &p.Name},
		{"description", &p.Description},
		{"steps", &p.Steps},
		{"metadata", new(object)}, // for other programs
	}
}

func stepFields(s *workflow.Step) []field {
	return []field{
		{"id", &s.ID},
		{"agent", &s.Agent},
		{"prompt", &s.Prompt},
		{"command", &s.Command},
		{"needs", &s.Needs},
		{"next_on_success", &s.NextOnSuccess},
		{"gates", &s.Gates},
		{"loop_back_to", &s.LoopBackTo},
		{"human_in_the_loop", &s.Human},
		{"ask", &s.Ask},
		{"input_schema", (*object)(&s.InputSchema)},
		{"loop", &s.Loop},
		{"when", (*predicate)(&s.When)},
		{"timeout", &s.Timeout},
		{"max_attempts", (*fromOne)(&s.MaxAttempts)},
		{"model", &s.Model},
		{"metadata", (*object)(&s.Metadata)},
		{"continue_conversation", &s.ContinueConversation},
		{"report_optional", &s.ReportOptional},
	}
}

func loopFields(l *workflow.Loop) []field {
	return []field{
		{"items", (*items)(&l.Items)},
		{"items_from_step", &l.ItemsFromStep},
		{"items_from_artifact", &l.ItemsFromArtifact},
		{"item_var", &l.ItemVar},
		{"index_var", &l.IndexVar},
		{"max_iterations", &l.MaxIterations},
		{"until_condition", (*predicate)(&l.UntilCondition)},
	}
}

// planReader makes a plan from a file's values. It reports values of the wrong kind and leaves them out;
// faults of the plan that follow from such a gap are not reported.
type planReader struct {
	*workflowFaults
	warnings []FileFault
	source   []byte
	spoiled  map[spot]bool
}

// spot is a field of a step, or an entry of it from 1; an empty field is the whole step.
type spot struct {
	step  int
	field string
	entry int
}

// value is a value of the file with its place in the plan.
type value struct {
	*file.YAMLNode
	spot
	path string // for messages
}

// in is a value of a mapping.
func (v value) in(name string, n *file.YAMLNode) value {
	return value{n, spot{step: v.step, field: under(v.field, name)}, under(v.path, name)}
}

func under(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func (r *planReader) plan(root *file.YAMLNode) workflow.Plan {
	var p workflow.Plan
	r.mapping(value{root, spot{step: -1}, ""}, planFields(&p))
	if strings.TrimSpace(p.Name) == "" {
		p.Name = unnamed
	}
	return p
}

// mapping reads the fields of a mapping. An unknown one is a fault if a known one is probably meant, and otherwise a warning, because
// other tools keep fields of their own in a workflow.
func (r *planReader) mapping(v value, fields []field) {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	for _, f := range v.Fields {
		if i := slices.Index(known, f.Name); i >= 0 {
			r.read(v.in(f.Name, f.Value), fields[i].to)
			continue
		}
		path := under(v.path, clip.Text(f.Name, 64))
		if near := file.Nearest(f.Name, known, meantLess); near != "" {
			r.spoiled[v.in(near, nil).spot] = true
			r.add(f.Place, path, "is no field of it; "+near+" is meant?")
			continue
		}
		r.warnings = append(r.warnings,
			f.Place.Fault(r.file, path, "is no field of it and has no effect; it has "+strings.Join(known, ", ")))
	}
}

// read reads a value; null leaves it out.
func (r *planReader) read(v value, to any) {
	if to, is := to.(*predicate); is {
		*to = predicate(r.condition(v))
		return
	}
	if v.Kind == file.YAMLNull {
		return
	}
	switch to := to.(type) {
	case *string:
		*to = r.text(v)
	case *workflow.StepID:
		*to = workflow.StepID(r.text(v))
	case *workflow.Ask:
		*to = workflow.Ask(r.text(v))
	case *object:
		*to = object(r.object(v))
	case *[]string:
		*to = r.texts(v)
	case *[]workflow.StepID:
		for _, id := range r.texts(v) {
			*to = append(*to, workflow.StepID(id))
		}
	case *bool:
		if *to = v.Kind == file.YAMLBool && strings.EqualFold(v.Text, "true"); v.Kind != file.YAMLBool {
			r.wrongKind(v, "true or false")
		}
	case *int:
		*to = r.whole(v)
	case *fromOne:
		if *to = fromOne(r.whole(v)); *to == 0 {
			r.wrongKind(v, "a number from 1")
		}
	case *time.Duration:
		*to = r.duration(v)
	case *[]workflow.Step:
		*to = r.steps(v)
	case **workflow.Loop:
		if v.Kind != file.YAMLObject {
			r.wrongKind(v, "a mapping")
			return
		}
		*to = &workflow.Loop{}
		r.mapping(v, loopFields(*to))
	case *items:
		*to = r.items(v)
	default:
		panic(fmt.Sprintf("runstate: a field of a workflow is a %T", to))
	}
}

func (r *planReader) steps(v value) []workflow.Step {
	if v.Kind != file.YAMLList {
		r.wrongKind(v, "a list of steps")
		return nil
	}
	steps := make([]workflow.Step, len(v.Items))
	for i, n := range v.Items {
		if n.Kind != file.YAMLObject {
			r.spoiled[spot{step: i}] = true
			r.add(n.Place, stepPath(i, ""), "is "+file.YAMLKindWords[n.Kind]+"; a step is a mapping with an id")
			continue
		}
		s, name := &steps[i], ""
		if id := n.Get("id"); id != nil && (id.Kind == file.YAMLText || id.Kind == file.YAMLNumber) {
			name = id.Text
		}
		r.mapping(value{n, spot{step: i}, stepPath(i, name)}, stepFields(s))
		if n.Get("command") != nil && r.spoiled[spot{i, "command", 0}] { // it has an action, only in a wrong form: its agent is a label
			s.Agent, r.spoiled[spot{i, "agent", 0}] = "", true
		}
	}
	return steps
}

func (r *planReader) items(v value) items {
	if v.Kind != file.YAMLList {
		r.wrongKind(v, "a list")
		r.spoiled[spot{v.step, "loop", 0}] = true
		return nil
	}
	list := make(items, 0, len(v.Items))
	for k, item := range v.Items {
		text, where, fault := file.YAMLToJSON(item)
		if fault != "" {
			r.add(where, fmt.Sprintf("%s[%d]", v.path, k), fault)
			text = "null"
		}
		list = append(list, text)
	}
	return list
}

// whole reads a whole number.
func (r *planReader) whole(v value) int {
	number, err := strconv.Atoi(v.Text)
	if v.Kind != file.YAMLNumber || err != nil {
		r.wrongKind(v, "a whole number")
	}
	return number
}

func (r *planReader) wrongKind(v value, want string) {
	r.spoiled[v.spot] = true
	if v.Kind != file.YAMLBroken { // already reported
		r.add(v.Place, v.path, "is "+file.YAMLKindWords[v.Kind]+"; it takes "+want)
	}
}

// text reads a text. A number or boolean is taken as written: an id may be 7.
func (r *planReader) text(v value) string {
	switch v.Kind {
	case file.YAMLText, file.YAMLNumber, file.YAMLBool:
		return v.Text
	}
	r.wrongKind(v, "a text")
	return ""
}

func (r *planReader) condition(v value) (text string) {
	if v.Kind != file.YAMLNull {
		text = r.text(v)
	}
	if strings.TrimSpace(text) == "" && !r.spoiled[v.spot] {
		r.spoiled[v.spot] = true
		r.add(v.Place, v.path, "is empty; say what is to be true, or leave it out")
		return ""
	}
	return text
}

// texts reads a list of texts. In the place of one that is none there is an empty one, so that the numbers of the others stay.
func (r *planReader) texts(v value) (list []string) {
	if v.Kind != file.YAMLList {
		r.wrongKind(v, "a list: ["+clip.Text(v.Text, 40)+"]")
		return nil
	}
	for k, item := range v.Items {
		list = append(list, r.text(value{item, spot{v.step, v.field, k + 1}, fmt.Sprintf("%s[%d]", v.path, k)}))
	}
	return list
}

// object reads a mapping as JSON.
func (r *planReader) object(v value) string {
	if v.Kind != file.YAMLObject {
		r.wrongKind(v, "a mapping")
		return ""
	}
	text, where, fault := file.YAMLToJSON(v.YAMLNode)
	if fault != "" {
		r.spoiled[v.spot] = true
		r.add(where, v.path, fault)
		return ""
	}
	return text
}

// duration reads 90s, 10m or 2h; a plain number is seconds.
func (r *planReader) duration(v value) time.Duration {
	switch v.Kind {
	case file.YAMLNumber:
		if s, err := strconv.ParseFloat(v.Text, 64); err == nil && s >= 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
	case file.YAMLText:
		if d, err := time.ParseDuration(v.Text); err == nil {
			return d
		}
	}
	r.wrongKind(v, "a time, like 90s, 10m or 2h")
	return 0
}

// nodeOf returns a field of a step.
func (r *planReader) nodeOf(root *file.YAMLNode, i int, field string) *file.YAMLNode {
	n := root.Get("steps").Items[i]
	for name := range strings.SplitSeq(field, ".") {
		n = n.Get(name)
	}
	return n
}

// inText returns the place of a character of a text; line and column within the text count from 1. If the
// file does not show the text as it is (a folded block, escapes), it returns the place of the text's
// beginning, and false.
func (r *planReader) inText(n *file.YAMLNode, line, column int) (file.Place, bool) {
	lines := bytes.Split(r.source, []byte("\n"))
	texts := strings.Split(n.Text, "\n")
	if line < 1 || line > len(texts) {
		return n.Place, false
	}
	text := texts[line-1]
	at := n.Place
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		at.Line += line
		if at.Line > len(lines) {
			return n.Place, false
		}
		shown := string(lines[at.Line-1])
		indent := strings.Index(shown, text)
		if text == "" || indent < 0 || strings.TrimSpace(shown[:indent]) != "" {
			return n.Place, false
		}
		at.Column = indent + column
		return at, true
	case n.Style&yaml.FoldedStyle != 0 || len(texts) > 1:
		return n.Place, false
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		at.Column++
	}
	if at.Line > len(lines) {
		return n.Place, false
	}
	shown := []rune(string(lines[at.Line-1]))
	if at.Column-1 > len(shown) || !strings.HasPrefix(string(shown[at.Column-1:]), text) {
		return n.Place, false
	}
	at.Column += column - 1
	return at, true
}
