package interop

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// The words of the file (SPEC Workflow).
var (
	workflowKeys = []string{"name", "description", "steps"}
	stepKeys     = []string{
		"id", "agent", "prompt", "command", "needs", "next_on_success", "gates", "loop_back_to", "human_in_the_loop", "ask",
		"input_schema", "loop", "when", "timeout", "model", "metadata",
	}
	loopKeys = []string{
		"items", "items_from_step", "items_from_artifact", "item_var", "index_var", "max_iterations", "until_condition",
	}
)

// planReader makes a plan of a file's values. What is of the wrong kind it says, and leaves out;
// what the plan's check would say about the gap is not said again.
type planReader struct {
	*workflowFaults
	source  []byte
	spoiled map[spot]bool
}

// spot is a field of a step; empty: the step as a whole.
type spot struct {
	step  int
	field string
}

func (r *planReader) plan(root *yamlNode) workflow.Plan {
	r.keys(root, -1, "", workflowKeys)
	p := workflow.Plan{Name: r.text(root, -1, "", "name"), Description: r.text(root, -1, "", "description")}
	steps := root.get("steps")
	if steps == nil || steps.kind == yamlNull {
		return p
	}
	if steps.kind != yamlList {
		r.wrongKind(steps, -1, "steps", "steps", "a list of steps")
		return p
	}
	p.Steps = make([]workflow.Step, len(steps.items))
	for i, n := range steps.items {
		if n.kind != yamlObject {
			r.spoiled[spot{i, ""}] = true
			r.add(n.place, stepPath(i, ""), "is "+kindWords[n.kind]+"; a step is a mapping with an id")
			continue
		}
		p.Steps[i] = r.step(i, n)
	}
	return p
}

func (r *planReader) step(i int, n *yamlNode) workflow.Step {
	at := stepPath(i, "")
	if id := n.get("id"); id != nil && (id.kind == yamlText || id.kind == yamlNumber) {
		at = stepPath(i, id.text)
	}
	r.keys(n, i, at, stepKeys)
	s := workflow.Step{
		ID: workflow.StepID(r.text(n, i, at, "id")), Agent: r.text(n, i, at, "agent"), Prompt: r.text(n, i, at, "prompt"),
		LoopBackTo: workflow.StepID(r.text(n, i, at, "loop_back_to")), Ask: workflow.Ask(r.text(n, i, at, "ask")),
		When: r.condition(n, i, at, "when"), Model: r.text(n, i, at, "model"), Human: r.truth(n, i, at, "human_in_the_loop"),
		Command: r.texts(n, i, at, "command"), Gates: r.texts(n, i, at, "gates"),
		Needs: ids(r.texts(n, i, at, "needs")), NextOnSuccess: ids(r.texts(n, i, at, "next_on_success")),
		Timeout: r.duration(n, i, at, "timeout"), Metadata: r.object(n, i, at, "metadata"), InputSchema: r.object(n, i, at, "input_schema"),
	}
	if loop := n.get("loop"); loop != nil && loop.kind != yamlNull {
		s.Loop = r.loop(i, at+".loop", loop)
	}
	return s
}

func (r *planReader) loop(i int, at string, n *yamlNode) *workflow.Loop {
	if n.kind != yamlObject {
		r.wrongKind(n, i, "loop", at, "a mapping")
		return nil
	}
	r.keys(n, i, at, loopKeys)
	l := &workflow.Loop{
		ItemsFromStep: workflow.StepID(r.loopText(n, i, at, "items_from_step")), ItemsFromArtifact: r.loopText(n, i, at, "items_from_artifact"),
		ItemVar: r.loopText(n, i, at, "item_var"), IndexVar: r.loopText(n, i, at, "index_var"),
	}
	if c := n.get("until_condition"); c != nil {
		l.UntilCondition = r.conditionOf(c, i, "loop.until_condition", at+".until_condition")
	}
	if m := n.get("max_iterations"); m != nil && m.kind != yamlNull {
		number, err := strconv.Atoi(m.text)
		if m.kind != yamlNumber || err != nil {
			r.wrongKind(m, i, "loop.max_iterations", at+".max_iterations", "a whole number")
		}
		l.MaxIterations = number
	}
	items := n.get("items")
	switch {
	case items == nil || items.kind == yamlNull:
	case items.kind != yamlList:
		r.wrongKind(items, i, "loop.items", at+".items", "a list")
		r.spoiled[spot{i, "loop"}] = true
	default:
		l.Items = make([]string, 0, len(items.items))
		for k, item := range items.items {
			text, where, fault := yamlJSON(item)
			if fault != "" {
				r.add(where, fmt.Sprintf("%s.items[%d]", at, k), fault)
				text = "null"
			}
			l.Items = append(l.Items, text)
		}
	}
	return l
}

// keys looks for fields that nobody knows: most often they are misspelt.
func (r *planReader) keys(n *yamlNode, i int, at string, known []string) {
	for _, f := range n.fields {
		found := false
		for _, k := range known {
			found = found || k == f.name
		}
		if found {
			continue
		}
		path := shorten(f.name, 64)
		if at != "" {
			path = at + "." + path
		}
		text := "is no field of it; it has " + strings.Join(known, ", ")
		if near := nearest(f.name, known); near != "" {
			text = "is no field of it; " + near + " is meant?"
			r.spoiled[spot{i, near}] = true
		}
		r.add(f.place, path, text)
	}
}

func (r *planReader) wrongKind(n *yamlNode, i int, field, path, want string) {
	r.spoiled[spot{i, field}] = true
	if n.kind != yamlBroken { // that was said
		r.add(n.place, path, "is "+kindWords[n.kind]+"; it takes "+want)
	}
}

