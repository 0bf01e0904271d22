package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
)

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
	for _, word := range []string{
		"init", "up", "down", "demo", "task", "diff", "merge", "ps", "why", "inbox", "channel", "run",
		"dispatch",
	} {
		if !strings.Contains(out.String(), "\n  "+word+" ") {
			t.Errorf("the help does not list %s:\n%s", word, &out)
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
