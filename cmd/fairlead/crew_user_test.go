package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/read/view"
)

// saysCrew runs a verb, and wants an exit code and words.
func (s *rig) saysCrew(code int, verb string, words ...string) {
	s.t.Helper()
	out, got := s.fairlead(strings.Fields(verb)...)
	if got != code {
		s.t.Errorf("fairlead %s: exit code %d, want %d: %s", verb, got, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			s.t.Errorf("fairlead %s says %q, and nothing of %q", verb, out, w)
		}
	}
}

// Without a lead, or with one that accepts no input, the error names the setting to write.
func TestCrewWithoutLead(t *testing.T) {
	t.Parallel()
	s := newRig(t,
		map[string]string{
			"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [\"true\"], workspace: ada}\n",
			"ada/.keep":     "",
		})
	for _, verb := range []string{"crew summon", "crew wake", "crew summon --wait"} {
		s.saysCrew(cli.ExitRefused, verb, "team", "lead", "fairlead.yaml")
	}
	s.saysCrew(cli.ExitDone, "crew", "lead")
	s.saysCrew(cli.ExitUsage, "crew wake Lyra", "Lyra")
	s.saysCrew(cli.ExitUsage, "crew show Lyra", "Lyra")

	dir := t.TempDir()
	yaml := "version: 1\nteam: {lead: ada}\nagents:\n  ada: {driver: exec, command: [\"true\"], workspace: ada}\n"
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	code, said := runFor(t, rigWait, "up", "--dir", dir, "--listen", "127.0.0.1:0", "--no-browser")
	if code == cli.ExitDone || code == -1 || !strings.Contains(said, "team.lead") || !strings.Contains(said, "driver exec") {
		t.Errorf("a team whose lead hears nothing: exit code %d, %s", code, said)
	}

	ghost := newRig(t,
		map[string]string{"fairlead.yaml": "version: 1\nteam: {lead: ghost}\nagents:\n  ada: {driver: exec, command: [\"true\"], workspace: ada}\n", "ada/.keep": ""})
	ghost.saysCrew(cli.ExitRefused, "crew summon", "ghost", "not an agent of fairlead.yaml")
	ghost.saysCrew(cli.ExitDone, "doctor", "team.lead", "ghost")
	if view := ghost.crew(); len(view.Agents) > 0 || view.Button != "SUMMON" {
		t.Errorf("it is %+v", view)
	}
}

// A hold, a lead that works on something else, one that is disabled, one over its limit, one whose
// program is not there: what is said is what is so, and what to do.
func TestCrewThatWaits(t *testing.T) {
	t.Parallel()
	if testsize.Race {
		t.Skip("thirty verbs are the same with the race detector, and slow")
	}
	files := crewFiles(quickTimes, "channels:\n  crew: {agents: [julian]}\n")
	files["lead.script.yaml"] = strings.Replace(leadScript, "{say: I only lead}", "{run: until test -e enough; do sleep 0.02; done}", 1)
	s := newRig(t, files)

	s.must("hold")
	s.saysCrew(cli.ExitRefused, "crew summon", "held", "release")
	s.must("unhold")

	s.must("channel", "disable", "julian")
	s.saysCrew(cli.ExitRefused, "crew summon", "julian", "disabled", "enable it first")
	s.must("channel", "enable", "julian")

	s.must("once", "julian")
	s.until("julian", "it works on something", func(v view.WhyView) bool { return v.Agent.Session != nil && v.Agent.Session.PID > 0 })
	s.saysCrew(cli.ExitDone, "crew summon", "julian-1")
	s.saysCrew(cli.ExitDone, "crew", "julian-1", "wait")
	s.saysCrew(cli.ExitDone, "why julian", "julian-1", "lead")
	s.saysCrew(cli.ExitRefused, "crew summon", "summoning already")
	s.saysCrew(cli.ExitRefused, "crew wake", "summoning already")
	s.must("hold")
	s.must("unhold")
	s.put("julian/enough", "")
	s.crewUntil("all have come", allAre("alive", 3))

	s.saysCrew(cli.ExitUsage, "crew wake M0", "N0")
	s.saysCrew(cli.ExitUsage, "crew wake N0 nobody", "nobody")
	s.saysCrew(cli.ExitUsage, "crew show n0", "N0")
	s.saysCrew(cli.ExitDone, "crew wake N1", "by its last report")
	s.saysCrew(cli.ExitRefused, "crew summon", "has 3 agents")
	s.crewUntil("nobody had to be woken", allAre("alive", 3))
	s.must("crew", "sleep", "--wait")
	s.put("two.json", `{"type":"agent-identity","status":"sleeping","name":"N1","gridPosition":8}`)
	s.must("crew", "import", filepath.Join(s.dir, "two.json"))
	s.saysCrew(cli.ExitRefused, "crew wake N1", "agent-2", "two")
	s.saysCrew(cli.ExitRefused, "crew import "+filepath.Join(s.dir, "two.json"), "exists already")
	s.saysCrew(cli.ExitDone, "crew sleep", "sleeps already")
	s.must("channel", "disable", "julian")
	s.saysCrew(cli.ExitRefused, "crew wake", "disabled")
	s.must("channel", "enable", "julian")
	s.must("crew", "wake", "agent-2", "--wait")
	if view := s.crew(); howManyAre(view, "alive") != 1 {
		t.Errorf("they are %+v", view)
	}
}

