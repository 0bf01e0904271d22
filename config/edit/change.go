package edit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

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
	return fmt.Sprintf("fairlead.yaml has no agent %q", n.Name)
}

// Apply returns the text of the file after a change. It does not check the settings: config.Parse does.
func Apply(b []byte, c Change) ([]byte, error) {
	was, there, err := Describe(b, c.Name)
	out := b
	switch {
	case err != nil:
		return nil, err
	case c.Op == Add && there:
		return nil, &Refused{fmt.Sprintf("fairlead.yaml has an agent %q already; choose another name, or edit that agent", c.Name)}
	case c.Op != Add && !there:
		return nil, &NoSuchAgent{c.Name}
	case c.Op == Remove:
		out, err = set(b, []string{"agents", c.Name}, nil)
		if err == nil && was.Lead {
			out, err = set(out, []string{"team", "lead"}, nil)
		}
	default:
		if c.Op == Add {
			out, err = set(b, []string{"agents", c.Name}, &value{node: nodeFrom(&file.YAMLNode{Kind: file.YAMLObject})})
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

// keyed is a key and the value that a form gives it.
type keyed struct {
	path []string // from the root of the file
	*value
}

func (k keyed) equal(other keyed) bool {
	return inline(k.node) == inline(other.node) && slices.Equal(k.written, other.written)
}

// valuesOf returns the keys of an agent that a form gives a value, in the order in which they are written.
func valuesOf(name string, a Agent) (all []keyed, err error) {
	give := func(v *value, path ...string) {
		if v != nil {
			all = append(all, keyed{append([]string{"agents", name}, path...), v})
		}
	}
	for _, f := range fields {
		if f.path[0] != "env" {
			give(valueOf(reflect.ValueOf(a).Field(f.index).Interface()), f.path...)
		}
	}
	for _, variable := range a.Env {
		give(valueOf("${"+variable+"}"), "env", variable)
	}
	parts, err := readRest(name, a.Rest)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.path[0] == "sandbox" && a.Sandbox != "" {
			twice := config.Fault{
				File: RestName, Path: "agents." + name + ".sandbox",
				Text: "is given twice: in its field, and as a mapping among the other keys; keep one",
			}
			return nil, &config.Faults{List: []config.Fault{twice}}
		}
		give(&value{node: p.node, written: p.lines}, p.path...)
	}
	if a.Lead {
		all = append(all, keyed{[]string{"team", "lead"}, valueOf(name)})
	}
	return all, nil
}

// fill gives an agent's entry the values of a form, as far as they differ from what was. Keys are removed last, so that a mapping
// that gets other keys keeps its place.
func fill(b []byte, name string, was, now Agent) ([]byte, error) {
	old, err := valuesOf(name, was)
	if err != nil {
		return nil, byHand("agents.%s: %s", name, err)
	}
	all, err := valuesOf(name, now)
	if err != nil {
		return nil, err
	}
	find := func(list []keyed, k keyed) int {
		return slices.IndexFunc(list, func(other keyed) bool { return slices.Equal(other.path, k.path) })
	}
	for _, k := range all {
		if i := find(old, k); i < 0 || !old[i].equal(k) {
			if b, err = set(b, k.path, k.value); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range old {
		if find(all, k) < 0 {
			if b, err = set(b, k.path, nil); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// unharmed compares the trees before and after a change: all that the change is not about has the same value.
func unharmed(before, after []byte, c Change) error {
	was, err := config.Tree(before)
	if err != nil {
		return err
	}
	now, err := config.Tree(after)
	if err != nil {
		return err
	}
	harmed := byHand("the change would alter other parts of the file")
	variables := now.Get("agents").Get(c.Name).Get("env") // the form does not have their values
	if env := was.Get("agents").Get(c.Name).Get("env"); env != nil && c.Op == Edit {
		for _, f := range env.Fields {
			if slices.Contains(c.Agent.Env, f.Name) && !same(f.Value, variables.Get(f.Name)) {
				return harmed
			}
		}
	}
	for _, root := range []*file.YAMLNode{was, now} {
		drop(root, "agents", c.Name)
		drop(root, "team", "lead")
	}
	if !same(was, now) {
		return harmed
	}
	got, there, err := Describe(after, c.Name)
	switch {
	case err != nil:
		return err
	case there == (c.Op == Remove):
		return harmed
	case c.Op != Remove && !equal(got, c.Agent):
		return byHand("the change of agents.%s cannot be written into the text as it is", c.Name)
	}
	return nil
}

// drop takes the key at a path out of a tree, and the mappings that are empty then.
func drop(n *file.YAMLNode, path ...string) {
	f := n.Field(path[0])
	if f == nil {
		return
	}
	if len(path) > 1 {
		drop(f.Value, path[1:]...)
	}
	if len(path) == 1 || len(f.Value.Fields) == 0 {
		n.Fields = slices.DeleteFunc(n.Fields, func(other file.YAMLField) bool { return other.Name == path[0] })
	}
}

// equal reports whether a form was written as it was given. The order of variables and of the other keys, and the
// comments among them, are those of the file.
func equal(got, want Agent) bool {
	plain := func(a Agent) (*file.YAMLNode, string) {
		rest, err := config.Tree([]byte(a.Rest))
		if err != nil {
			rest = &file.YAMLNode{Kind: file.YAMLObject} // there are no other keys
		}
		drop(rest, "permissions", "") // if it is empty, it says nothing
		drop(rest, "limits", "")
		a.Rest, a.Env = "", slices.Sorted(slices.Values(a.Env))
		return rest, fmt.Sprintf("%q", []any{a})
	}
	gotRest, gotFields := plain(got)
	wantRest, wantFields := plain(want)
	return gotFields == wantFields && same(gotRest, wantRest)
}
