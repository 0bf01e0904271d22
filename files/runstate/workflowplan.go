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

// unnamed is the name of a workflow without one, as in the seed's tool.
const unnamed = "unnamed"

// The field names (SPEC Workflow).
var (
	workflowKeys = []string{"name", "description", "steps", "metadata"}
	stepKeys     = []string{
		"id", "agent", "prompt", "command", "needs", "next_on_success", "gates", "loop_back_to", "human_in_the_loop", "ask",
		"input_schema", "loop", "when", "timeout", "max_attempts", "model", "metadata",
		"continue_conversation", "report_optional",
	}
	loopKeys = []string{
		"items", "items_from_step", "items_from_artifact", "item_var", "index_var", "max_iterations", "until_condition",
	}
)

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

func (r *planReader) plan(root *file.YAMLNode) workflow.Plan {
	r.keys(root, -1, "", workflowKeys)
	p := workflow.Plan{Name: r.text(root, -1, "", "name"), Description: r.text(root, -1, "", "description")}
	if strings.TrimSpace(p.Name) == "" {
		p.Name = unnamed
	}
	r.object(root, -1, "", "metadata") // for other programs
	steps := root.Get("steps")
	if steps == nil || steps.Kind == file.YAMLNull {
		return p
	}
	if steps.Kind != file.YAMLList {
		r.wrongKind(steps, -1, "steps", "steps", "a list of steps")
		return p
	}
	p.Steps = make([]workflow.Step, len(steps.Items))
	for i, n := range steps.Items {
		if n.Kind != file.YAMLObject {
			r.spoiled[spot{step: i}] = true
			r.add(n.Place, stepPath(i, ""), "is "+file.YAMLKindWords[n.Kind]+"; a step is a mapping with an id")
			continue
		}
		p.Steps[i] = r.step(i, n)
	}
	return p
}

func (r *planReader) step(i int, n *file.YAMLNode) workflow.Step {
	at := stepPath(i, "")
	if id := n.Get("id"); id != nil && (id.Kind == file.YAMLText || id.Kind == file.YAMLNumber) {
		at = stepPath(i, id.Text)
	}
	r.keys(n, i, at, stepKeys)
	s := workflow.Step{
		ID: workflow.StepID(r.text(n, i, at, "id")), Agent: r.text(n, i, at, "agent"), Prompt: r.text(n, i, at, "prompt"),
		LoopBackTo: workflow.StepID(r.text(n, i, at, "loop_back_to")), Ask: workflow.Ask(r.text(n, i, at, "ask")),
		When: r.condition(n, i, at, "when"), Model: r.text(n, i, at, "model"), Human: r.truth(n, i, at, "human_in_the_loop"),
		Command: r.texts(n, i, at, "command"), Gates: r.texts(n, i, at, "gates"),
		Needs: ids(r.texts(n, i, at, "needs")), NextOnSuccess: ids(r.texts(n, i, at, "next_on_success")),
		Timeout: r.duration(n, i, at, "timeout"), Metadata: r.object(n, i, at, "metadata"), InputSchema: r.object(n, i, at, "input_schema"),
		ContinueConversation: r.truth(n, i, at, "continue_conversation"), ReportOptional: r.truth(n, i, at, "report_optional"),
	}
	if n.Get("command") != nil && r.spoiled[spot{i, "command", 0}] { // the step has an action, only in a wrong form: its agent is a label
		s.Agent, r.spoiled[spot{i, "agent", 0}] = "", true
	}
	if m := n.Get("max_attempts"); m != nil && m.Kind != file.YAMLNull {
		if s.MaxAttempts = r.whole(m, i, "max_attempts", at+".max_attempts"); s.MaxAttempts == 0 {
			r.wrongKind(m, i, "max_attempts", at+".max_attempts", "a number from 1")
		}
	}
	if loop := n.Get("loop"); loop != nil && loop.Kind != file.YAMLNull {
		s.Loop = r.loop(i, at+".loop", loop)
	}
	return s
}

func (r *planReader) loop(i int, at string, n *file.YAMLNode) *workflow.Loop {
	if n.Kind != file.YAMLObject {
		r.wrongKind(n, i, "loop", at, "a mapping")
		return nil
	}
	r.keys(n, i, at, loopKeys)
	l := &workflow.Loop{
		ItemsFromStep:     workflow.StepID(r.loopText(n, i, at, "items_from_step")),
		ItemsFromArtifact: r.loopText(n, i, at, "items_from_artifact"),
		ItemVar:           r.loopText(n, i, at, "item_var"), IndexVar: r.loopText(n, i, at, "index_var"),
	}
	if c := n.Get("until_condition"); c != nil {
		l.UntilCondition = r.conditionOf(c, i, "loop.until_condition", at+".until_condition")
	}
	if m := n.Get("max_iterations"); m != nil && m.Kind != file.YAMLNull {
		l.MaxIterations = r.whole(m, i, "loop.max_iterations", at+".max_iterations")
	}
	items := n.Get("items")
	switch {
	case items == nil || items.Kind == file.YAMLNull:
	case items.Kind != file.YAMLList:
		r.wrongKind(items, i, "loop.items", at+".items", "a list")
		r.spoiled[spot{i, "loop", 0}] = true
	default:
		l.Items = make([]string, 0, len(items.Items))
		for k, item := range items.Items {
			text, where, fault := file.YAMLToJSON(item)
			if fault != "" {
				r.add(where, fmt.Sprintf("%s.items[%d]", at, k), fault)
				text = "null"
			}
			l.Items = append(l.Items, text)
		}
	}
	return l
}

