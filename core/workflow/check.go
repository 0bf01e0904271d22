package workflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Fault is one error in a plan. It names the position, so that the reader of a file can add line and
// column.
type Fault struct {
	Step  int    // index into Steps; -1: the workflow itself
	ID    StepID // of that step, as written
	Field string // the YAML key; empty: the step as a whole
	Item  int    // index in the field if it is a list; otherwise -1
	Fault string // description, with a solution
}

func (f *Fault) Error() string {
	place := "workflow"
	if f.Step >= 0 {
		place = fmt.Sprintf("step %d", f.Step+1)
		if f.ID != "" {
			place = "step " + string(f.ID)
		}
	}
	if f.Field != "" {
		place += ", " + f.Field
	}
	if f.Item >= 0 {
		place += fmt.Sprintf("[%d]", f.Item)
	}
	return place + ": " + f.Fault
}

// Check lists all structural errors of a plan, in the order of the steps; none: the plan can be run.
// At 1,000 errors the list ends with a note. Prompts and conditions are not checked.
func (p *Plan) Check() []Fault {
	c := &checker{plan: p, at: make(map[StepID]int, len(p.Steps)), gated: map[string]bool{}}
	switch {
	case p.Name == "":
		c.workflow("name", "is missing")
	case len(p.Name) > nameBytesMax:
		c.workflow("name", tooLong(len(p.Name), nameBytesMax))
	case !utf8.ValidString(p.Name):
		c.workflow("name", "is no UTF-8")
	}
	if len(p.Description) > textBytesMax {
		c.workflow("description", tooLong(len(p.Description), textBytesMax))
	}
	switch {
	case len(p.Steps) == 0:
		c.workflow("steps", "there is none; a workflow has one at least")
	case len(p.Steps) > stepsMax:
		c.workflow("steps", fmt.Sprintf("%d, %d at most; split the workflow", len(p.Steps), stepsMax))
		return c.faults
	}
	c.names()
	for i := range p.Steps {
		c.step(i, &p.Steps[i])
	}
	if len(c.gated) > gateNamesMax {
		c.workflow("steps", fmt.Sprintf("they wait for %d gates, %d at most", len(c.gated), gateNamesMax))
	}
	if c.bytes > planBytesMax {
		c.workflow("steps", tooLong(c.bytes, planBytesMax))
	}
	c.waits()
	return c.faults
}

// Check lists the errors in the flags of a run, one sentence each.
func (o Options) Check() []string {
	var faults []string
	in := func(name string, n, least, most int) {
		if n < least || n > most {
			faults = append(faults, fmt.Sprintf("%s is %d; take a number from %d to %d", name, n, least, most))
		}
	}
	in("max-attempts", o.MaxAttempts, 1, attemptsMax)
	in("max-iterations", o.MaxIterations, 0, iterationsMax)
	in("side-by-side", o.SideBySide, 1, sideBySideMax)
	if o.BackoffFirst < 0 || o.BackoffMax < o.BackoffFirst || o.BackoffMax > backoffMax {
		faults = append(faults,
			fmt.Sprintf("back-off from %s to %s; take two times from 0 to %s, the shorter one first", o.BackoffFirst, o.BackoffMax,
				backoffMax))
	}
	return faults
}

type checker struct {
	plan   *Plan
	at     map[StepID]int // first step with each name
	faults []Fault
	bytes  int // size of all steps in the journal
	gated  map[string]bool
}

func tooLong(n, most int) string {
	return fmt.Sprintf("%d bytes, %d at most; keep big things in a file", n, most)
}

func (c *checker) workflow(field, fault string) {
	c.faults = append(c.faults, Fault{Step: -1, Field: field, Item: -1, Fault: fault})
}

func (c *checker) fault(i int, field string, item int, format string, args ...any) {
	f := Fault{Step: i, ID: c.plan.Steps[i].ID, Field: field, Item: item, Fault: fmt.Sprintf(format, args...)}
	switch {
	case len(c.faults) < faultsMax:
		c.faults = append(c.faults, f)
	case len(c.faults) == faultsMax:
		c.workflow("", fmt.Sprintf("more than %d faults; fix these first", faultsMax))
	}
}

