package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

const threeTalk = `  lea: {driver: script, script: talker.script.yaml, workspace: lea}
channels:
  talk: {agents: [ada, bob, eve], lead: lea, humanInterruptMode: queue, maxRounds: 1, waitTimeoutSeconds: 3600}
turnConfig: {defaultTimeoutSeconds: 3600}
`

func threeTalkers() map[string]string {
	files := talkers(threeTalk, "ada", "bob", "eve")
	files["lea/said"] = ""
	return files
}

// asItWas is a channel as it has to be after a crash: all of it.
func asItWas(t *testing.T, v view.ChannelView) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// outlives kills the daemon in a moment that lasts, more than once, and wants the next one to
// find the channel as it was: holder, deadline, queue, messages that wait, who answers whom.
func (s *rig) outlives(name string) {
	s.t.Helper()
	kills := 2
	if testsize.Race {
		kills = 1
	}
	before := asItWas(s.t, s.floor(name))
	for range kills {
		wait.Pause(time.Duration(rand.IntN(50)) * time.Millisecond) // the random moment
		s.kill()
		s.up()
		for range 2 { // as it is found, and when the sessions were found, too
			if after := asItWas(s.t, s.floor(name)); after != before {
				s.t.Fatalf("#%s was\n%s\nand after the crash it is\n%s", name, before, after)
			}
			s.poll("the sessions are found", func() bool {
				return !slices.ContainsFunc(s.view().Agents,
					func(a view.AgentView) bool { return a.Session != nil && a.Session.Phase != "running" })
			})
		}
	}
}

// audited holds a channel in which all is said to what the agents kept.
func (s *rig) audited(name string, sent []string, agents ...string) {
	s.t.Helper()
	s.floorUntil(name, "all is said", settled)
	if wrong := wordsOf(s.books(agents...).audit(s.entries(name), sent)); len(wrong) > 0 {
		s.t.Errorf("%d faults: %.20q\n%s", len(wrong), wrong, s.conversation(name))
	}
}

// The daemon dies while an agent has the turn and works, with a message that waits for the
// turn's end. Nothing of it is lost, and nothing happens twice.
func TestKilledMidTurn(t *testing.T) {
	t.Parallel()
	s := newRig(t, threeTalkers())
	s.put("ada/busy", "")
	s.must("channel", "say", "talk", "p-1")
	s.floorUntil("talk", "ada works", func(v view.ChannelView) bool {
		return member(v, "ada").Working && len(s.books("ada").told["ada"]) == 1
	})
	s.must("channel", "say", "talk", "p-2")
	view := s.floor("talk")
	if view.Holder != "ada" || view.Deadline == nil || len(view.Open) != 2 || view.Open[1].State != "queued" {
		t.Fatalf("the test meets another moment than it wants: %+v", view)
	}
	s.outlives("talk")
	s.drop("ada/busy")
	s.audited("talk", []string{"p-1", "p-2"}, "ada", "bob", "eve", "lea")
	if got := turnsTaken(s.entries("talk")); len(got) < 3 || !slices.Equal(got[:3], []string{"ada", "bob", "eve"}) {
		t.Errorf("the turns went to %q", got)
	}
}

// turnsTaken says who was given the turn, in order.
func turnsTaken(all []view.ChannelEntry) (names []string) {
	for _, e := range all {
		if e.Kind == channels.EntryMoved && e.Row == "T4" {
			names = append(names, e.Agent)
		}
	}
	return names
}

// The daemon dies while an agent waits in its turn; a person's word ends the wait afterwards.
func TestKilledMidWait(t *testing.T) {
	t.Parallel()
	s := newRig(t, threeTalkers())
	s.put("ada/wait", "")
	s.must("channel", "say", "talk", "p-1")
	s.floorUntil("talk", "ada waits", func(v view.ChannelView) bool { return v.State == "WAITING" && !member(v, "ada").Working })
	s.must("channel", "say", "talk", "p-2")
	view := s.floor("talk")
	if view.Holder != "ada" || view.Deadline == nil {
		t.Fatalf("the test meets another moment than it wants: %+v", view)
	}
	s.outlives("talk")
	s.must("channel", "override", "talk", "--resume")
	s.audited("talk", []string{"p-1", "p-2"}, "ada", "bob", "eve", "lea")
	if told := s.books("ada").told["ada"]; len(told) < 2 || !turnTold.MatchString(told[0]) || turnTold.MatchString(told[1]) {
		t.Errorf("ada was told %q", told)
	}
}

