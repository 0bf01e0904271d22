package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
)

// renamed are the old names of commands, and what each is now.
var renamed = []struct{ old, now string }{
	{"release", "unhold"},
	{"team", "crew"},
	{"team import", "crew import"},
	{"soul", "crew show"},
	{"summon", "crew summon"},
	{"wake", "crew wake"},
	{"sleep", "crew sleep"},
	{"transcript", "crew transcript"},
	{"channels", "channel list"},
	{"say", "channel say"},
	{"grant", "channel grant"},
	{"skip", "channel skip"},
	{"override", "channel override"},
	{"assign", "channel assign"},
	{"remove", "channel remove"},
	{"enable", "channel enable"},
	{"disable", "channel disable"},
	{"runs", "run list"},
	{"runs RUN", "run show RUN"},
	{"runs prune", "run prune"},
	{"resume", "run resume"},
	{"cancel", "run cancel"},
	{"session", "dispatch"},
	{"session start", "dispatch start"},
	{"session input", "dispatch input"},
	{"session delegate", "dispatch delegate"},
	{"session done", "dispatch done"},
	{"session respond", "dispatch respond"},
	{"session status", "dispatch status"},
	{"session list", "dispatch list"},
	{"session end", "dispatch end"},
	{"session log", "dispatch log"},
	{"route", "dispatch route"},
	{"policy", "dispatch policy"},
	{"policy check", "dispatch policy check"},
	{"standing", "question saved"},
	{"standing revoke", "question revoke"},
	{"install claude", "claude install"},
	{"uninstall claude", "claude uninstall"},
}

// wordsFor are arguments with which a command gets past its own checks, in a folder without
// anything. Each has its effect then: the same answer under both names.
var wordsFor = map[string][]string{
	"crew import":           {"nowhere.json"},
	"crew show":             {"Wren"},
	"channel say":           {"reviews", "hello"},
	"channel grant":         {"reviews", "coder"},
	"channel skip":          {"reviews"},
	"channel override":      {"reviews", "--end"},
	"channel assign":        {"reviews", "coder"},
	"channel remove":        {"reviews", "coder"},
	"channel enable":        {"coder"},
	"channel disable":       {"coder"},
	"run prune":             {"--keep", "1"},
	"run resume":            {"r1"},
	"run cancel":            {"r1"},
	"dispatch delegate":     {"coder", "do it"},
	"dispatch input":        {"hello"},
	"dispatch respond":      {"hello"},
	"dispatch route":        {"hello"},
	"dispatch policy check": {"--tool", "Bash", "--input", `{"command":"ls"}`},
	"question revoke":       {"s1"},
	"claude install":        {"--dry-run"},
	"claude uninstall":      {"--dry-run"},
}

// An old name warns on standard error, and does what the new name does: the same output, the same
// exit code, and no other word.
func TestOldVerbs(t *testing.T) {
	t.Parallel()
	for _, r := range renamed {
		t.Run(strings.ReplaceAll(r.old, " ", "-"), func(t *testing.T) {
			now, more := strings.TrimSuffix(r.now, " RUN"), wordsFor[r.now]
			if now != r.now {
				more = []string{"r1"}
			}
			call := func(name string) (int, string, string) {
				var out, errs bytes.Buffer
				dir := t.TempDir()
				words := append(strings.Fields(strings.TrimSuffix(name, " RUN")), more...)
				code := run(append(words, "--dir", dir), strings.NewReader("{}"), &out, &errs)
				return code, strings.ReplaceAll(out.String(), dir, "DIR"), strings.ReplaceAll(errs.String(), dir, "DIR")
			}
			wantCode, wantOut, wantErr := call(now)
			code, out, errs := call(r.old)
			warning := "`fairlead " + r.old + "` is now `fairlead " + r.now + "`; it works for one more release\n"
			errs, warned := strings.CutPrefix(errs, warning)
			if !warned {
				t.Errorf("it does not begin with %q: %s", warning, errs)
			}
			if strings.Contains(wantErr, "usage: ") {
				t.Errorf("the new name was called wrongly: %s", wantErr)
			}
			blank := func(s string) string { // times and names that are made differ
				if strings.Contains(s, "DIR/.claude/agent-state-machine/") {
					return "a dispatch folder"
				}
				s, _, _ = strings.Cut(s, "\nUsage:") // the help of a group names the group
				return strings.ReplaceAll(s, r.old, now)
			}
			if code != wantCode || blank(out) != blank(wantOut) || blank(errs) != blank(wantErr) {
				t.Errorf("exit code %d, not %d\nout: %s\nnot: %s\nerr: %s\nnot: %s", code, wantCode, out, wantOut, errs, wantErr)
			}
		})
	}
}

