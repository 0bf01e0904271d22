package membership

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// TestChangedHere has a checkout that is changed here while a session of the run works elsewhere, and another machine led when that began.
func TestChangedHere(t *testing.T) {
	t.Parallel()
	const work = ".agents/worktrees/r1/work.txt"
	t.Run("before the first fetch", func(t *testing.T) {
		t.Parallel()
		e := threeEngines(t, "b")
		e.ok(e.copies.add("r1", "b", transfer.Sent{Run: "r1", Path: "as it was when this machine led before"}))
		e.ok(e.Controller.takeOver(t.Context())) // not the first time since it leads
		e.isHere(3)
		e.put("a", work, "changed here")
		e.put("b", work, "made")
		e.ok(<-e.ends())
		e.has(work, "made")
		if got := e.git("a", "show",
			e.git("a", "for-each-ref", "--format=%(refname)", "refs/fairlead/left/r1")+":work.txt"); got != "changed here" {
			t.Errorf("%q is kept", got)
		}
	})
	t.Run("after its files arrived", func(t *testing.T) {
		t.Parallel()
		e := threeEngines(t, "c")
		e.ok(e.bring())
		e.put("a", work, "changed here")
		e.put("c", work, "made")
		if _, is := errors.AsType[*transfer.Changed](<-e.ends()); !is {
			t.Error("what came back replaces what was changed here")
		}
		e.has(work, "changed here")
	})
}

// TestReportOfAnEarlierAttempt has reports that do not count: one here, of a session elsewhere, and one on the host on which a session is
// about to start.
func TestReportOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "c")
	for _, away := range []string{"c", ""} {
		e.change(func(t *team.Team) { notes(t, "r1", team.RunMeta{Away: away}) })
		e.put("a", reports+"r1__work.json", "of an earlier attempt")
		e.ok(<-e.ends())
		e.has(reports+"r1__work.json", "")
	}
	e.put("c", reports+"r1__work.json", "of an earlier attempt")
	e.put("c", reports+"r1__check.json", "of another step")
	lease, _ := e.LeaseOf("coder-1")
	e.ok(e.Controller.send(t.Context(), lease, e.s))
	e.hasOn("c", reports+"r1__work.json", "")
	e.hasOn("c", reports+"r1__check.json", "of another step")
}

// TestReportWithoutACheckout has a session that works in the folder of the repository on the previous leader.
func TestReportWithoutACheckout(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "c")
	e.change(func(t *team.Team) {
		worksIn(t, "r1", "")
		lease := t.Hosts.Leases["coder-1"]
		lease.Home = true
		t.Hosts.Leases["coder-1"] = lease
		e.took()
	})
	e.put("c", reports+"r1__work.json", "of the session")
	e.ok(<-e.ends())
	e.has(reports+"r1__work.json", "of the session")
}

// TestGivenUpFilesAreKept has a run that a person lets go on without the files of the previous leader, and one that completed there. When
// that is back, what it has is kept before older files are sent there.
func TestGivenUpFilesAreKept(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]bool{"given up": false, "completed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := threeEngines(t, "a")
			e.change(func(t *team.Team) {
				delete(t.Agents, "coder")
				t.Hosts.Leases = nil
				if over {
					notes(t, "r1", team.RunMeta{Changes: 3})
					t.Led = team.Led{Before: "c", Since: t.Epoch}
					stepOf(t, "check", workflow.Completed)
				}
			})
			e.ok(transfer.StoreMark(e.dirs["a"], transfer.Mark{Run: "r1", N: 2}))
			e.ok(e.Controller.takeOver(t.Context()))
			e.isHere(3)
			e.put("a", reports+"r1__check.json", "older")
			e.put("c", reports+"r1__check.json", "of c")
			e.put("c", reports+"r1__last.json", "of c")
			e.put("c", ".agents/worktrees/r1/work.txt", "made")
			to := e.to("c")
			for range 2 {
				e.ok(to.pass(t.Context(), false))
				e.has(reports+"r1__last.json", "of c")
				e.has(filepath.Join("../cluster", lateFolder, "r1/leader-c", reports, "r1__check.json"), "of c")
				if got := e.git("a", "show", lateRefs+"r1/leader/c:work.txt"); got != "made" {
					t.Errorf("kept: %q", got)
				}
				e.hasOn("c", reports+"r1__check.json", "older")
				e.isHere(4)
			}
		})
	}
}