// names checks the steps' IDs. They become file names, also on file systems that ignore case.
func (c *checker) names() {
	folded := make(map[string]StepID, len(c.plan.Steps))
	for i := range c.plan.Steps {
		id := c.plan.Steps[i].ID
		if fault := idFault(string(id), idBytesMax); fault != "" {
			c.fault(i, "id", -1, "%s", fault)
		}
		low := strings.ToLower(string(id))
		switch other, taken := folded[low]; {
		case !taken || id == "":
			folded[low], c.at[id] = id, i
		case other == id:
			c.fault(i, "id", -1, "%q is step %d already; ids are given once", id, c.at[id]+1)
		default:
			c.fault(i, "id", -1, "%q differs from %q only in case; both would have the same files", id, other)
		}
	}
}

// idFault returns what is wrong with an ID that becomes part of file names.
func idFault(id string, bytesMax int) string {
	if id == "" {
		return "is missing"
	}
	fault := ""
	if len(id) > bytesMax {
		fault = fmt.Sprintf("%d bytes, %d at most; it becomes part of file names", len(id), bytesMax)
	}
	for i := range len(id) {
		c := id[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !word && (i == 0 || c != '-' && c != '.') {
			if fault != "" {
				fault += "; "
			}
			return fault +
				fmt.Sprintf("%q: a name is made of letters, digits, _ - and ., and begins with a letter, a digit or _",
					clip.Text(id, nameBytesMax))
		}
	}
	return fault
}

func (c *checker) step(i int, s *Step) {
	if s.Agent == "" && len(s.Command) == 0 && !(s.Ordered && s.Human) {
		c.fault(i, "agent", -1, "is missing; name an agent, or give a command")
	}
	if s.Agent != "" && s.Prompt == "" && len(s.Command) == 0 {
		c.fault(i, "prompt", -1, "is missing; say what %s is to do", s.Agent)
	}
	for field, text := range map[string]string{"agent": s.Agent, "model": s.Model} {
		c.text(i, field, text, nameBytesMax)
	}
	c.text(i, "prompt", s.Prompt, textBytesMax)
	c.text(i, "when", s.When, textBytesMax)
	c.json(i, "metadata", s.Metadata)
	c.json(i, "input_schema", s.InputSchema)
	c.refers(i, "needs", s.Needs)
	c.refers(i, "next_on_success", s.NextOnSuccess)
	c.gates(i, s)
	if s.Ask != "" && s.Ask != AskAfter && s.Ask != AskBefore {
		c.fault(i, "ask", -1, "%q; take after or before", s.Ask)
	}
	if s.Ask != "" && !s.Human {
		c.fault(i, "ask", -1, "no person is asked; add human_in_the_loop: true")
	}
	if s.InputSchema != "" && !s.Human {
		c.fault(i, "input_schema", -1, "no person is asked; add human_in_the_loop: true")
	}
	if s.Timeout < 0 || s.Timeout > timeoutMax {
		c.fault(i, "timeout", -1, "%s; take a time from 0, which is none, to %s", s.Timeout, timeoutMax)
	}
	if s.MaxAttempts < 0 || s.MaxAttempts > attemptsMax {
		c.fault(i, "max_attempts", -1, "%d; take a number from 1 to %d", s.MaxAttempts, attemptsMax)
	}
	if s.Timeout > 0 && s.Timeout < time.Millisecond {
		c.fault(i, "timeout", -1, "%s; a process takes longer to begin", s.Timeout)
	}
	if s.Loop != nil {
		c.loop(i, s.Loop)
	}
	size := jsonBytes(s)
	if c.bytes += size; size > stepBytesMax {
		c.fault(i, "", -1, "%s", tooLong(size, stepBytesMax))
	}
}

func (c *checker) text(i int, field, text string, bytesMax int) {
	if len(text) > bytesMax {
		c.fault(i, field, -1, "%s", tooLong(len(text), bytesMax))
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		c.fault(i, field, -1, "is not text: it has a zero byte, or is not UTF-8")
	}
}

func (c *checker) json(i int, field, text string) {
	switch {
	case len(text) > jsonBytesMax:
		c.fault(i, field, -1, "%s", tooLong(len(text), jsonBytesMax))
	case text != "" && !json.Valid([]byte(text)):
		c.fault(i, field, -1, "is no JSON")
	}
}

// refers checks a list of other steps.
func (c *checker) refers(i int, field string, ids []StepID) {
	if len(ids) > needsMax {
		c.fault(i, field, -1, "%d steps, %d at most; gather them in a step between", len(ids), needsMax)
		return
	}
	seen := make(map[StepID]bool, len(ids))
	for n, id := range ids {
		_, known := c.at[id]
		switch {
		case !known:
			c.fault(i, field, n, "no step is called %q", id)
		case id == c.plan.Steps[i].ID:
			c.fault(i, field, n, "names its own step")
		case seen[id]:
			c.fault(i, field, n, "%q is named twice", id)
		}
		seen[id] = true
	}
}

func (c *checker) gates(i int, s *Step) {
	if len(s.Gates) > gatesMax {
		c.fault(i, "gates", -1, "%d, %d at most", len(s.Gates), gatesMax)
	}
	for n, gate := range s.Gates {
		c.gated[gate] = true
		if gate == "" || len(gate) > nameBytesMax || !utf8.ValidString(gate) {
			c.fault(i, "gates", n, "%q; a gate is a name of 1 to %d bytes", gate, nameBytesMax)
		}
	}
	if s.LoopBackTo == "" {
		return
	}
	switch _, known := c.at[s.LoopBackTo]; {
	case !known:
		c.fault(i, "loop_back_to", -1, "no step is called %q", s.LoopBackTo)
	case s.LoopBackTo == s.ID:
		c.fault(i, "loop_back_to", -1, "names its own step; a step that fails is tried again by itself")
	}
}

func (c *checker) loop(i int, l *Loop) {
	given := 0
	for _, is := range []bool{l.Items != nil, l.ItemsFromStep != "", l.ItemsFromArtifact != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		c.fault(i, "loop", -1, "items, items_from_step and items_from_artifact: take one of them")
	case given == 0 && l.UntilCondition == "":
		c.fault(i, "loop", -1,
			"nothing to go over; give items, items_from_step or items_from_artifact, or until_condition with max_iterations")
	case given == 0 && l.MaxIterations == 0:
		c.fault(i, "loop.max_iterations", -1, "is missing; without items it is what ends a loop whose until_condition never holds")
	}
	if l.MaxIterations < 0 || l.MaxIterations > itemsMax {
		c.fault(i, "loop.max_iterations", -1, "%d; take a number from 0, which is all items, to %d", l.MaxIterations, itemsMax)
	}
	if fault := itemsFault(l.Items); fault != "" {
		c.fault(i, "loop.items", -1, "%s", fault)
	}
	if _, known := c.at[l.ItemsFromStep]; l.ItemsFromStep != "" && !known {
		c.fault(i, "loop.items_from_step", -1, "no step is called %q", l.ItemsFromStep)
	}
	c.text(i, "loop.items_from_artifact", l.ItemsFromArtifact, textBytesMax)
	c.text(i, "loop.until_condition", l.UntilCondition, textBytesMax)
	for field, name := range map[string]string{"loop.item_var": l.ItemVar, "loop.index_var": l.IndexVar} {
		if fault := idFault(name, idBytesMax); name != "" && (fault != "" || strings.ContainsAny(name, "-.")) {
			c.fault(i, field, -1, "%q; a variable is made of letters, digits and _", name)
		}
	}
	if l.ItemVar != "" && l.ItemVar == l.IndexVar {
		c.fault(i, "loop.index_var", -1, "%q is the item's name already", l.IndexVar)
	}
}

// itemsFault returns what is wrong with the items of a loop, given or found.
func itemsFault(items []string) string {
	if len(items) > itemsMax {
		return fmt.Sprintf("%d items, %d at most; split the work", len(items), itemsMax)
	}
	for n, item := range items {
		if !utf8.ValidString(item) || !json.Valid([]byte(item)) {
			return fmt.Sprintf("item %d is no JSON", n)
		}
	}
	if size := jsonBytes(items); size > itemsBytesMax {
		return fmt.Sprintf("the items take %d bytes, %d at most; let them name files", size, itemsBytesMax)
	}
	return ""
}
