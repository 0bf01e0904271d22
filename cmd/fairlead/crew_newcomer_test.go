package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	crewcli "github.com/fairlead-dev/fairlead/cli/crew"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A team is taken to another device as the folder that it is; what is in it and is no document
// is not looked at, and what is none is said to be none.
func TestCrewImportsFolder(t *testing.T) {
	t.Parallel()
	files := crewFiles(quickTimes, "")
	files["away/b.json"] = `{"type":"agent-identity","name":"Mira","gridPosition":1}`
	files["away/a.json"] = `{"type":"agent-identity","name":"Lyra","gridPosition":0,"status":"alive"}`
	files["away/.c.json"] = `{"type":"agent-identity","name":"Hidden","gridPosition":2}`
	files["away/a.json.refused-20261121T141710.089758511Z"] = "kept aside"
	files["away/below/d.json"] = `{"type":"agent-identity","name":"Below","gridPosition":3}`
	files["none/readme.txt"] = "no documents"
	s := newRig(t, files)
	away := filepath.Join(s.dir, "away")
	s.saysCrew(cli.ExitDone, "crew import "+away, "Lyra is in the crew as ", "on seat 0: unknown", "Mira is in the crew as ")
	if view := s.crew(); len(view.Agents) != 2 {
		t.Errorf("they are %+v", view.Agents)
	}
	s.saysCrew(cli.ExitRefused, "crew import "+away, "Lyra", "Mira", "exists already")
	s.saysCrew(cli.ExitFailed, "crew import "+filepath.Join(s.dir, "none"), "none ends in .json", ".fairlead/agents")
	for _, rubbish := range []string{"", "hello", "null", `["a list"]`, `{"name":`} {
		s.put("rubbish.json", rubbish)
		s.saysCrew(cli.ExitFailed, "crew import "+filepath.Join(s.dir, "rubbish.json"), "rubbish.json: this is not an agent's document",
			".fairlead/agents")
	}
}

// An empty name, such as an unset variable in a script, is a usage error.
func TestCrewEmptyName(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles(quickTimes, ""))
	for _, verb := range []string{"wake", "show"} {
		if out, code := s.fairlead("crew", verb, ""); code != cli.ExitUsage || !strings.Contains(out, "`fairlead crew` lists the names") {
			t.Errorf("fairlead crew %s \"\": exit code %d, %s", verb, code, out)
		}
	}
}

// All eight names of a team that sleeps fit into a line of 80 columns.
func TestCrewNamesFit(t *testing.T) {
	t.Parallel()
	shown := view.CrewView{Button: "WAKE", Size: 8}
	for _, name := range []string{"Lyra", "Kael", "Mira", "Oren", "Vesna", "Idris", "Noor", "Tamsin"} {
		shown.Agents = append(shown.Agents, view.DocumentView{ID: name, Name: &name, Status: "sleeping"})
	}
	a := &cli.App{Out: os.Stdout}
	if got := crewcli.WhatNow(a, shown); !strings.HasSuffix(got, "Tamsin") || cli.Columns(got) > 80 {
		t.Errorf("it is %d columns: %s", cli.Columns(got), got)
	}
}

// Who ends sessions is not told that they are waited for, nor to end them.
func TestDownSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf(daemon.DownWords(true), "julian-1"); got != "ending julian-1\n" {
		t.Errorf("--now says %q", got)
	}
	if got := fmt.Sprintf(daemon.DownWords(false), "julian-1"); got != "waiting for julian-1 to finish; `fairlead down --now` ends them\n" {
		t.Errorf("without --now it says %q", got)
	}
}
