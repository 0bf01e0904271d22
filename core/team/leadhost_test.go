package team

import (
	"maps"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Another machine leads: the state has its paths, and each run whose files are elsewhere waits for them. Back on the first one, all
// is as before.
func TestPathsOfAnotherLeader(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	leads := func(name, root string) { c.must("", DaemonStarted{BootID: "boot", Leader: name, Root: root}) }
	leads("a", "/a/web")
	begins := func(id, dir string, settings RunSettings) {
		c.ofRun(id, RunBegun{Settings: settings, Asked: workflow.RunAsked{
			ID: workflow.RunID(id), Plan: plan("one !"), Options: often, RepoDir: dir, ReportsDir: dir + "/.agents/runs/" + id + "/reports",
			ManualInputsDir: dir + "/.agents/runs/" + id + "/manual_inputs", By: "ann",
		}})
	}
	begins("r", "/a/web", RunSettings{How: `{"worktree":"/a/web/.agents/worktrees/r","template":"/etc/x"}`})
	begins("later", "/a/web/sub", RunSettings{After: []string{"r"}})
	begins("own", "/a/web", RunSettings{After: []string{"r"}, OwnFolder: true})
	begins("out", "/a/website", RunSettings{After: []string{"r"}})
	session := c.sit("r", "one").ID
	c.ofRun("r",
		SessionStarted{
			Session: session, PID: 1,
			Launch: &LaunchRecord{Driver: "exec", Dir: "/a/web/.agents/worktrees/r", Argv: []string{"x", "/a/web/x", "/b"}},
		})
	c.Runs["r"].Steps[0].ReportPath = c.Runs["r"].ReportFile("one")
	c.Runs["r"].Steps[0].Artifacts = []string{"/a/web/.agents/runs/r/artifacts/x", "y"}
	c.RunUsage = map[string]RepoDay{"/a/web": repoUses("2026-11-20", 1), "/other": repoUses("2026-11-20", 2)}
	c.Dispatches = map[string]*Dispatch{"d": {Name: "d", Path: "/a/web/.agents/d"}}
	was := c.Copy()

	leads("b", "/srv/b")
	r, s := c.Runs["r"], c.sit("r", "one")
	if r.RepoDir != "/srv/b" || r.ReportFile("one") != "/srv/b/.agents/runs/r/reports/r__one.json" ||
		r.Steps[0].ReportPath != r.ReportFile("one") || r.InputFile("one") != "/srv/b/.agents/runs/r/manual_inputs/r__one.json" {
		t.Errorf("%+v", r.Head)
	}
	if got, before := r.Steps[0].Artifacts, was.Runs["r"].Steps[0].Artifacts; got[0] != "/srv/b/.agents/runs/r/artifacts/x" ||
		got[1] != "y" || before[0] != "/a/web/.agents/runs/r/artifacts/x" {
		t.Errorf("its artifacts are %q, and were %q", got, before)
	}
	if how := c.Notes["r"].Settings.How; how != `{"worktree":"/srv/b/.agents/worktrees/r","template":"/etc/x"}` {
		t.Errorf("it is run with %s", how)
	}
	if l := s.Launch; l.Dir != "/srv/b/.agents/worktrees/r" || !slices.Equal(l.Argv, []string{"x", "/srv/b/x", "/b"}) || l.Host != "a" {
		t.Errorf("the session was started as %+v", l)
	}
	if !maps.Equal(c.RunUsage, map[string]RepoDay{"/srv/b": repoUses("2026-11-20", 1), "/other": repoUses("2026-11-20", 2)}) ||
		c.Dispatches["d"].Path != "/srv/b/.agents/d" {
		t.Errorf("%v, %+v", c.RunUsage, c.Dispatches["d"])
	}
	for id, want := range map[string]string{"r": "a", "out": "a", "own": "a", "later": ""} {
		if got := c.Notes[id].Away; got != want {
			t.Errorf("the files of run %s are on %q, not on %q", id, got, want)
		}
	}
	if c.Runs["out"].RepoDir != "/a/website" {
		t.Errorf("a path outside of the repository has become %s", c.Runs["out"].RepoDir)
	}

	c.Hosts.Hosts = map[string]*host.Host{"a": {Name: "a"}, "b": {Name: "b"}, "c": {Name: "c"}}
	leads("b", "/srv/b") // it starts again
	leads("c", "/srv/c")
	lack := func(want ...string) {
		t.Helper()
		var got []string
		for _, name := range c.Hosts.Names() {
			if c.Hosts.Hosts[name].Branches {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("branches of %q may not have come, want %q", got, want)
		}
	}
	lack("b")
	leads("b", "/srv/b")
	lack("c")
	leads("a", "/a/web")
	lack("b", "c")
	leads("c", "/srv/c")
	lack("a", "b")
	if got := c.Notes["r"].Away; got != "a" || c.sit("r", "one").Launch.Host != "a" {
		t.Errorf("the files of r are on %q", got)
	}
	leads("a", "/a/web")
	if c.Notes["r"].Away != "" || c.Notes["r"].Settings.How != was.Notes["r"].Settings.How ||
		c.Runs["r"].RepoDir != was.Runs["r"].RepoDir || c.sit("r", "one").Launch.Differs(was.Pool.Sessions["r/one"].Launch) != nil {
		t.Errorf("back again: %+v, %+v", c.Notes["r"], c.Runs["r"].Head)
	}

	// They arrive, or a person does not wait for them.
	if _, err := c.event(Event{Run: "r", What: FilesHere{}}); err == nil {
		t.Error("files arrive that were there")
	}
	leads("b", "/srv/b")
	c.ofRun("r", FilesHere{})
	c.ofRun("out", workflow.ReleaseAsked{By: "ann"})
	if c.Notes["r"].Away != "" || c.Notes["out"].Away != "" || c.Notes["r"].Settings.How == was.Notes["r"].Settings.How {
		t.Errorf("%+v, %+v", c.Notes["r"], c.Notes["out"])
	}
	leads("a", "/a/web")
	if c.Notes["r"].Away != "b" {
		t.Errorf("r went on at b, and its files are on %q", c.Notes["r"].Away)
	}
}
