package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli/configure"
	"github.com/fairlead-dev/fairlead/config/edit"
)

func problemOf(t *testing.T, err error) *api.Problem {
	t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) {
		t.Fatalf("%v is no problem", err)
	}
	return p
}

// What was shown is written, once; a change meanwhile, a fault and a broken file are refused, and nothing is written then.
func TestPreviewAndWrite(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	path := filepath.Join(dir, "fairlead.yaml")
	const before = "version: 1\nagents:\n  a: {command: [sh], env: {K: s3cret}}  # first\nchannels:\n  c: {agents: [a]}\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("the file is\n%s\n%v\nwant\n%s", b, err, want)
		}
	}
	write(before)
	loads := 0
	e := &configure.Editor{
		Dir: dir, Lookup: os.LookupEnv,
		Reload:   func(context.Context, api.ReloadBody) ([]string, error) { loads++; return []string{"loaded"}, nil },
		Sessions: func(context.Context, string) []string { return []string{"b-1"} },
	}
	add := &api.AgentChange{Op: "add", Name: "b", Agent: edit.Agent{Command: []string{"true"}, Model: "m"}}
	p, err := e.Preview(ctx, add)
	if err != nil || strings.Contains(p.Diff, "s3cret") || !strings.Contains(p.Diff, "+  b:\n+    command: [\"true\"]\n+    model: m\n") ||
		len(p.Changes) != 1 || p.Changes[0] != "agent b added" {
		t.Fatalf("%+v, %v", p, err)
	}
	is(before)
	add.Sum = p.Sum
	write("# by hand\n" + before)
	if _, err := e.Write(ctx, add); problemOf(t, err).Status != 412 {
		t.Errorf("the file was changed meanwhile: %v", err)
	}
	is("# by hand\n" + before)
	if p, err = e.Preview(ctx, add); err != nil {
		t.Fatal(err)
	}
	add.Sum = p.Sum
	if done, err := e.Write(ctx, add); err != nil || loads != 1 || done.Changes[0] != "loaded" || done.Fault != "" {
		t.Fatalf("%+v, %v, loaded %d times", done, err, loads)
	}
	after := "# by hand\n" + strings.Replace(before, "# first\n", "# first\n  b:\n    command: [\"true\"]\n    model: m\n", 1)
	is(after)
	_, err = e.Preview(ctx, &api.AgentChange{Op: "edit", Name: "b", Agent: edit.Agent{Driver: "exce", Command: []string{"true"}}})
	if p := problemOf(t, err); p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Location != "agents.b.driver" ||
		!strings.Contains(p.Errors[0].Message, "did you mean exec?") {
		t.Errorf("%+v", p)
	}
	_, err = e.Preview(ctx, &api.AgentChange{Op: "remove", Name: "a"})
	if p := problemOf(t, err); p.Status != 422 || !strings.HasPrefix(p.Errors[0].Location, "channels.c.agents") {
		t.Errorf("an agent of a channel is removed: %+v", p)
	}
	if p, err := e.Preview(ctx, &api.AgentChange{Op: "remove", Name: "b"}); err != nil || len(p.Notes) != 1 ||
		!strings.HasPrefix(p.Notes[0], "b-1 is at work") {
		t.Errorf("%+v, %v", p, err)
	}
	if test, err := e.Test(ctx,
		&api.AgentChange{Op: "add", Name: "x", Agent: edit.Agent{Command: []string{"no-such-program"}}}); err != nil || test.OK ||
		!strings.Contains(test.Findings[0].What, "no-such-program") {
		t.Errorf("%+v, %v", test, err)
	}
	is(after)
	write("version: 2\n")
	if _, err := e.Preview(ctx, add); err == nil {
		t.Error("a file with faults is changed")
	}
	is("version: 2\n")
}
