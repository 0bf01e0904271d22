package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The daemon dies at every step of a summon and of a wake. The lead lives, so everything it was
// told it was told once, and the ceremony goes on with the next daemon.
func TestKilledAtEveryStepOfACrew(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles(quickTimes, ""))
	again := func(gate string) {
		s.t.Helper()
		s.kill()
		s.up()
		if wrong := s.crewNow(); len(wrong) > 0 {
			t.Errorf("after a crash at %s: %q\n%s", gate, wrong, s.crewWords())
		}
	}
	steps := func(order string, gates ...string) {
		s.t.Helper()
		for _, gate := range gates {
			s.gate(gate)
		}
		s.must("crew", order)
		again("asked") // the lead's progress is unknown here
		for _, gate := range gates {
			s.atGate(gate)
			if !testsize.Race || gate == "mid" || gate == "woken" {
				again(gate)
			}
			s.ungate(gate)
		}
		s.crewUntil("all are awake", allAre("alive", 3))
		s.sound(true)
	}
	steps("summon", "begin", "told", "mid", "registered-1", "reported")
	s.must("crew", "sleep", "--wait")
	steps("wake", "begin", "status", "woken", "rising", "risen")
	s.wokenAsThemselves()
	again("rest")
	s.crewUntil("all are awake again", allAre("alive", 3))
	s.sound(true)
	if alive := s.leadsAlive(); len(alive) != 1 && runtime.GOOS == "linux" {
		t.Errorf("the lead lives in %v", alive)
	}
	if view := s.crew(); len(view.Notices) > 0 {
		t.Errorf("people are told %+v", view.Notices)
	}
}

// crewNow says what cannot be so of a team at any moment.
func (s *rig) crewNow() (wrong []string) {
	s.t.Helper()
	view := s.crew()
	for _, doc := range view.Agents {
		if doc.Status == "alive" && view.Lead.Session == "" {
			wrong = append(wrong, doc.ID+" is alive, and the lead has no session")
		}
	}
	if alive := s.leadsAlive(); len(alive) > 1 {
		wrong = append(wrong, fmt.Sprintf("the lead lives in %v", alive))
	}
	return wrong
}

// A daemon dies while the lead does not read: half of what wakes the team is in the pipe. It is
// read once, whole.
func TestKilledMidWakePrompt(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles(quickTimes, ""))
	s.put("julian/fat", "") // souls that are longer together than a pipe
	s.must("crew", "summon", "--wait")
	s.must("crew", "sleep", "--wait")
	s.gate("begin")
	s.must("crew", "wake")
	s.atGate("begin")
	pid := s.until("julian", "the lead runs",
		func(v view.WhyView) bool { return v.Agent.Session != nil && v.Agent.Session.PID > 0 }).Agent.Session.PID
	s.gate("status")
	s.ungate("begin")
	s.atGate("status")
	s.ungate("status")
	// The lead reads some milliseconds long. One that is quicker than we are is woken, and the rest
	// is as true of it.
	for late := time.After(rigWait); s.crew().InProgress == "asking"; {
		select {
		case <-late:
			t.Fatal("the status was answered before the crash")
		default:
		}
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.kill()
	s.up()
	s.kill()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.up()
	s.crewUntil("all are awake", allAre("alive", 3))
	s.sound(true)
	s.wokenAsThemselves()
}

// wordsOfASummon are what a lead says when it is told to summon, as bytes on its output: facts
// as JSON, pieces of a line, plain lines, and markers over several of them.
const wordsOfASummon = `{"type":"said","text":"I call them."}
{"type":"said","text":"[AGENT_REGI","part":true}
{"type":"said","text":"STERED] {\"name\":\"L\u00fcra\",\"color\":\"#c9b1e8\",\"gridPos","part":true}
{"type":"said","text":"ition\":0,\"individuationArtifact\":\"I am \ud83e\udd5a.\"} and on it goes"}
[AGENT_REGISTERED] {"name":"Kaël","gridPosition":1,
  "individuationArtifact":"[AGENT_STATUS] {\"agents\":[]}"}
[AGENT_REGISTERED] {"name":"Mira","gridPosition":2} [AGENT_STATUS] {"agents":
[{"name":"Lüra","status":"alive","gridPosition":0}, {"name":"Kaël","status":"alive","gridPosition":1},{"name":"Mira","status":"alive"}]}
that was all
`