// stepOf gives the run a step.
func stepOf(t *team.Team, id workflow.StepID, state workflow.State) {
	head := t.Runs["r1"].Head
	head.StepCount = 1
	is := workflow.Progress{Value: workflow.Value{State: state}}
	for _, body := range []workflow.Body{
		{Head: &head},
		{Plan: &workflow.PlanPart{Steps: []workflow.Step{{ID: id, Agent: "coder"}}}},
		{Taken: []workflow.Taken{{Step: id, Progress: is}}},
	} {
		t.Runs["r1"].Apply(change.Change{Body: &body})
	}
}

// TestReportOfTheAttemptBefore has a step that begins anew here, and the report of the attempt on the previous leader. It does not count
// for this one.
func TestReportOfTheAttemptBefore(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	e.change(func(t *team.Team) { stepOf(t, "work", workflow.Running) })
	e.put("c", reports+"r1__work.json", "of the attempt before")
	e.put("c", reports+"r1__check.json", "of c")
	e.ok(e.bring())
	e.has(reports+"r1__work.json", "")
	e.has(reports+"r1__check.json", "of c")
}

// TestReportOfAParallelStep has a session on b, and another step of the run that has gone on here since b got its files. b has an older
// report of that, or one that was put aside here.
func TestReportOfAParallelStep(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.isHere(3)
	e.change(func(t *team.Team) { stepOf(t, "check", workflow.Running) })
	for _, here := range []string{"newer", ""} {
		if here == "" {
			e.ok(os.Remove(filepath.Join(e.dirs["a"], reports+"r1__check.json")))
		} else {
			e.put("a", reports+"r1__check.json", here)
		}
		e.put("b", reports+"r1__check.json", "older")
		e.put("b", reports+"r1__work.json", "of the session")
		e.put("b", reports+"notes/more.txt", "of the session")
		e.ok(<-e.ends())
		e.has(reports+"r1__check.json", here)
		e.has(reports+"r1__work.json", "of the session")
		e.has(reports+"notes/more.txt", "of the session")
	}
}

// TestArtifactOfAParallelStep has artifacts that b got with a session, or had before. Some have changed here since, some there. Times of
// files and clocks decide nothing.
func TestArtifactOfAParallelStep(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.isHere(3)
	const artifacts = ".agents/runs/r1/artifacts/"
	for _, name := range []string{"here", "there", "deleted", "fetched", "fetched twice", "back", "equal", "b's clock is behind"} {
		e.put("a", artifacts+name, "sent")
	}
	e.put("b", artifacts+"equal", "sent")
	old, late := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Now().Add(time.Hour)
	e.ok(os.Chtimes(filepath.Join(e.dirs["b"], artifacts, "equal"), old, old))
	e.ok(os.Chtimes(filepath.Join(e.dirs["a"], artifacts, "b's clock is behind"), late, late))
	lease, _ := e.LeaseOf("coder-1")
	e.ok(e.Controller.send(t.Context(), lease, e.s))
	for _, name := range []string{"fetched", "fetched twice", "back"} {
		e.put("b", artifacts+name, "of b")
	}
	e.put("b", artifacts+"removed", "of b")
	e.put("b", reports+"r1__work.json", "of the session")
	e.ok(e.fetchNow(t.Context(), "coder-1"))
	for _, name := range []string{"fetched", "fetched twice", "back"} {
		e.has(artifacts+name, "of b")
	}
	for _, name := range []string{"here", "fetched", "equal", "b's clock is behind"} {
		e.put("a", artifacts+name, "newer")
	}
	for _, name := range []string{"deleted", "removed"} {
		e.ok(os.Remove(filepath.Join(e.dirs["a"], artifacts, name)))
	}
	for _, name := range []string{"there", "new", "fetched twice"} {
		e.put("b", artifacts+name, "newer")
	}
	e.put("b", artifacts+"back", "sent")
	for range 2 {
		e.ok(<-e.ends())
		for name, want := range map[string]string{"deleted": "", "removed": "", "back": "sent"} {
			e.has(artifacts+name, want)
		}
		for _, name := range []string{"here", "there", "new", "fetched", "fetched twice", "equal", "b's clock is behind"} {
			e.has(artifacts+name, "newer")
		}
		e.has(reports+"r1__work.json", "of the session") // it is set aside before it is fetched
	}
}