// The daemon dies while a person's interruption is being answered by the channel's lead, and the
// turn of another stands still.
func TestKilledMidInterrupt(t *testing.T) {
	t.Parallel()
	s := newRig(t, threeTalkers())
	s.put("ada/busy", "")
	s.put("lea/busy", "")
	s.must("channel", "say", "talk", "p-1")
	s.floorUntil("talk", "ada works", func(v view.ChannelView) bool {
		return member(v, "ada").Working && len(s.books("ada").told["ada"]) == 1
	})
	s.must("channel", "say", "talk", "p-2", "--mode", "interrupt")
	s.must("channel", "say", "talk", "p-3")
	view := s.floorUntil("talk", "lea answers, and ada has stopped", func(v view.ChannelView) bool {
		return v.Aside != nil && v.Aside.Agent == "lea" && !member(v, "ada").Working && len(s.books("lea").told["lea"]) == 1 &&
			v.Open[1].State == "delivered"
	})
	if view.Holder != "ada" || view.State != "WAITING" || view.Aside.Message != 2 || view.Aside.Deadline == nil {
		t.Fatalf("the test meets another moment than it wants: %+v", view)
	}
	s.outlives("talk")
	s.drop("ada/busy")
	s.drop("lea/busy")
	s.audited("talk", []string{"p-1", "p-2", "p-3"}, "ada", "bob", "eve", "lea")
	var answered bool
	for _, e := range s.entries("talk") {
		answered = answered || e.Kind == channels.EntryAside && e.By == "lea" && e.Re == 2
	}
	if !answered {
		t.Errorf("nobody answered who interrupted:\n%s", s.conversation("talk"))
	}
}

// A turn's time limit ends while no daemon runs: the next daemon ends the turn at once, and does not count
// it as a failure of the agent.
func TestDeadlineWhileDown(t *testing.T) {
	t.Parallel()
	files := talkers("channels:\n  talk: {agents: [ada, bob]}\nturnConfig: {defaultTimeoutSeconds: 5}\n", "ada", "bob")
	s := newRig(t, files)
	s.put("ada/busy", "")
	s.must("channel", "say", "talk", "p-1")
	shown := s.floorUntil("talk", "ada works", func(v view.ChannelView) bool {
		return v.Holder == "ada" && v.Deadline != nil && member(v, "ada").Working && len(s.books("ada").told["ada"]) == 1
	})
	s.kill()
	wait.Pause(time.Until(*shown.Deadline))
	s.up()
	s.floorUntil("talk", "bob has said something", func(view.ChannelView) bool { return len(s.books("bob").said["bob"]) > 0 })
	s.drop("ada/busy")
	moved := []string{}
	for _, e := range s.entries("talk") {
		if e.Kind == channels.EntryMoved && (e.Row == "T9" || e.Row == "T4") || e.Kind == channels.EntryNotice {
			moved = append(moved, entryLine(e))
		}
	}
	if want := []string{
		"ada QUEUED -> ACTIVE T4", "ada ACTIVE -> QUEUED T9", "notice: ⏱️ ada turn timed out",
		"bob QUEUED -> ACTIVE T4",
	}; !slices.Equal(moved[:min(4, len(moved))], want) {
		t.Errorf("it went %q, want %q", moved, want)
	}
}

// The daemon dies at random moments of a lively channel; agents and shims live. Each prompt
// is typed once, each message is there once, each thing said is there once.
func TestKilledDaemonOfAChannel(t *testing.T) {
	t.Parallel()
	s := newRig(t, threeTalkers())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var sent []string
	rounds := 5
	if testsize.Race {
		rounds = 2
	}
	for round := range rounds {
		for i := range 2 {
			text := fmt.Sprintf("p-%d-%d", round, i)
			s.must("channel", "say", "talk", text, "--mode", []string{"queue", "inject", "parallel"}[rnd.IntN(3)])
			sent = append(sent, text)
		}
		wait.Pause(time.Duration(rnd.IntN(250)) * time.Millisecond) // the random moment
		s.kill()
		s.up()
	}
	s.audited("talk", sent, "ada", "bob", "eve", "lea")
	if n := len(turnsTaken(s.entries("talk"))); n < 3 {
		t.Errorf("only %d turns were taken", n)
	}
	s.turnsLogged()
	if folders, err := os.ReadDir(filepath.Join(s.dir, ".fairlead", "sessions")); err != nil || len(folders) > 4 {
		t.Errorf("%d sessions for four talkers: %v", len(folders), err)
	}
}

// turnsLogged wants logs/turns.jsonl to tell each move of an agent once, in order (X6). The daemon
// writes it beside its work, so it has a moment for it.
func (s *rig) turnsLogged() {
	s.t.Helper()
	var all []logLine
	client := s.client()
	for after := uint64(0); ; {
		page, err := client.Journal(s.t.Context(), apiclient.JournalQuery{After: after})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, ch := range page.Changes {
			after = ch.Seq
			if ch.Machine == "turn" && ch.From != "" && ch.From != ch.To {
				all = append(all, logLine{ch.Seq, ch.Entity, ch.From, ch.To, ch.Row})
			}
		}
		if len(page.Changes) == 0 {
			break
		}
	}
	if len(all) == 0 {
		s.t.Error("nobody moved")
	}
	why := ""
	s.poll("the log of turns tells every move", func() bool {
		logged, err := logTold(filepath.Join(s.dir, ".fairlead", "log", "turns.jsonl"))
		if why = differ(all, logged); err != nil {
			why = err.Error()
		}
		return why == "" || strings.HasPrefix(why, "line ")
	})
	if why != "" {
		s.t.Errorf("the log of turns: %s", why)
	}
}
