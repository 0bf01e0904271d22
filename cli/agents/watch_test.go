package agents

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// What comes between the parts of a line gets a line of its own, and what a tool printed is indented.
func TestPrintedFacts(t *testing.T) {
	part := func(kind driver.FactKind, text string) driver.Fact {
		return driver.Fact{Kind: kind, Text: text, Part: true}
	}
	said := func(text string) driver.Fact { return driver.Fact{Kind: driver.Said, Text: text} }
	usage := driver.Fact{Kind: driver.UsageReported, Usage: change.Usage{InputTokens: 7, OutputTokens: 2}}
	for name, c := range map[string]struct {
		facts []driver.Fact
		want  string
	}{
		"parts": {[]driver.Fact{part(driver.Said, "a"), part(driver.Said, "b"), said("c"), said("")}, "abc\n\n"},
		"usage between": {
			[]driver.Fact{part(driver.Said, "I use too"), usage, part(driver.Said, "l_x."), usage, said(""), said("d")},
			"I use too\nUSED\nl_x.\nUSED\nd\n",
		},
		"usage twice":        {[]driver.Fact{part(driver.Said, "a"), usage, usage, said("b")}, "a\nUSED\nUSED\nb\n"},
		"thought, then said": {[]driver.Fact{part(driver.Thought, "a"), part(driver.Said, "b"), said("c")}, "a\nbc\n"},
		"a result": {
			[]driver.Fact{
				{Kind: driver.ToolCalled, Tool: "Edit", Text: "f"},
				{Kind: driver.Said, Tool: "Edit", Text: "f\n- a\n+ b"},
				{Kind: driver.Said, Tool: "Bash", Text: "\x1b[2J"},
			},
			"> Edit f\n  f\n  - a\n  + b\n  ␛[2J\n",
		},
	} {
		var p factPrinter
		var got strings.Builder
		for _, f := range c.facts {
			got.WriteString(p.line(&cli.App{Out: &strings.Builder{}}, f))
		}
		if got := strings.ReplaceAll(got.String(), "used 7 + 2 tokens, $0.0000", "USED"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
