package runstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/google/jsonschema-go/jsonschema"
)

// schemaWorkMax bounds how many schemas apply to one value, so that a schema that doubles at each reference
// does not run without end.
const schemaWorkMax = 10_000

// schemaGuard refuses schemas on which a validator would not terminate: a schema that refers to itself for
// the same value overflows the stack of the whole program.
type schemaGuard struct {
	root *jsonschema.Schema
	work map[*jsonschema.Schema]int // work of schemas that were visited; 0: being visited
}

// schemaTypes are the types of JSON Schema.
var schemaTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// guard returns what is wrong with a schema, before the validator runs.
func guard(root *jsonschema.Schema) error {
	g := &schemaGuard{root: root, work: map[*jsonschema.Schema]int{}}
	return g.all(root)
}

// all visits a schema and its subschemas.
func (g *schemaGuard) all(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	if _, err := g.weigh(s); err != nil {
		return err
	}
	for _, child := range slices.Concat(besides(s), deeper(s)) {
		if err := g.all(child); err != nil {
			return err
		}
	}
	return nil
}

// weigh counts the schemas that apply to the same value as s.
func (g *schemaGuard) weigh(s *jsonschema.Schema) (int, error) {
	if n, seen := g.work[s]; seen {
		if n == 0 {
			return 0, fmt.Errorf("it refers to itself without going into the value; put the $ref below properties or items")
		}
		return n, nil
	}
	g.work[s] = 0
	same := besides(s)
	for _, name := range append(slices.Clone(s.Types), s.Type) {
		if name != "" && !slices.Contains(schemaTypes, name) {
			return 0, fmt.Errorf("there is no type %q; there is %s", clip.Text(name, 40), strings.Join(schemaTypes, ", "))
		}
	}
	target, err := g.target(s)
	if err != nil {
		return 0, err
	}
	if target != nil {
		same = append(same, target)
	}
	n := 1
	for _, one := range same {
		more, err := g.weigh(one)
		if err != nil {
			return 0, err
		}
		if n += more; n > schemaWorkMax {
			return 0, fmt.Errorf("more than %d schemas would be asked about one value; make it simpler", schemaWorkMax)
		}
	}
	g.work[s] = n
	return n, nil
}

// target returns the schema that a schema refers to, or nil.
func (g *schemaGuard) target(s *jsonschema.Schema) (*jsonschema.Schema, error) {
	switch {
	case s.DynamicRef != "" || s.ID != "" && s != g.root:
		return nil, fmt.Errorf("$dynamicRef, and $id below the top, are not for schemas of one file; refer to #/$defs/NAME")
	case s.Ref == "":
		return nil, nil
	case s.Ref == "#":
		return g.root, nil
	}
	for prefix, defs := range map[string]map[string]*jsonschema.Schema{"#/$defs/": g.root.Defs, "#/definitions/": g.root.Definitions} {
		if name, ok := strings.CutPrefix(s.Ref, prefix); ok && defs[name] != nil {
			return defs[name], nil
		}
	}
	return nil, fmt.Errorf("$ref %q leads nowhere; refer to #/$defs/NAME in the same file, nothing is fetched", clip.Text(s.Ref, 80))
}

// besides returns the subschemas that apply to the same value.
func besides(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else}, sortedSchemas(s.DependentSchemas),
		sortedSchemas(s.DependencySchemas))
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// deeper returns the subschemas that apply to parts of the value, and those that are only definitions.
func deeper(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(s.PrefixItems, s.ItemsArray, []*jsonschema.Schema{
		s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems, s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties,
		s.ContentSchema,
	}, sortedSchemas(s.Properties), sortedSchemas(s.PatternProperties), sortedSchemas(s.Defs), sortedSchemas(s.Definitions))
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

func sortedSchemas(m map[string]*jsonschema.Schema) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[name])
	}
	return list
}
