package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// rounds of the crash tests; FAIRLEAD_CRASH_ROUNDS makes them more, as doc/testing.md says.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("FAIRLEAD_CRASH_ROUNDS")); err == nil && n > 0 {
		return n
	}
	if testsize.Race {
		return 4
	}
	return 10
}

// counting is a program that says numbered lines, and puts each into its ledger after it was said.
const counting = `echo $FAIRLEAD_SESSION >> starts
trap 'stopped=1' TERM
i=0
while [ $i -lt 60 ] && [ ! "$stopped" ]; do
	i=$((i + 1))
	echo "$FAIRLEAD_SESSION $i/60"
	echo "$FAIRLEAD_SESSION $i/60" >> "ledger-$FAIRLEAD_SESSION"
	sleep 0.004
done
`

// DESIGN: "no strays, no doubles, nothing lost". The daemon is killed at random moments
// while three agents count aloud; each keeps a ledger of what it said.
func TestKilledDaemon(t *testing.T) {
	underRace(t)
	names := []string{"ada", "bob", "eve"}
	yaml := "version: 1\nagents:\n"
	for _, name := range names {
		yaml += fmt.Sprintf("  %s:\n    driver: exec\n    command: [sh, ../count.sh]\n    workspace: %s\n", name, name)
	}
	s := newRig(t, map[string]string{"fairlead.yaml": yaml, "count.sh": counting})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	wanted := map[string]string{}
	for _, name := range names {
		s.must("start", name)
		wanted[name] = "continuous"
	}
	for range rounds() {
		// A command whose answer came is safe, whatever happens next.
		name := names[rnd.IntN(len(names))]
		verb, desired := "stop", "pause"
		if wanted[name] == "pause" {
			verb, desired = "start", "continuous"
		}
		s.must(verb, name)
		wanted[name] = desired
		wait.Pause(time.Duration(rnd.IntN(300)) * time.Millisecond) // the random moment
		s.kill()
		wait.Pause(time.Duration(rnd.IntN(150)) * time.Millisecond)
		s.up()
		view := s.view()
		for _, agent := range view.Agents {
			if agent.DesiredState != wanted[agent.Name] {
				t.Fatalf("%s: %s was wanted and acknowledged; after the crash it is %s", agent.Name, wanted[agent.Name], agent.DesiredState)
			}
		}
	}
	for _, name := range names {
		s.must("stop", name, "--wait")
	}
	for _, name := range names {
		s.checkSessions(name)
	}
}

func (s *rig) view() view.TeamView {
	s.t.Helper()
	view, err := s.client().Agents(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return view
}

// checkSessions compares what the journal says of an agent's sessions with what the agent
// itself kept: who was started, how often, and every byte.
func (s *rig) checkSessions(name string) {
	t := s.t
	t.Helper()
	ran := map[string]bool{}
	page, err := s.client().Journal(context.Background(), apiclient.JournalQuery{Entity: "session/" + name})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range page.Changes {
		if ch.To != "running" {
			continue
		}
		var data struct {
			Session struct {
				ID string `json:"id"`
			} `json:"session"`
		}
		if err := json.Unmarshal(ch.Data, &data); err != nil {
			t.Fatal(err)
		}
		if data.Session.ID != "" {
			ran[data.Session.ID] = true
		}
	}
	started := s.lines(name + "/starts")
	if twice := len(started) - len(slices.Compact(slices.Sorted(slices.Values(started)))); twice > 0 {
		t.Errorf("%s: %d sessions were started twice: %v", name, twice, started)
	}
	journaled := slices.Sorted(maps.Keys(ran))
	if sorted := slices.Sorted(slices.Values(started)); !slices.Equal(sorted, journaled) {
		t.Errorf("%s: started %v, journaled %v", name, sorted, journaled)
	}
	for _, id := range started {
		ledger, err := os.ReadFile(filepath.Join(s.dir, name, "ledger-"+id))
		if err != nil {
			t.Errorf("%s was started and counted nothing: %v", id, err)
			continue
		}
		spool, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "sessions", id, "spool"))
		if err != nil {
			t.Fatal(err)
		}
		if said := saidLines(t, spool); said != string(ledger) {
			t.Errorf("%s: the agent said %d bytes, %d of them were kept:\n%q\n%q", id, len(ledger), len(said), tail(string(ledger)),
				tail(said))
		}
	}
	t.Logf("%s: %d sessions, every line of each kept once", name, len(started))
}

// saidLines is what a scripted agent said, without the words around it.
func saidLines(t *testing.T, spool []byte) string {
	t.Helper()
	var said strings.Builder
	for line := range strings.Lines(string(spool)) {
		var fact struct {
			Type string `json:"type"`
		}
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &fact) == nil {
			continue
		}
		said.WriteString(line)
	}
	return said.String()
}

func tail(s string) string { return s[max(0, len(s)-80):] }

const breeding = `steps:
  - run: |
      sh -c 'echo $$ >> pids; exec sleep 1000' > /dev/null 2>&1 &
      setsid sh -c 'echo $$ >> pids; exec sleep 1000' > /dev/null 2>&1 &
      (setsid sh -c 'echo $$ >> pids; exec sleep 1000' > /dev/null 2>&1 &)
  - hang: until the test kills this process
`

// An agent that is killed takes its children, and theirs, with it: however they detached.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml":     "version: 1\nagents:\n  ada:\n    driver: script\n    script: breed.script.yaml\n    workspace: ada\n    failures_max: 1000\n    backoff: {first: 1ms, max: 1ms}\n",
		"breed.script.yaml": breeding,
	})
	s.must("start", "ada")
	for round := range rounds() {
		why := s.until("ada", "its three children are there", func(why view.WhyView) bool {
			session := why.Agent.Session
			return session != nil && session.Phase == "running" && session.ID == fmt.Sprintf("ada-%d", round+1) && s.born() == 3*(round+1)
		})
		if err := syscall.Kill(why.Agent.Session.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.until("ada", "its end is known", func(now view.WhyView) bool {
			return len(now.Sessions) > round && now.Sessions[len(now.Sessions)-1-round].EndedAt != nil || len(now.Sessions) > round+1
		})
		for _, line := range s.lines("ada/pids")[3*round:] {
			pid, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(err)
			}
			if command, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil &&
				strings.TrimSpace(string(command)) == "sleep" && round*3+3 == s.born() {
				t.Errorf("process %d outlived its agent", pid)
			}
		}
	}
	s.must("stop", "ada")
}

// born counts the children that have said that they exist.
func (s *rig) born() int {
	text, err := os.ReadFile(filepath.Join(s.dir, "ada", "pids"))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}
