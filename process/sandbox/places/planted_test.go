package places_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// TestPlantedLinks checks that no link which a program could have left in a folder that it writes opens anything to the next
// session, wherever the person's settings name a path in that folder. Each row has a twin: the same link, made by the person where no
// agent writes.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	const secrets = "home/.ssh/id home/.ssh/agents/x home/.ssh/bin/x "
	for name, c := range map[string]struct {
		tree   string // with W for the folder in which the links are
		change func(m *machine, s *places.Session, w string)
		twin   bool // the same at a place of the person is followed
	}{
		"a program on PATH": {
			"W/bin/tool->home/.ssh/id",
			func(m *machine, s *places.Session, w string) { s.Env[1] = "PATH=/bin:" + m.at(w+"/bin") }, true,
		},
		"a folder on PATH": {
			"W/bin->home/.ssh", func(m *machine, s *places.Session, w string) { s.Env[1] = "PATH=/bin:" + m.at(w+"/bin") },
			true,
		},
		"a folder above one on PATH": {"W/venv->home/.ssh", func(m *machine, s *places.Session, w string) {
			s.Env[1] = "PATH=/bin:" + m.at(w+"/venv/bin")
		}, true},
		"what a link of the person on PATH leads to": {
			"home/bin/tool->W/tool W/tool->home/.ssh/id",
			func(m *machine, s *places.Session, _ string) {
				s.Env[1] = "PATH=/bin:" + m.at("home/bin")
			}, true,
		},
		"a folder of a version manager": {
			"W/venv->home/.ssh",
			func(m *machine, s *places.Session, w string) { s.Env = append(s.Env, "VIRTUAL_ENV="+m.at(w+"/venv")) }, true,
		},
		"the agent's program": {
			"W/agent->home/.ssh/id",
			func(m *machine, s *places.Session, w string) { s.Argv = []string{m.at(w + "/agent")} }, true,
		},
		"a file that the command names": {"W/agent.py->home/.ssh/id", func(m *machine, s *places.Session, w string) {
			s.Argv = []string{"/bin/sh", m.at(w + "/agent.py")}
		}, true},
		"the interpreter of a program": {"W/agent=#!BASE/home/.ssh/id\n", func(m *machine, s *places.Session, w string) {
			s.Argv, s.Command = []string{m.at(w + "/agent")}, []string{m.at(w + "/agent")}
		}, true},
		"a cache": {
			"W/cache->home/.ssh",
			func(m *machine, s *places.Session, w string) { s.Env = append(s.Env, "GOCACHE="+m.at(w+"/cache")) }, true,
		},
		"the folder of the program": {"W/config->home/.ssh", func(m *machine, s *places.Session, w string) {
			s.Driver, s.Env = "claude", append(s.Env, "CLAUDE_CONFIG_DIR="+m.at(w+"/config"))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []string{"repo/w", "out", "person"} {
				m := newMachine(t, "repo/w/ out/ person/ "+secrets+strings.ReplaceAll(c.tree, "W/", w+"/"))
				m.by.Overlays = true
				s := m.session("repo/w")
				s.Write = []string{m.at("out")}
				c.change(m, &s, w)
				p, err := places.Of(s)
				if err != nil {
					t.Fatal(err)
				}
				opens := slices.ContainsFunc(p.View.Places, func(one sandbox.Place) bool {
					return strings.HasPrefix(one.Path, m.at("home/.ssh")) && one.Access != sandbox.Hide
				})
				if opens != (w == "person" && c.twin) {
					t.Errorf("links in %s: opened %t: %v", w, opens, p.View.Places)
				}
			}
		})
	}
}
