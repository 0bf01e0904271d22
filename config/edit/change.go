package edit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Op is what is done with an agent.
type Op string

// The three changes.
const (
	Add    Op = "add"
	Edit   Op = "edit"
	Remove Op = "remove"
)

// Change is one change of one agent.
type Change struct {
	Op    Op
	Name  string
	Agent Agent // not for Remove
}

// NoSuchAgent says that the file has no agent of this name.
type NoSuchAgent struct{ Name string }

func (n *NoSuchAgent) Error() string {
	return fmt.Sprintf("fairlead.yaml has no agent %s", strconv.Quote(n.Name))
}

// There says that an agent cannot be added, because the file has one of this name.
type There struct{ Name string }

func (t *There) Error() string {
	return fmt.Sprintf("fairlead.yaml has an agent %s already; choose another name, or edit that agent", strconv.Quote(t.Name))
}

// Apply returns the text of the file after a change. It does not check the settings: config.Parse does.
func Apply(b []byte, c Change) ([]byte, error) {
	was, there, err := Describe(b, c.Name)
	out := b
	switch {
	case err != nil:
		return nil, err
	case c.Op == Add && there:
		return nil, &There{c.Name}
	case c.Op != Add && !there:
		return nil, &NoSuchAgent{c.Name}
	case c.Op == Remove:
		out, err = unset(b, []string{"agents", c.Name})
		if err == nil && was.Lead {
			out, err = unset(out, []string{"team", "lead"})
		}
	default:
		if c.Op == Add {
			out, err = set(b, []string{"agents", c.Name}, plain("{}"))
		}
		if err == nil {
			out, err = fill(out, c.Name, was, c.Agent)
		}
	}
	if err == nil {
		err = unharmed(b, out, c)
	}
	if faults, ok := errors.AsType[*config.Faults](err); ok && !(len(faults.List) > 0 && faults.List[0].File == RestName) && readable(b) {
		return nil, byHand("the text of fairlead.yaml would not be valid afterwards (%s)", faults.List[0].Text)
	}
	return out, err
}

func readable(b []byte) bool { _, err := config.Tree(b); return err == nil }

// fill gives an agent's entry the values of a form, as far as they differ from what was.
func fill(b []byte, name string, was, now Agent) ([]byte, error) {
	old, err := readRest(name, was.Rest)
	if err != nil {
		return nil, byHand("agents.%s: %s", name, err)
	}
	rest, err := readRest(name, now.Rest)
	if err != nil {
		return nil, err
	}
	put := func(differs, absent bool, v func() value, path ...string) {
		if err != nil || !differs {
			return
		}
		if path = append([]string{"agents", name}, path...); absent {
			b, err = unset(b, path)
			return
		}
		b, err = set(b, path, v())
	}
	one := func(was, now string, path ...string) {
		put(was != now, now == "", func() value { return text(now) }, path...)
	}
	many := func(was, now []string, path ...string) {
		put(!slices.Equal(was, now), len(now) == 0, func() value { return texts(now) }, path...)
	}
	number := func(was, now float64, path ...string) {
		put(was != now, now == 0, func() value { return plain(strconv.FormatFloat(now, 'f', -1, 64)) }, path...)
	}
	one(was.Description, now.Description, "description")
	one(was.Driver, now.Driver, "driver")
	many(was.Command, now.Command, "command")
	one(was.Script, now.Script, "script")
	one(was.Workspace, now.Workspace, "workspace")
	one(was.Model, now.Model, "model")
	one(was.SessionPrompt, now.SessionPrompt, "session_prompt")
	number(float64(was.Instances), float64(now.Instances), "instances")
	one(was.SessionLimit, now.SessionLimit, "limits", "session")
	number(float64(was.TokensPerDay), float64(now.TokensPerDay), "limits", "tokens_per_day")
	number(was.CostPerDayUSD, now.CostPerDayUSD, "limits", "cost_per_day_usd")
	many(was.CanWrite, now.CanWrite, "permissions", "can_write")
	for _, variable := range was.Env {
		put(!slices.Contains(now.Env, variable), true, nil, "env", variable)
	}
	for _, variable := range now.Env {
		put(!slices.Contains(was.Env, variable), false, func() value {
			return value{flow: `"${` + variable + `}"`, line: "${" + variable + "}"}
		}, "env", variable)
	}
	for _, p := range old {
		gone := !slices.ContainsFunc(rest, func(q part) bool { return slices.Equal(p.path, q.path) })
		put(gone && !(p.path[0] == "sandbox" && now.Sandbox != ""), true, nil, p.path...)
	}
	for _, p := range rest {
		i := slices.IndexFunc(old, func(q part) bool { return slices.Equal(p.path, q.path) })
		put(i < 0 || old[i].text() != p.text(), false, func() value { return value{flow: p.flow, written: p.lines} }, p.path...)
	}
	mapped := slices.ContainsFunc(rest, func(p part) bool { return p.path[0] == "sandbox" })
	if now.Sandbox != "" && mapped {
		return nil, &config.Faults{List: []config.Fault{{File: RestName, Path: "agents." + name + ".sandbox", Text: "is given twice: in its field, and as a mapping among the other keys; keep one"}}}
	}
	if !mapped {
		one(was.Sandbox, now.Sandbox, "sandbox")
	}
	if err == nil && was.Lead != now.Lead {
		if now.Lead {
			b, err = set(b, []string{"team", "lead"}, text(name))
		} else {
			b, err = unset(b, []string{"team", "lead"})
		}
	}
	return b, err
}