// A lead whose program is not there, and one whose session ends at once: the wait ends with exit
// code 1 and why.
func TestLeadThatCannotStart(t *testing.T) {
	t.Parallel()
	files := crewFiles("status_timeout: 2s, hatch_timeout: 4s", "")
	files["lead.script.yaml"] = "sessions: [[{say: I lead}]]\nlead: [expect_prompt, {fail: the model is not there}, expect_prompt]\n"
	s := newRig(t, files)
	s.saysCrew(cli.ExitFailed, "crew summon --wait", "0 of 3", "the model is not there")
	s.saysCrew(cli.ExitDone, "why julian", "the model is not there")
	s.crewUntil("they expired", func(v view.CrewView) bool { return howManyAre(v, "expired") == 3 && v.InProgress == "" })
	if view := s.crew(); view.Button != "SUMMON" || len(s.leadsAlive()) > 0 {
		t.Errorf("they are %+v, and the lead lives in %v", view, s.leadsAlive())
	}
}

// A lead whose script cannot be read is refused with what is wrong with it.
func TestLeadThatCannotBeRead(t *testing.T) {
	t.Parallel()
	files := crewFiles(quickTimes, "")
	files["lead.script.yaml"] = "sessions: [[{say: I lead}]]\nlead: [{sing: aloud}]\n"
	s := newRig(t, files)
	s.saysCrew(cli.ExitRefused, "crew summon", "sing")
	if view := s.crew(); len(view.Agents) > 0 {
		t.Errorf("they are %+v", view.Agents)
	}
}

// meddleCrew is an agent in its session that orders about the team: by the verbs, and by the
// routes. Each answer is kept.
const meddleCrew = `exec > /dev/null 2>> words
ask() { "$BIN" "$@" --dir .. >> words 2>&1; echo "$*: $?" >> codes; }
act() { code=$(curl -s -o answer --unix-socket "$SOCK" -H 'Content-Type: application/json' -X POST -d "$2" "http://localhost/api/v1/$1" -w '%{http_code}'); cat answer >> words; echo "$1: $code" >> codes; }
ask crew summon
ask crew wake
ask crew wake N0
ask crew sleep
ask crew import ../doc.json
ask crew
act crew/summon '{}'
act crew/wake '{}'
act crew/sleep '{}'
act crew/import "$(cat ../doc.json)"
`

// X10: neither an agent nor the lead orders about the team from within its session.
func TestAgentOrdersTheTeam(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end of a socket")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	t.Parallel()
	files := crewFiles(quickTimes, "  ada: {driver: script, script: ada.script.yaml, workspace: ada}\n")
	const act = "{run: 'SOCK=$(cat ../sock) BIN=$(cat ../bin) sh ../meddle.sh'}"
	files["meddle.sh"] = meddleCrew
	files["doc.json"] = `{"type":"agent-identity","name":"Mallory","gridPosition":8}`
	files["ada.script.yaml"] = "sessions: [[" + act + "]]\n"
	files["ada/.keep"] = ""
	files["lead.script.yaml"] = strings.Replace(leadScript, "  - expect_prompt", "  - "+act+"\n  - expect_prompt", 1)
	s := newRig(t, files)
	daemon, err := workspace.FindDaemon(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.put("sock", daemon.Socket)
	s.put("bin", program)
	s.must("crew", "summon", "--wait")
	s.must("once", "ada", "--wait")
	want := []string{
		"crew summon: 3", "crew wake: 3", "crew wake N0: 3", "crew sleep: 3", "crew import ../doc.json: 3", "crew: 0",
		"crew/summon: 409", "crew/wake: 409", "crew/sleep: 409", "crew/import: 409",
	}
	for _, who := range []string{"julian", "ada"} {
		if got := s.lines(who + "/codes"); !slices.Equal(got, want) {
			t.Errorf("%s was answered\n%s\nand should be\n%s\nit was told %s", who, strings.Join(got, "\n"), strings.Join(want, "\n"),
				strings.Join(s.lines(who+"/words"), "\n"))
		}
	}
	if view := s.crew(); !allAre("alive", 3)(view) || view.Lead.Session != "julian-1" {
		t.Errorf("something was moved: %+v", view)
	}
}