// The daemon dies in the middle of what the lead says: within a fact, within a character, within
// a marker, within its JSON, between two markers.
func TestKilledMidMarker(t *testing.T) {
	t.Parallel()
	var cuts []int
	for _, at := range []string{
		`ENT_REGI","part`, "STERED] {", `"gridPos`, "\xab", `":"[AGENT_ST`, `"gridPosition":2}`, `"Mira","sta`,
		"that w",
	} {
		cuts = append(cuts, strings.Index(wordsOfASummon, at)+len(at)/2)
	}
	if testsize.Race {
		cuts = cuts[2:5]
	}
	for _, some := range [][]int{cuts[:len(cuts)/2], cuts[len(cuts)/2:]} {
		t.Run(fmt.Sprint(some), func(t *testing.T) {
			t.Parallel()
			killedAtBytes(t, some)
		})
	}
}

func killedAtBytes(t *testing.T, cuts []int) {
	var script strings.Builder
	script.WriteString("sessions: [[{say: I lead}]]\nlead:\n  - expect_prompt\n  - run: cat > told.txt\n")
	at := 0
	for _, cut := range append(slices.Clone(cuts), len(wordsOfASummon)) {
		fmt.Fprintf(&script, "  - emit: !!binary %s\n  - sleep: 500ms\n", base64.StdEncoding.EncodeToString([]byte(wordsOfASummon[at:cut])))
		at = cut
	}
	script.WriteString("  - expect_prompt\n  - expect_prompt\n  - expect_prompt\n")
	files := crewFiles(quickTimes, "")
	files["lead.script.yaml"] = script.String()
	s := newRig(t, files)
	s.must("crew", "summon")
	spool := filepath.Join(s.dir, ".fairlead", "sessions", "julian-1", "spool")
	for _, cut := range cuts {
		s.poll(fmt.Sprintf("the lead has said what is before byte %d", cut), func() bool {
			text, err := os.ReadFile(spool)
			return err == nil && strings.Contains(string(text), wordsOfASummon[max(0, cut-20):cut])
		})
		s.kill()
		s.up()
	}
	view := s.crewUntil("all have come", func(v view.CrewView) bool { return v.InProgress == "" && howManyAre(v, "hatching") == 0 })
	souls := map[string]string{}
	for _, doc := range view.Agents {
		souls[fmt.Sprintf("%d %s", doc.Seat, *doc.Name)] = doc.Soul
	}
	want := map[string]string{"0 Lüra": "I am 🥚.", "1 Kaël": `[AGENT_STATUS] {"agents":[]}`, "2 Mira": ""}
	if fmt.Sprint(souls) != fmt.Sprint(want) || len(view.Agents) != 3 {
		t.Errorf("they are %q", souls)
	}
	if len(view.Notices) > 0 {
		t.Errorf("people are told %+v\n%s", view.Notices, s.crewWords())
	}
	s.poll("the last words are kept", func() bool { return strings.Contains(s.must("crew", "transcript", "--json"), "that was all") })
	said := s.must("crew", "transcript", "--json")
	for _, words := range []string{"I call them.", "and on it goes", "that was all"} {
		if n := strings.Count(said, words); n != 1 {
			t.Errorf("%q is in the transcript %d times: %s", words, n, said)
		}
	}
	if strings.Contains(said, "AGENT_") {
		t.Errorf("a marker is in the transcript: %s", said)
	}
	if told := s.lines("julian/told.txt"); told[0] != "[SUMMON AGENTS]" {
		t.Errorf("the lead was told %q", told)
	}
}