// unharmed compares the trees before and after a change: all that the change is not about has the same value.
func unharmed(before, after []byte, c Change) error {
	was, err := config.Tree(before)
	if err != nil {
		return err
	}
	is, err := config.Tree(after)
	if err != nil {
		return err
	}
	harmed := byHand("the change would alter other parts of the file")
	others := func(n *file.YAMLNode, skip ...string) *file.YAMLNode {
		copied := &file.YAMLNode{Kind: file.YAMLObject}
		if n != nil {
			for _, f := range n.Fields {
				if !slices.Contains(skip, f.Name) {
					copied.Fields = append(copied.Fields, f)
				}
			}
		}
		return copied
	}
	switch {
	case !same(others(was, "agents", "team"), others(is, "agents", "team")),
		!same(others(was.Get("team"), "lead"), others(is.Get("team"), "lead")),
		!same(others(was.Get("agents"), c.Name), others(is.Get("agents"), c.Name)):
		return harmed
	}
	got, there, err := Describe(after, c.Name)
	switch {
	case err != nil:
		return err
	case c.Op == Remove && there, c.Op != Remove && !there:
		return harmed
	case c.Op == Remove:
		return nil
	}
	if !equal(got, c.Agent) {
		return byHand("the change of agents.%s cannot be written into the text as it is", c.Name)
	}
	// The values of variables are not in the form.
	for _, f := range fieldsOf(was.Get("agents").Get(c.Name).Get("env")) {
		if slices.Contains(c.Agent.Env, f.Name) && !same(f.Value, is.Get("agents").Get(c.Name).Get("env").Get(f.Name)) {
			return harmed
		}
	}
	return nil
}

func fieldsOf(n *file.YAMLNode) []file.YAMLField {
	if n == nil {
		return nil
	}
	return n.Fields
}

// equal reports whether a form was written as it was given. The order of variables and of the other keys, and the
// comments among them, are those of the file.
func equal(got, want Agent) bool {
	rest := func(a Agent) *file.YAMLNode {
		n, err := config.Tree([]byte(a.Rest))
		if err != nil {
			return &file.YAMLNode{Kind: file.YAMLObject}
		}
		slices.SortFunc(n.Fields, byName)
		if p := n.Get("permissions"); p != nil {
			slices.SortFunc(p.Fields, byName)
		}
		return n
	}
	a, b := rest(got), rest(want)
	if p := b.Get("permissions"); p != nil && p.Kind == file.YAMLNull || p != nil && len(p.Fields) == 0 {
		return true // an empty mapping says nothing
	}
	got.Rest, want.Rest = "", ""
	env := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	sameEnv := slices.Equal(env(got.Env), env(want.Env))
	got.Env, want.Env = nil, nil
	return sameEnv && same(a, b) && fmt.Sprintf("%q", []any{got}) == fmt.Sprintf("%q", []any{want})
}

func byName(a, b file.YAMLField) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}
