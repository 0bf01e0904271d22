package places_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// TestReached starts programs by paths with links of a person in them, as version managers and packages make them: what runs
// outside by that path runs in the view, and nothing else is there by it.
func TestReached(t *testing.T) {
	const prog = "#!/bin/sh~echo_ran"
	m := viewedMachine(t,
		"repo/w/x repo/.fairlead/token=token home/.nvm/v20/bin/prog="+prog+" home/.nvm/v20/lib/l=x home/now->home/.nvm/v20"+
			" opt/mods/pkg/bin/tool="+prog+" opt/mods/.bin/ mine/mods->opt/mods"+
			" home/vers/v1/bin/x="+prog+" home/vers/v1/key=secret home/cur->home/vers/v1 home/a/one->home/b home/b/two->home/vers/v1"+
			" home/end/x->home/cur/bin/x home/x->home/cur/bin/x home/w->repo/w home/.ssh/id=secret")
	if err := os.Symlink("../pkg/bin/tool", m.at("opt/mods/.bin/tool")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(m.at("home/vers/v1"), m.at("repo/w/out")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ command, path, hide, run, want string }{
		"a manager's folder":        {"home/now/bin/prog", "", "", "BASE/home/now/bin/prog", "ran"},
		"a folder on PATH":          {"", "home/now/bin", "", "prog", "ran"},
		"a folder of packages":      {"opt/mods/.bin/tool", "", "", "BASE/opt/mods/.bin/tool", "ran"},
		"packages behind a link":    {"mine/mods/.bin/tool", "", "", "BASE/mine/mods/.bin/tool", "ran"},
		"packages on PATH":          {"", "mine/mods/.bin", "", "tool", "ran"},
		"the newest version":        {"home/cur/bin/x", "", "", "BASE/home/cur/bin/x", "ran"},
		"links in a row":            {"home/a/one/two/bin/x", "", "", "BASE/home/a/one/two/bin/x", "ran"},
		"a link to such a path":     {"home/end/x", "", "", "BASE/home/end/x", "ran"},
		"a link in the home folder": {"home/x", "", "", "BASE/home/x", "ran"},
		"not the home folder":       {"home/x", "", "", "cat BASE/home/.ssh/id", "No such file"},
		"not the rest of it":        {"home/cur/bin/x", "", "", "cat BASE/home/cur/key", "No such file"},
		"not written":               {"home/cur/bin/x", "", "", "echo > BASE/home/cur/bin/new", "Read-only"},
		"what is hidden":            {"home/cur/bin/x", "", "home/vers", "BASE/home/cur/bin/x", "not found"},
		"a link in the workspace":   {"repo/w/out/bin/x", "", "", "cat out/key", "No such file"},
		"the workspace by a link":   {"home/w/x", "", "", "cat BASE/home/w/../.fairlead/token", "No such file"},
	} {
		t.Run(name, func(t *testing.T) {
			s := m.session("repo/w")
			if c.command != "" {
				s.Command = []string{m.at(c.command)}
			}
			if c.path != "" {
				s.Env[1] += ":" + m.at(c.path)
			}
			if c.hide != "" {
				s.Hide = []string{m.at(c.hide)}
			}
			if got := m.inView(s, strings.ReplaceAll(c.run, "BASE", m.base)); !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.run, got, c.want)
			}
			if err := places.End(s.Own); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLinksOfTheAgent makes links where the agent writes, on the way to a program of its command or of PATH: what they lead to is
// not visible in the next session. Beside each is the same link of a person, which is followed.
func TestLinksOfTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ link, person, command, path string }{
		"a program":            {"repo/w/venv/prog->secret/prog", "mine/venv/prog->secret/prog", "AT/venv/prog", ""},
		"its folder":           {"repo/w/venv->secret", "mine/venv->secret", "AT/venv/prog", ""},
		"a program on PATH":    {"repo/w/bin/prog->secret/prog", "mine/bin/prog->secret/prog", "", "AT/bin"},
		"a folder on PATH":     {"repo/w/bin->secret", "mine/bin->secret", "", "AT/bin"},
		"behind another link":  {"repo/w/prog->secret/prog", "mine/prog->secret/prog", "in/prog", ""},
		"in a writable folder": {"also/prog->secret/prog", "mine/prog->secret/prog", "also/prog", ""},
	} {
		for _, agent := range []bool{true, false} {
			m := newMachine(t, "repo/w/x also/x mine/x secret/prog secret/key")
			link, at := c.person, "mine"
			if agent {
				link, at = c.link, "repo/w"
			}
			m.make(link + " in/prog->" + at + "/prog")
			s := m.session("repo/w")
			s.Write = []string{m.at("also")}
			command := strings.ReplaceAll(c.command, "AT", at)
			if !agent {
				command = strings.ReplaceAll(command, "also", at)
			}
			if c.command != "" {
				s.Command = []string{m.at(command)}
			}
			if c.path != "" {
				s.Env[1] += ":" + m.at(strings.ReplaceAll(c.path, "AT", at))
			}
			p, err := places.Of(s)
			if err != nil {
				t.Fatal(err)
			}
			if seen := place(p, m.at("secret")).Access == sandbox.Read; seen == agent {
				t.Errorf("%s, made by the agent: %t; what it leads to is visible: %t", name, agent, seen)
			}
			if said := strings.Contains(strings.Join(p.Said, "\n"), "in a folder that an agent writes"); said && !agent {
				t.Errorf("%s, made by a person: it is said %q", name, p.Said)
			}
		}
	}
}
