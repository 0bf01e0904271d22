package server

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/api"
)

const faultsMax = 32 // of one request; a longer list does not help the caller

// inOurWords turns the faults that huma found in a request into a Problem, and shortens the values
// in it. It is a huma.Transformer.
func inOurWords(_ huma.Context, _ string, v any) (any, error) {
	found, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &api.Problem{Title: found.Title, Status: found.Status, Detail: found.Detail}
	for i, e := range found.Errors {
		if i == faultsMax {
			p.Errors = append(p.Errors, api.Fault{Message: fmt.Sprintf("and %d more", len(found.Errors)-i)})
			break
		}
		p.Errors = append(p.Errors, api.Fault{Message: api.Shorten(e.Message), Location: api.Shorten(e.Location), Value: shown(e.Value)})
	}
	if len(p.Errors) > 0 {
		p.Detail = fmt.Sprintf("%s: %s", p.Detail, p.Errors[0].Message)
		if at := p.Errors[0].Location; at != "" {
			p.Detail += " (" + at + ")"
		}
		if more := len(found.Errors) - 1; more > 0 {
			p.Detail += fmt.Sprintf(", and %d more", more)
		}
	}
	return p, nil
}

// shown returns the value if it is small enough for an answer.
func shown(v any) any {
	switch v := v.(type) {
	case nil, bool, float64, int64, uint64:
		return v
	case string:
		return api.Shorten(v)
	default:
		return api.Shorten(fmt.Sprint(v))
	}
}