// The lead is killed at every step, alone, with its shim, or with all processes: all agents sleep, the
// operation in progress ends with a notice, and the next wake brings back the registered agents.
func TestKilledLead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it looks for processes as Linux shows them")
	}
	for _, blow := range []string{"lead", "shim", "all"} {
		t.Run(blow, func(t *testing.T) {
			t.Parallel()
			if testsize.Race && blow == "shim" {
				t.Skip("two of them are enough with the race detector")
			}
			s := newRig(t, crewFiles(quickTimes, ""))
			strike := func() {
				s.t.Helper()
				s.strikeLead(blow)
				if blow == "all" {
					s.up()
				}
			}
			s.gate("registered-1")
			s.must("crew", "summon")
			s.atGate("registered-1")
			s.crewUntil("one has come", func(v view.CrewView) bool { return howManyAre(v, "alive") == 1 })
			strike()
			s.ungate("registered-1")
			shown := s.crewUntil("it is over", func(v view.CrewView) bool { return v.InProgress == "" && v.Lead.Session == "" })
			if howManyAre(shown, "sleeping")+howManyAre(shown, "unknown") != 1 || howManyAre(shown, "hatching") != 2 ||
				shown.Button != "WAKE" {
				t.Errorf("after the lead's end they are %+v", shown)
			}
			if !slices.ContainsFunc(shown.Notices,
				func(n view.NoticeView) bool { return n.Kind == "lead" && strings.Contains(n.Text, "summoning") }) {
				t.Errorf("nobody says that the summon is over: %+v", shown.Notices)
			}
			s.sound(false)
			for _, gate := range []string{"status", "woken", "rising"} {
				s.gate(gate)
				s.must("crew", "wake")
				s.atGate(gate)
				strike()
				s.ungate(gate)
				view := s.crewUntil("it is over", func(v view.CrewView) bool { return v.InProgress == "" && v.Lead.Session == "" })
				if howManyAre(view, "alive") != 0 || view.Button != "WAKE" || len(view.Notices) < 2 {
					t.Errorf("after the lead's end at %s they are %+v", gate, view)
				}
				s.sound(false)
			}
			s.must("crew", "wake")
			s.crewUntil("it is awake", func(v view.CrewView) bool { return v.InProgress == "" && howManyAre(v, "alive") == 1 })
			s.wokenAsThemselves()
			strike()
			s.crewUntil("it sleeps", func(v view.CrewView) bool {
				return v.InProgress == "" && howManyAre(v, "alive") == 0 && v.Lead.Session == ""
			})
			s.sound(false)
		})
	}
}

// strikeLead kills the lead's process, its shim, or the daemon and everything.
func (s *rig) strikeLead(blow string) {
	s.t.Helper()
	l := &load{rig: s, mark: markOf(s.dir), torture: &torture{t: s.t, rnd: newRand(1)}, killed: map[string]int64{}}
	switch blow {
	case "all":
		l.killEverybody()
	case "shim":
		l.signal(slices.DeleteFunc(l.census(), noShims), syscall.SIGKILL)
	default:
		l.signal(slices.DeleteFunc(l.census(), shims), syscall.SIGKILL)
	}
}

// Placeholders without a registration expire, whichever process was killed meanwhile: none hatches forever.
func TestNobodyHatchesForEver(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles("status_timeout: 1s, hatch_timeout: 2s", ""))
	s.gate("told")
	s.must("crew", "summon")
	s.atGate("told")
	s.kill()
	s.up()
	s.crewUntil("they expired", func(v view.CrewView) bool { return v.InProgress == "" && howManyAre(v, "expired") == 3 })
	if view := s.crew(); view.Button != "SUMMON" || len(view.Notices) == 0 {
		t.Errorf("the button is %s, and people are told %+v", view.Button, view.Notices)
	}
	s.ungate("told") // the lead goes on with what is over
	s.crewUntil("the late ones are somebody", func(v view.CrewView) bool {
		return v.InProgress == "" && howManyAre(v, "alive") == 3 && v.Lead.State == "heard"
	})
	if view := s.crew(); len(view.Agents) != 6 || howManyAre(view, "expired") != 3 {
		t.Errorf("they are %+v", view.Agents)
	}
	s.sound(true)
}