// A command that is made alone, without the others, has the name in the list and explains itself as it does among all.
func TestCommandAlone(t *testing.T) {
	t.Parallel()
	help := func(root *cobra.Command, name string) string {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{name, "--help"})
		return fmt.Sprint(root.Execute(), out.String())
	}
	all := (&app{&cli.App{}}).root("")
	seen := 0
	for _, group := range verbGroups() {
		for _, verb := range group.verbs {
			seen++
			root := (&app{&cli.App{}}).root(verb.name)
			if below := root.Commands(); len(below) != 1 || below[0].Name() != verb.name {
				t.Fatalf("the root for %q has %d commands", verb.name, len(below))
			}
			if alone, among := help(root, verb.name), help(all, verb.name); alone != among {
				t.Errorf("%s explains itself alone:\n%s\namong all:\n%s", verb.name, alone, among)
			}
		}
	}
	if listed := len(all.Commands()); listed < seen {
		t.Errorf("%d of %d commands are in the help", listed, seen)
	}
}

// Every old name is tested above, and no command has it.
func TestOldNamesAreAllTested(t *testing.T) {
	t.Parallel()
	root := (&app{&cli.App{}}).root("")
	for _, name := range oldNames {
		if !slices.ContainsFunc(renamed, func(r struct{ old, now string }) bool { return r.old == name.old && r.now == name.now }) {
			t.Errorf("`fairlead %s` has a new name, and no row in this test", name.old)
		}
		if cmd, _, err := root.Find(strings.Fields(name.old)); err == nil && cmd != root {
			t.Errorf("`fairlead %s` is an old name and a command", name.old)
		}
	}
}

// A flag before an old name, or between its two words, changes nothing.
func TestOldNameAfterFlags(t *testing.T) {
	t.Parallel()
	a := &app{&cli.App{Err: io.Discard}}
	root := a.root("")
	for _, c := range [][2]string{
		{"--dir . say reviews hello", "--dir . channel say reviews hello"},
		{"--json runs --dir . prune --keep 1", "--json run prune --dir . --keep 1"},
		{"runs --json r1", "run show --json r1"},
		{"runs --dir r1", "run list --dir r1"},
		{"ps runs", "ps runs"},
	} {
		if got := strings.Join(a.present(root, strings.Fields(c[0])), " "); got != c[1] {
			t.Errorf("%s became %s, want %s", c[0], got, c[1])
		}
	}
}

// The first screen is what a newcomer sees: it fits on a terminal, and has the daily commands.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"--help"}, nil, &out, &errs); code != cli.ExitDone {
		t.Fatal(errs.String())
	}
	if n := strings.Count(out.String(), "\n"); n > 80 {
		t.Errorf("the help has %d lines:\n%s", n, &out)
	}
	for _, word := range []string{"init", "up", "down", "demo", "task", "diff", "merge", "ps", "why", "inbox", "channel", "run", "dispatch"} {
		if !strings.Contains(out.String(), "\n  "+word+" ") {
			t.Errorf("the help does not list %s:\n%s", word, &out)
		}
	}
	for _, r := range renamed {
		if strings.Contains(out.String(), "\n  "+r.old+" ") {
			t.Errorf("the help lists %s, which is an old name", r.old)
		}
	}
}

// A subcommand wins over a file of its name; --workflow means the file.
func TestSubcommandBeforeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{"run", "list"}, cli.ExitDone, "no runs"},
		{[]string{"run", "--workflow", "list", "--check"}, cli.ExitUsage, "there is no workflow"},
		{[]string{"run", "nothing.yaml", "--check"}, cli.ExitUsage, "there is no workflow"},
		{[]string{"run", "nothing.yaml", "--workflow", "list"}, cli.ExitUsage, "given twice"},
		{[]string{"run", "one.yaml", "two.yaml"}, cli.ExitUsage, "usage: fairlead run FILE"},
	} {
		var out, errs bytes.Buffer
		code := run(append(c.words, "--dir", dir), nil, &out, &errs)
		if code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%v: exit code %d, not %d: %s%s", c.words, code, c.code, &out, &errs)
		}
	}
}

// Each command explains itself, with an example that can be typed.
func TestEveryCommandHasAnExample(t *testing.T) {
	a := &cli.App{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Name() == "completion" || !sub.Runnable() {
				continue // the shells' own words, and help topics
			}
			if sub.Hidden && sub.GroupID == "" || sub.Name() == "sim" {
				continue // an old name, or moved
			}
			if sub.Example == "" || !strings.Contains(sub.Example, sub.CommandPath()) {
				t.Errorf("`%s` has no example of itself:\n%s", sub.CommandPath(), sub.Example)
			}
			if sub.Long == "" || sub.Short == "" {
				t.Errorf("`%s` is not explained", sub.CommandPath())
			}
			walk(sub)
		}
	}
	walk((&app{a}).root(""))
}