// keys reports unknown fields: as a fault if a known one is probably meant, and otherwise as a warning, because
// other tools keep fields of their own in a workflow.
func (r *planReader) keys(n *file.YAMLNode, i int, at string, known []string) {
	for _, f := range n.Fields {
		if slices.Contains(known, f.Name) {
			continue
		}
		path := clip.Text(f.Name, 64)
		if at != "" {
			path = at + "." + path
		}
		if near := nearest(f.Name, known); near != "" {
			r.spoiled[spot{i, near, 0}] = true
			r.add(f.Place, path, "is no field of it; "+near+" is meant?")
			continue
		}
		r.warnings = append(r.warnings,
			FileFault{
				r.file, f.Place.Line, f.Place.Column, path,
				"is no field of it and has no effect; it has " + strings.Join(known, ", "),
			})
	}
}

// whole reads a whole number.
func (r *planReader) whole(n *file.YAMLNode, i int, field, path string) int {
	number, err := strconv.Atoi(n.Text)
	if n.Kind != file.YAMLNumber || err != nil {
		r.wrongKind(n, i, field, path, "a whole number")
	}
	return number
}

func (r *planReader) wrongKind(n *file.YAMLNode, i int, field, path, want string) {
	r.wrongEntry(n, spot{i, field, 0}, path, want)
}

func (r *planReader) wrongEntry(n *file.YAMLNode, at spot, path, want string) {
	r.spoiled[at] = true
	if n.Kind != file.YAMLBroken { // already reported
		r.add(n.Place, path, "is "+file.YAMLKindWords[n.Kind]+"; it takes "+want)
	}
}

func (r *planReader) loopText(n *file.YAMLNode, i int, at, name string) string {
	if f := n.Get(name); f != nil {
		return r.textOf(f, i, "loop."+name, at+"."+name)
	}
	return ""
}

func (r *planReader) text(n *file.YAMLNode, i int, at, name string) string {
	path := name
	if at != "" {
		path = at + "." + name
	}
	if f := n.Get(name); f != nil {
		return r.textOf(f, i, name, path)
	}
	return ""
}

// textOf reads a text. A number or boolean is taken as written: an id may be 7.
func (r *planReader) textOf(n *file.YAMLNode, i int, field, path string) string {
	switch n.Kind {
	case file.YAMLText, file.YAMLNumber, file.YAMLBool:
		return n.Text
	case file.YAMLNull:
		return ""
	}
	r.wrongKind(n, i, field, path, "a text")
	return ""
}

func (r *planReader) condition(n *file.YAMLNode, i int, at, name string) string {
	if f := n.Get(name); f != nil {
		return r.conditionOf(f, i, name, at+"."+name)
	}
	return ""
}

// conditionOf reads a condition. `when:` without a value is a fault, because it would otherwise mean true.
func (r *planReader) conditionOf(n *file.YAMLNode, i int, field, path string) string {
	text := r.textOf(n, i, field, path)
	if strings.TrimSpace(text) == "" && !r.spoiled[spot{i, field, 0}] {
		r.spoiled[spot{i, field, 0}] = true
		r.add(n.Place, path, "is empty; say what is to be true, or leave it out")
		return ""
	}
	return text
}

func (r *planReader) truth(n *file.YAMLNode, i int, at, name string) bool {
	f := n.Get(name)
	if f == nil || f.Kind == file.YAMLNull {
		return false
	}
	if f.Kind != file.YAMLBool {
		r.wrongKind(f, i, name, at+"."+name, "true or false")
	}
	return f.Kind == file.YAMLBool && strings.EqualFold(f.Text, "true")
}

// texts reads a list of texts.
func (r *planReader) texts(n *file.YAMLNode, i int, at, name string) []string {
	f := n.Get(name)
	if f == nil || f.Kind == file.YAMLNull {
		return nil
	}
	if f.Kind != file.YAMLList {
		r.wrongKind(f, i, name, at+"."+name, "a list: ["+clip.Text(f.Text, 40)+"]")
		return nil
	}
	var list []string
	for k, item := range f.Items {
		switch item.Kind {
		case file.YAMLText, file.YAMLNumber, file.YAMLBool:
			list = append(list, item.Text)
		default:
			r.wrongEntry(item, spot{i, name, k + 1}, fmt.Sprintf("%s.%s[%d]", at, name, k), "a text")
			list = append(list, "") // the numbers of the others stay
		}
	}
	return list
}

func ids(list []string) []workflow.StepID {
	var all []workflow.StepID
	for _, id := range list {
		all = append(all, workflow.StepID(id))
	}
	return all
}

// object reads a mapping as JSON.
func (r *planReader) object(n *file.YAMLNode, i int, at, name string) string {
	f := n.Get(name)
	if f == nil || f.Kind == file.YAMLNull {
		return ""
	}
	path := strings.TrimPrefix(at+"."+name, ".")
	if f.Kind != file.YAMLObject {
		r.wrongKind(f, i, name, path, "a mapping")
		return ""
	}
	text, where, fault := file.YAMLToJSON(f)
	if fault != "" {
		r.spoiled[spot{i, name, 0}] = true
		r.add(where, path, fault)
		return ""
	}
	return text
}

// duration reads 90s, 10m or 2h; a plain number is seconds.
func (r *planReader) duration(n *file.YAMLNode, i int, at, name string) time.Duration {
	f := n.Get(name)
	if f == nil || f.Kind == file.YAMLNull {
		return 0
	}
	switch f.Kind {
	case file.YAMLNumber:
		if s, err := strconv.ParseFloat(f.Text, 64); err == nil && s >= 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
	case file.YAMLText:
		if d, err := time.ParseDuration(f.Text); err == nil {
			return d
		}
	}
	r.wrongKind(f, i, name, at+"."+name, "a time, like 90s, 10m or 2h")
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

// nearest returns the known word that is closest to a misspelt one; empty: none is close.
func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			last, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, last+cost)
		}
	}
	return row[len(b)]
}
