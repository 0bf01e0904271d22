package policy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// boundCase is one line of bounds.txt. The file's head explains the format.
type boundCase struct {
	permissionCase
	bounds policy.Rules
}

func boundCases(t testing.TB) []boundCase {
	t.Helper()
	text, err := os.ReadFile("testdata/bounds.txt")
	if err != nil {
		t.Fatal(err)
	}
	more := func(list []string, entry string) []string {
		list = append([]string{}, list...) // present, and perhaps empty
		if entry != "" {
			list = append(list, entry)
		}
		return list
	}
	var all []boundCase
	var holds boundCase
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if words, ok := strings.CutPrefix(line, "@"); ok {
			verb, rest, _ := strings.Cut(words, " ")
			switch verb {
			case "none":
				holds = boundCase{}
			case "allow":
				holds.allow = more(holds.allow, rest)
			case "deny":
				holds.deny = more(holds.deny, rest)
			case "paths":
				holds.paths = strings.Fields(rest)
			case "can_write":
				holds.bounds.CanWrite = more(holds.bounds.CanWrite, rest)
			case "cannot_write":
				holds.bounds.CannotWrite = more(holds.bounds.CannotWrite, rest)
			case "can_execute":
				holds.bounds.CanExecute = more(holds.bounds.CanExecute, rest)
			case "cannot_execute":
				holds.bounds.CannotExecute = more(holds.bounds.CannotExecute, rest)
			default:
				t.Fatalf("bounds.txt:%d: no such line: %s", i+1, line)
			}
			continue
		}
		c := holds
		c.line, c.text = i+1, line
		rest, attempt := strings.CutPrefix(line, "! ")
		c.attempt = attempt
		fields := strings.SplitN(rest, " ", 3)
		if len(fields) < 3 {
			t.Fatalf("bounds.txt:%d: not [!] VERDICT TOOL ARGUMENT: %s", i+1, line)
		}
		c.verdict = fields[0]
		c.call = policytest.Case{Tool: fields[1], Arg: strings.ReplaceAll(fields[2], "⏎", "\n")}
		all = append(all, c)
	}
	return all
}

func (c boundCase) book(t testing.TB, s policytest.Scene) policy.Permissions {
	expand := func(list []string, executes bool) []string {
		if list == nil {
			return nil
		}
		out := []string{}
		for _, entry := range list {
			entry = s.Expand(entry)
			if err := policy.ParseBound(entry, executes); err != nil {
				t.Errorf("bounds.txt:%d: %v", c.line, err)
			}
			out = append(out, entry)
		}
		return out
	}
	return policy.Permissions{
		Allow: c.patterns(t, s, c.allow), Deny: c.patterns(t, s, c.deny),
		Bounds: policy.Rules{
			CanWrite: expand(c.bounds.CanWrite, false), CannotWrite: expand(c.bounds.CannotWrite, false),
			CanExecute: expand(c.bounds.CanExecute, true), CannotExecute: expand(c.bounds.CannotExecute, true),
		},
	}
}

// Every line of the table (D8, D9, X10).
func TestBounds(t *testing.T) {
	cases := boundCases(t)
	attempts := 0
	for _, c := range cases {
		if c.attempt {
			attempts++
		}
	}
	if len(cases) < 200 || attempts*3 < len(cases) {
		t.Errorf("%d calls, %d of them attempts; there should be 200, a third of them attempts", len(cases), attempts)
	}
	t.Logf("%d calls, %d of them attempts", len(cases), attempts)
	scene := policytest.Build(t)
	for _, c := range cases {
		got, rule, doubt := c.book(t, scene).Answer(c.call1(scene), c.expanded(scene), workspaceOf(scene), dispatchfolder.Disk{})
		switch {
		case strings.HasPrefix(rule, "X10: "):
			got = "X10"
		case strings.HasPrefix(rule, "bounds: "):
			got = "out"
		case doubt != "":
			got = "doubt"
		case got == "":
			got = "ask"
		}
		if got != c.verdict {
			t.Errorf("bounds.txt:%d: %s\n\tis %s (%s%s); bounds %q", c.line, c.text, got, rule, doubt, c.bounds)
		}
	}
}

// FuzzBounds checks that every entry is valid or gives a one-line error, that bounds only take permissions
// away, and that an allowed command does not run a program of cannot_execute in any place that a simple
// reading sees.
func FuzzBounds(f *testing.F) {
	scene := policytest.Build(f)
	disk, where := dispatchfolder.Disk{}, workspaceOf(scene)
	for _, c := range boundCases(f) {
		for _, entry := range slices.Concat(c.bounds.CanWrite, c.bounds.CannotWrite, c.bounds.CanExecute, c.bounds.CannotExecute) {
			f.Add(entry, c.call.Tool, string(c.input(scene)))
		}
	}
	all := patterns(f, "*", "Bash(*)")
	f.Fuzz(func(t *testing.T, entry, tool, input string) {
		call := policy.Call{Tool: tool, Input: json.RawMessage(input), Dir: scene.Repo}
		free, _, _ := policy.Permissions{Allow: all}.Answer(call, nil, where, disk)
		for i, bounds := range []policy.Rules{
			{CanWrite: []string{entry}},
			{CannotWrite: []string{entry}},
			{CanExecute: []string{entry}},
			{CannotExecute: []string{entry}},
		} {
			if err := policy.ParseBound(entry, i > 1); err != nil {
				if words := err.Error(); words == "" || strings.ContainsAny(words, "\n\x00\x1b") {
					t.Errorf("%q is refused by %q", entry, words)
				}
				continue
			}
			within, rule, doubt := policy.Permissions{Allow: all, Bounds: bounds}.Answer(call, nil, where, disk)
			if within == "allow" && free != "allow" || within == "" && free == "deny" {
				t.Errorf("%q with %+v is %q by %q, and without bounds %q", input, bounds, within, rule, free)
			}
			if strings.ContainsFunc(rule+doubt, unicode.IsControl) && !strings.HasPrefix(rule, "X10") {
				t.Errorf("%q is told in more than a line: %q", input, rule+doubt)
			}
		}
		bounds := policy.Rules{CannotExecute: []string{"rm"}}
		if within, rule, _ := (policy.Permissions{Allow: all, Bounds: bounds}).Answer(call, nil, where, disk); within == "allow" &&
			tool == "Bash" && runs(input, "rm") {
			t.Errorf("%q is allowed by %q, and runs rm", input, rule)
		}
	})
}

// runs reports whether a simple reading of a command finds a program.
func runs(input, program string) bool {
	var call struct{ Command string }
	if json.Unmarshal([]byte(input), &call) != nil {
		return false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(call.Command), "")
	if err != nil {
		return false
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == program {
			found = true
		}
		return !found
	})
	return found
}
