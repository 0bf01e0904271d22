package condition

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
)

// The structs below are what the language sees. Structs, and not maps: of a struct it knows the
// fields, so that a misspelt one is found while the condition is read.

type stepView struct {
	Status    string            `expr:"status"`
	Iteration int               `expr:"iteration"`
	Attempts  int               `expr:"attempts"`
	Artifacts []string          `expr:"artifacts"`
	Metrics   map[string]metric `expr:"metrics"`
}

type reportView struct {
	Status     string            `expr:"status"`
	GateFailed bool              `expr:"gate_failure"`
	Why        string            `expr:"why"`
	Artifacts  []string          `expr:"artifacts"`
	Metrics    map[string]metric `expr:"metrics"`
}

type whenView struct {
	Steps map[string]stepView `expr:"steps"`
}

type untilView struct {
	Steps  map[string]stepView `expr:"steps"`
	Report reportView          `expr:"report"`
	Item   any                 `expr:"item"`
	Index  int                 `expr:"index"`
}

// metric is a measured value; its zero value means that no report contains it. It is a struct so
// that the language has no operator for it, and every comparison uses our own function.
type metric struct {
	name, value string
	given       bool
}

func (m metric) number() (float64, error) {
	if !m.given {
		return 0, errMissing
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(m.value), 64)
	if err != nil || math.IsNaN(n) {
		return 0, &Fault{Text: fmt.Sprintf("the metric %s is %q, which is no number", cut(m.name), cut(m.value))}
	}
	return n, nil
}

var errMissing = &Fault{Text: `no report gave this metric; ask first whether there is one: "name" in steps.NAME.metrics and …`}

func metricsOf(given map[string]string) map[string]metric {
	all := make(map[string]metric, len(given))
	for name, value := range given {
		all[name] = metric{name, value, true}
	}
	return all
}

// world makes the view of one weighing.
func (c *Condition) world(w World) (any, error) {
	steps := make(map[string]stepView, len(c.steps))
	for _, id := range c.steps {
		s, ok := Step{}, false
		if w.Steps != nil {
			s, ok = w.Steps(id)
		}
		if !ok {
			return nil, &Fault{1, 1, fmt.Sprintf("no step is called %q", cut(id))}
		}
		if len(s.Artifacts) > listMax {
			return nil, &Fault{
				1, 1,
				fmt.Sprintf("step %s has %d artifacts, %d at most can be looked through; let it name a folder", cut(id), len(s.Artifacts),
					listMax),
			}
		}
		steps[id] = stepView{s.Status, s.Iteration, s.Attempts, s.Artifacts, metricsOf(s.Metrics)}
	}
	if c.kind == When {
		return whenView{steps}, nil
	}
	r := w.Report
	if len(r.Artifacts) > listMax {
		return nil, &Fault{
			1, 1,
			fmt.Sprintf("the report has %d artifacts, %d at most can be looked through; let it name a folder", len(r.Artifacts), listMax),
		}
	}
	view := untilView{Steps: steps, Report: reportView{r.Status, r.GateFailed, r.Why, r.Artifacts, metricsOf(r.Metrics)}, Index: w.Index}
	if c.item && w.Item != "" {
		if len(w.Item) > itemBytesMax {
			return nil, &Fault{
				1, 1,
				fmt.Sprintf("the item has %d bytes, %d at most can be looked into; let it name a file", len(w.Item), itemBytesMax),
			}
		}
		if err := json.Unmarshal([]byte(w.Item), &view.Item); err != nil {
			return nil, &Fault{1, 1, "the item is no JSON: " + cut(err.Error())}
		}
	}
	return view, nil
}

// comparisons are the operators that a metric takes, with the name of what they become.
var comparisons = []struct{ sign, name string }{
	{"==", "metric is"},
	{"!=", "metric is not"},
	{"<", "metric below"},
	{"<=", "metric at most"},
	{">", "metric above"},
	{">=", "metric at least"},
}

// options are how the language is set up for a kind of condition.
func options(kind Kind) []expr.Option {
	var env any = whenView{}
	if kind == Until {
		env = untilView{}
	}
	list := []expr.Option{
		expr.Env(env), expr.AsBool(), expr.MaxNodes(2 * nodesMax), // what is patched in counts too
		expr.Function("number", func(args ...any) (any, error) { return args[0].(metric).number() }, new(func(metric) float64)),
		expr.Function("text", func(args ...any) (any, error) {
			m := args[0].(metric)
			if !m.given {
				return nil, errMissing
			}
			return m.value, nil
		}, new(func(metric) string)),
	}
	for _, c := range comparisons {
		types := []any{
			new(func(metric, int) bool), new(func(int, metric) bool), new(func(metric, float64) bool), new(func(float64, metric) bool),
			new(func(metric, metric) bool), new(func(metric, any) bool), new(func(any, metric) bool),
		}
		if c.sign == "==" || c.sign == "!=" {
			types = append(types, new(func(metric, string) bool), new(func(string, metric) bool), new(func(metric, bool) bool),
				new(func(bool, metric) bool))
		}
		list = append(list, expr.Function(c.name, func(args ...any) (any, error) { return compare(c.sign, args[0], args[1]) }, types...),
			expr.Operator(c.sign, c.name))
	}
	return list
}

// compare compares a metric with the value beside it, by that value's type.
func compare(sign string, a, b any) (bool, error) {
	m, left := a.(metric)
	if !left {
		m = b.(metric)
	}
	if !m.given {
		return false, errMissing
	}
	other := b
	if !left {
		other = a
	}
	switch other := other.(type) {
	case string:
		return same(sign, m, m.value == other)
	case bool:
		is, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(m.value)))
		if err != nil {
			return false, &Fault{Text: fmt.Sprintf("the metric %s is %q, which is neither true nor false", cut(m.name), cut(m.value))}
		}
		return same(sign, m, is == other)
	case metric:
		if sign == "==" || sign == "!=" {
			if !other.given {
				return false, errMissing
			}
			if x, err := m.number(); err == nil {
				if y, err := other.number(); err == nil {
					return (x == y) == (sign == "=="), nil
				}
			}
			return same(sign, m, m.value == other.value)
		}
	}
	x, err := numberOf(a)
	if err != nil {
		return false, err
	}
	y, err := numberOf(b)
	if err != nil {
		return false, err
	}
	switch sign {
	case "==":
		return x == y, nil
	case "!=":
		return x != y, nil
	case "<":
		return x < y, nil
	case "<=":
		return x <= y, nil
	case ">":
		return x > y, nil
	default:
		return x >= y, nil
	}
}

func same(sign string, m metric, is bool) (bool, error) {
	switch sign {
	case "==":
		return is, nil
	case "!=":
		return !is, nil
	}
	return false, &Fault{Text: fmt.Sprintf("the metric %s is put in order with something that is no number; take == or !=", cut(m.name))}
}

func numberOf(v any) (float64, error) {
	switch v := v.(type) {
	case metric:
		return v.number()
	case int:
		return float64(v), nil
	case float64:
		return v, nil
	}
	return 0, &Fault{Text: fmt.Sprintf("a metric is compared with %s, which is no number, no text and neither true nor false",
		cut(fmt.Sprint(v)))}
}