func (r *planReader) loopText(n *yamlNode, i int, at, name string) string {
	if f := n.get(name); f != nil {
		return r.textOf(f, i, "loop."+name, at+"."+name)
	}
	return ""
}

func (r *planReader) text(n *yamlNode, i int, at, name string) string {
	path := name
	if at != "" {
		path = at + "." + name
	}
	if f := n.get(name); f != nil {
		return r.textOf(f, i, name, path)
	}
	return ""
}

// textOf reads a text. A number or a truth is taken as it was written: an id may be 7.
func (r *planReader) textOf(n *yamlNode, i int, field, path string) string {
	switch n.kind {
	case yamlText, yamlNumber, yamlBool:
		return n.text
	case yamlNull:
		return ""
	}
	r.wrongKind(n, i, field, path, "a text")
	return ""
}

func (r *planReader) condition(n *yamlNode, i int, at, name string) string {
	if f := n.get(name); f != nil {
		return r.conditionOf(f, i, name, at+"."+name)
	}
	return ""
}

// conditionOf reads a condition: `when:` with nothing behind it is a condition that was
// forgotten, and not one that always holds.
func (r *planReader) conditionOf(n *yamlNode, i int, field, path string) string {
	text := r.textOf(n, i, field, path)
	if strings.TrimSpace(text) == "" && !r.spoiled[spot{i, field}] {
		r.spoiled[spot{i, field}] = true
		r.add(n.place, path, "is empty; say what is to be true, or leave it out")
		return ""
	}
	return text
}

func (r *planReader) truth(n *yamlNode, i int, at, name string) bool {
	f := n.get(name)
	if f == nil || f.kind == yamlNull {
		return false
	}
	if f.kind != yamlBool {
		r.wrongKind(f, i, name, at+"."+name, "true or false")
	}
	return f.kind == yamlBool && strings.EqualFold(f.text, "true")
}

// texts reads a list of texts.
func (r *planReader) texts(n *yamlNode, i int, at, name string) []string {
	f := n.get(name)
	if f == nil || f.kind == yamlNull {
		return nil
	}
	if f.kind != yamlList {
		r.wrongKind(f, i, name, at+"."+name, "a list: ["+shorten(f.text, 40)+"]")
		if name == "command" {
			r.spoiled[spot{i, "agent"}] = true // there is something to be done, only not in this form
		}
		return nil
	}
	var list []string
	for k, item := range f.items {
		switch item.kind {
		case yamlText, yamlNumber, yamlBool:
			list = append(list, item.text)
		default:
			r.wrongKind(item, i, name, fmt.Sprintf("%s.%s[%d]", at, name, k), "a text")
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
func (r *planReader) object(n *yamlNode, i int, at, name string) string {
	f := n.get(name)
	if f == nil || f.kind == yamlNull {
		return ""
	}
	if f.kind != yamlObject {
		r.wrongKind(f, i, name, at+"."+name, "a mapping")
		return ""
	}
	text, where, fault := yamlJSON(f)
	if fault != "" {
		r.spoiled[spot{i, name}] = true
		r.add(where, at+"."+name, fault)
		return ""
	}
	return text
}

// duration reads 90s, 10m or 2h; a bare number is seconds.
func (r *planReader) duration(n *yamlNode, i int, at, name string) time.Duration {
	f := n.get(name)
	if f == nil || f.kind == yamlNull {
		return 0
	}
	switch f.kind {
	case yamlNumber:
		if s, err := strconv.ParseFloat(f.text, 64); err == nil && s >= 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
	case yamlText:
		if d, err := time.ParseDuration(f.text); err == nil {
			return d
		}
	}
	r.wrongKind(f, i, name, at+"."+name, "a time, like 90s, 10m or 2h")
	return 0
}

// nodeOf finds a field of a step.
func (r *planReader) nodeOf(root *yamlNode, i int, field string) *yamlNode {
	n := root.get("steps").items[i]
	for name := range strings.SplitSeq(field, ".") {
		n = n.get(name)
	}
	return n
}

// inText finds the place of a letter of a text in the file: line and column of the text, from 1.
// Where the file does not show the text as it is (a folded block, escapes) it gives the place
// where the text begins, and false.
func (r *planReader) inText(n *yamlNode, line, column int) (place, bool) {
	lines := bytes.Split(r.source, []byte("\n"))
	texts := strings.Split(n.text, "\n")
	if line < 1 || line > len(texts) {
		return n.place, false
	}
	text := texts[line-1]
	at := n.place
	switch {
	case n.style&yaml.LiteralStyle != 0:
		at.line += line
		if at.line > len(lines) {
			return n.place, false
		}
		shown := string(lines[at.line-1])
		indent := strings.Index(shown, text)
		if text == "" || indent < 0 || strings.TrimSpace(shown[:indent]) != "" {
			return n.place, false
		}
		at.column = indent + column
		return at, true
	case n.style&yaml.FoldedStyle != 0 || len(texts) > 1:
		return n.place, false
	case n.style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		at.column++
	}
	if at.line > len(lines) {
		return n.place, false
	}
	shown := []rune(string(lines[at.line-1]))
	if at.column-1 > len(shown) || !strings.HasPrefix(string(shown[at.column-1:]), text) {
		return n.place, false
	}
	at.column += column - 1
	return at, true
}

// nearest is the known word that a misspelt one is nearest to; empty: none is near.
func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters are to be put in, taken out or exchanged.
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