// checks is a session of the run's step check, and its lease.
func checks(on string, phase session.Phase) (s team.Session, lease host.Lease) {
	s = team.Session{ID: "check-1", For: team.Purpose{Kind: team.PurposeStep, Run: "r1", Step: "check"}, Phase: phase}
	if phase == session.Running {
		s.PID = 1
	}
	return s, host.Lease{Token: host.Token{Session: s.ID, Host: on, Incarnation: 1, N: 1}}
}

// TestSecondSessionOfARun has a session that starts on b while another one of the run works there. What that has made since its files were
// fetched stays there; what has changed here is sent.
func TestSecondSessionOfARun(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.isHere(3)
	const artifacts = ".agents/runs/r1/artifacts/"
	for _, name := range []string{"there", "here"} {
		e.put("a", artifacts+name, "sent")
	}
	lease, _ := e.LeaseOf("coder-1")
	e.ok(e.Controller.send(t.Context(), lease, e.s))
	e.put("b", reports+"r1__work.json", "begun")
	e.ok(e.fetchNow(t.Context(), "coder-1"))
	e.put("b", artifacts+"there", "newer")
	e.put("b", reports+"r1__work.json", "complete")
	e.put("a", artifacts+"here", "newer")
	s, second := checks("b", session.Running)
	e.change(func(t *team.Team) {
		t.Agents["check"] = &team.Agent{Session: &s}
		t.Hosts.Leases[s.ID] = second
	})
	e.ok(e.Controller.send(t.Context(), second, s))
	e.hasOn("b", artifacts+"there", "newer")
	e.hasOn("b", reports+"r1__work.json", "complete")
	e.hasOn("b", artifacts+"here", "newer")
	e.put("a", artifacts+"here", "newest")
	e.ok(<-e.ends())
	e.has(artifacts+"there", "newer")
	e.has(reports+"r1__work.json", "complete")
	e.has(artifacts+"here", "newest")
}

// TestTwoSessionsPlacedAtOnce has two sessions of a run with a place on b before the files are there. The first one that starts brings
// them.
func TestTwoSessionsPlacedAtOnce(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.isHere(3)
	const work = ".agents/worktrees/r1/work.txt"
	e.put("a", work, "sent")
	s, second := checks("b", session.Open)
	e.change(func(t *team.Team) {
		e.s.Phase, e.s.PID = session.Open, 0
		is := e.s
		t.Agents["coder"].Session = &is
		t.Agents["check"] = &team.Agent{Session: &s}
		t.Hosts.Leases[s.ID] = second
	})
	first, _ := e.LeaseOf("coder-1")
	e.ok(e.Controller.send(t.Context(), first, e.s))
	e.hasOn("b", work, "sent")
	e.put("b", work, "of the first")
	e.ok(e.Controller.send(t.Context(), second, s))
	e.hasOn("b", work, "of the first")
}

// TestFilesOfARunThatIsOver has a run whose checkout is removed at its end. Engine hosts have its last reports, and keep them.
func TestFilesOfARunThatIsOver(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	e.isHere(3)
	e.change(func(t *team.Team) {
		delete(t.Agents, "coder")
		t.Hosts.Leases = nil
		for _, name := range []string{"a", "b", "c"} {
			t.Hosts.Hosts[name].Engine, t.Hosts.Hosts[name].Key = name+":4222", name
		}
		e.took()
	})
	to := e.toB()
	e.ok(to.pass(t.Context(), false))
	e.ok(os.RemoveAll(e.tree("a", "")))
	e.put("a", reports+"r1__check.json", "the last one")
	e.isHere(4)
	e.ok(to.pass(t.Context(), false))
	e.hasOn("b", reports+"r1__check.json", "the last one")
	e.ok(e.Controller.forget(t.Context(), "r1"))
	if _, err := os.Lstat(e.tree("b", "")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its checkout is on b: %v", err)
	}
	e.hasOn("b", reports+"r1__check.json", "the last one")
}

