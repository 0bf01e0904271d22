package team

import (
	"testing"
	"time"
)

// The time is that of the first report with a code; an empty code is the end, and no report is no news.
func TestNextProvider(t *testing.T) {
	first, later := time.Unix(100, 0).UTC(), time.Unix(200, 0).UTC()
	cut := func(s string) string { return s[:min(len(s), 3)] }
	network := &Provider{Code: "net", Why: "a", Since: first}
	for name, c := range map[string]struct{ said, was, want *Provider }{
		"nothing":      {nil, network, nil},
		"first":        {&Provider{Code: "network", Why: "words"}, nil, &Provider{Code: "net", Why: "wor", Since: later}},
		"the same":     {&Provider{Code: "net", Why: "b"}, network, &Provider{Code: "net", Why: "b", Since: first}},
		"another":      {&Provider{Code: "key"}, network, &Provider{Code: "key", Since: later}},
		"it answers":   {&Provider{Why: "x", Since: first}, network, &Provider{}},
		"no own times": {&Provider{Code: "key", Since: first}, nil, &Provider{Code: "key", Since: later}},
	} {
		got := c.said.Next(c.was, later, cut)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got != nil && (got.Standing() == nil) != (got.Code == "") {
			t.Errorf("%s stands: %+v", name, got.Standing())
		}
	}
}