// TestStepBesideASession has a step that ends here while a session of the run works on b. What the step has made is not on b, so the copy
// there does not count as whole until the session is over.
func TestStepBesideASession(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	to := e.toB()
	e.isHere(3)
	e.ok(to.pass(t.Context(), false))
	e.arrivedAtB(3)
	s, lease := checks("a", session.Running)
	lease.Home = true
	e.change(func(t *team.Team) {
		t.Agents["check"] = &team.Agent{Session: &s}
		t.Hosts.Leases[s.ID] = lease
		e.Controller.wakeCopies([]change.Change{{Body: &host.Body{Lease: &lease}}})
		delete(t.Agents, "check") // it is over
		delete(t.Hosts.Leases, s.ID)
	})
	e.put("a", reports+"r1__check.json", "of a")
	e.isHere(4)
	e.ok(to.pass(t.Context(), false))
	e.arrivedAtB(3)
	if to.behind != 1 {
		t.Errorf("%d runs are not there", to.behind)
	}
	e.change(func(t *team.Team) { t.Agents["coder"].Session, t.Hosts.Leases = nil, nil })
	e.isHere(5)
	e.ok(to.pass(t.Context(), false))
	e.arrivedAtB(5)
	e.hasOn("b", reports+"r1__check.json", "of a")
}

// TestPlacedByTheLeaderBefore has a session that the previous leader placed on its own machine and did not start.
func TestPlacedByTheLeaderBefore(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "c")
	e.change(func(t *team.Team) {
		e.s.Phase, e.s.PID = session.Open, 0
		lease := t.Hosts.Leases["coder-1"]
		lease.Home = true
		t.Hosts.Leases["coder-1"] = lease
		e.took()
	})
	_, err := e.placeHere(t.Context(), &sessions.Slot{Conf: &config.Agent{Name: "coder"}}, e.s)
	e.ok(err)
	if name := e.HostOf("coder-1"); name != "" {
		t.Errorf("it is on %s", name)
	}
}

// TestBranchesOfTheLeaderBefore has commits that were made on the previous leader while it led, and later.
func TestBranchesOfTheLeaderBefore(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	e.isHere(3)
	e.change(func(t *team.Team) { // b has led since
		t.Led = team.Led{Before: "b", Since: 1}
		t.Hosts.Hosts["c"].Branches = true
		for name, h := range t.Hosts.Hosts {
			h.Engine, h.Key = name+":4222", name
		}
		e.took()
	})
	commit := func(on string) string {
		e.git(on, "commit", "-q", "--allow-empty", "-m", "more of "+on)
		return e.git(on, "rev-parse", "HEAD")
	}
	want := commit("c")
	for range 2 { // the second time it has started again
		e.ok(e.to("c").pass(t.Context(), false))
		if got := e.git("a", "rev-parse", "main"); got != want {
			t.Errorf("main is at %s, not at %s", got, want)
		}
		commit("c")
	}

	// Both have commits of their own. They are named until a person has merged them.
	e.change(func(t *team.Team) {
		h := *t.Hosts.Hosts["c"]
		h.Branches = true
		t.Hosts.Hosts["c"] = &h
	})
	there, here := e.git("c", "rev-parse", "main"), commit("a")
	e.ok(e.Controller.takeOver(t.Context())) // what has arrived is all there
	if left := e.noted().Left; len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	to := e.to("c")
	e.ok(to.pass(t.Context(), false))
	if left := e.noted().Left; len(left) != 1 ||
		!strings.HasPrefix(left[0].Why,
			"branch main is at "+there[:12]+" on c, and stays at "+here[:12]+" here: it has commits that are not there") {
		t.Errorf("left: %q", left)
	}
	// Meanwhile a person commits on c, which does not lead.
	was := e.git("a", "rev-parse", "r1")
	e.git("c", "branch", "later")
	e.git("c", "-C", e.tree("c", ""), "commit", "-q", "--allow-empty", "-m", "later")
	e.ok(os.RemoveAll(e.tree("a", "")))
	e.ok(to.pass(t.Context(), true))
	if got := e.git("a", "rev-parse", "r1"); got != was || e.git("a", "branch", "--list", "later") != "" {
		t.Errorf("what was committed later on c moves r1 from %s to %s, or makes a branch here", was, got)
	}
	// c is lost. What had arrived can be merged.
	e.cut = make(chan struct{})
	if err := to.pass(t.Context(), true); !errors.Is(err, errAway) || len(e.noted().Left) != 1 {
		t.Errorf("%v, left: %q", err, e.noted().Left)
	}
	e.git("a", "merge", "-q", "-m", "merged", there)
	if err := to.pass(t.Context(), true); !errors.Is(err, errAway) || len(e.noted().Left) > 0 {
		t.Errorf("%v, left: %q", err, e.noted().Left)
	}
	e.cut = nil
	e.ok(to.pass(t.Context(), true))
	e.change(func(now *team.Team) {
		if left := e.noted().Left; len(left) > 0 || now.Hosts.Hosts["c"].Branches {
			t.Errorf("left: %q", left)
		}
	})
	if got := e.git("a", "rev-parse", "r1"); got != was {
		t.Errorf("what was committed later on c moves r1 from %s to %s", was, got)
	}
}

// TestCheckoutOutside has a run whose checkout is outside of the repository. It stays on this machine, as do sessions of the run.
func TestCheckoutOutside(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "a")
	e.isHere(3)
	e.change(func(t *team.Team) { worksIn(t, "r1", filepath.Join(filepath.Dir(e.dirs["a"]), "elsewhere")) })
	e.ok(os.Mkdir(filepath.Join(filepath.Dir(e.dirs["a"]), "elsewhere"), 0o700))
	to := e.toB()
	if e.ok(to.pass(t.Context(), true)); to.behind != 0 {
		t.Errorf("%d runs are not on b", to.behind)
	}
	e.arrivedAtB(0)
	e.change(func(t *team.Team) {
		e.s.Phase, e.s.PID, t.Hosts.Leases = session.Open, 0, nil
		t.Hosts.Hosts["b"].Capacity = 4
		e.took()
	})
	where, _, err := e.Place(t.Context(), &sessions.Slot{Conf: &config.Agent{Name: "coder", Host: config.AgentHost{Any: true}}}, e.s)
	if e.ok(err); where != "" {
		t.Errorf("it is placed on %q", where)
	}
}

// TestBranchOfACheckout has a run whose checkout here is older than its branch on a host that led. The branch here is moved; the
// checkout has its own.
func TestBranchOfACheckout(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	e.git("c", "-C", e.tree("c", ""), "commit", "-q", "--allow-empty", "-m", "made")
	e.git("c", "fetch", "-q", e.tree("c", ""), "r1:r1") // as after each step
	was := e.git("a", "-C", e.tree("a", ""), "rev-parse", "r1")
	e.ok(e.trees("c").FetchBranches(t.Context(), "c"))
	left, err := e.Controller.forward(t.Context(), "c", true)
	if e.ok(err); left != 0 {
		t.Errorf("left: %q", e.left["c"])
	}
	if got, want := e.git("a", "rev-parse", "r1"), e.git("c", "rev-parse", "r1"); got != want {
		t.Errorf("the branch is at %s, not at %s", got, want)
	}
	if got := e.git("a", "-C", e.tree("a", ""), "rev-parse", "r1"); got != was {
		t.Errorf("the branch of the checkout is at %s, and was at %s", got, was)
	}
}

// TestOneForward has two hosts that have led, and the same new branches on both. Git refuses two changes of a branch at the same time.
func TestOneForward(t *testing.T) {
	t.Parallel()
	e := threeEngines(t, "b")
	froms := []string{"b", "c"}
	for _, name := range froms {
		for i := range 20 {
			e.git(name, "branch", fmt.Sprintf("new-%d", i), "main")
		}
		e.ok(e.trees(name).FetchBranches(t.Context(), name))
	}
	done := make(chan error, len(froms))
	for _, name := range froms {
		go func() {
			left, err := e.Controller.forward(t.Context(), name, true)
			if left > 0 {
				t.Errorf("left: %q", e.noted().Left)
			}
			done <- err
		}()
	}
	for range froms {
		e.ok(<-done)
	}
}
