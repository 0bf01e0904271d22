package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/doctor"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// takes is a visit that takes so many seconds and finds one thing.
func takes(about string, seconds int) doctor.Visit {
	return doctor.Visit{About: about, Look: func(_ context.Context, say func(...doctor.Finding)) {
		wait.Elapse(time.Duration(seconds) * time.Second)
		say(doctor.Finding{OK: true, About: about, What: "looked at"})
	}}
}

// shown runs a round, and returns its output, its findings and its duration.
func shown(visits []doctor.Visit, terminal bool) (string, []doctor.Finding, time.Duration) {
	var out bytes.Buffer
	a := &cli.App{Out: &out}
	b := doctor.Board(a, visits, nil)
	if terminal {
		b.Term, b.Cols = &out, 60
		b.Gone.Go(b.Ticks)
	}
	begun := time.Now()
	found := doctor.Round(context.Background(), visits, b)
	return out.String(), found, time.Since(begun)
}

// Programs load side by side, and never more of them than so many.
func TestDoctorLooksSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		var visits []doctor.Visit
		for i := range 3 * doctor.VisitsAtOnce {
			visits = append(visits, doctor.Visit{About: fmt.Sprint(i), Look: func(context.Context, func(...doctor.Finding)) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				wait.Elapse(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
			}})
		}
		_, _, took := shown(visits, false)
		if most != doctor.VisitsAtOnce || took != 3*time.Second {
			t.Errorf("%d at once, %s in all", most, took)
		}
	})
}

// A check that starts no program does not occupy a place for one.
func TestDoctorDoesNotQueueWhatStartsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		visits := []doctor.Visit{takes("a", 2), takes("b", 2), takes("c", 2), takes("d", 2), {About: "journal", Free: true, Look: takes("journal", 2).Look}}
		if _, _, took := shown(visits, false); took != 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// On a pipe, the lines are in the order of the checks, whichever ends first.
func TestDoctorPipedHasOneOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, found, _ := shown([]doctor.Visit{takes("a", 3), takes("b", 1), takes("c", 2)}, false)
		if order(out) != "a b c" || len(found) != 3 || found[0].About != "a" {
			t.Errorf("%q, %v", out, found)
		}
		if strings.ContainsAny(out, "\r…") {
			t.Errorf("a pipe is told what is waited for: %q", out)
		}
	})
}

// On a terminal each line comes as it is known, and the last line says what is waited for; what is
// left in the end are the findings.
func TestDoctorOnATerminalTellsAsItGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, found, _ := shown([]doctor.Visit{takes("a", 3), takes("b", 1), takes("c", 2), takes("d", 5), takes("e", 1)}, true)
		if got := order(remains(out)); got != "b c e a d" && got != "b e c a d" {
			t.Errorf("they came as %s in %q", got, out)
		}
		for _, want := range []string{"… 200 ms, waits for a, b, c, d; 1 to go", "… 4 s, waits for d"} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q: %q", want, out)
			}
		}
		if strings.Contains(remains(out), "…") {
			t.Errorf("this is left: %q", remains(out))
		}
		if len(found) != 5 || found[0].About != "a" {
			t.Errorf("in the end it has %v", found)
		}
	})
}

// A finding that --fix repairs is shown once, after the fix.
func TestDoctorHoldsBackWhatItMends(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &cli.App{Out: &out}
	broken := doctor.Finding{About: "socket", What: "stale", Fix: func(context.Context) (string, error) { return "removed", nil }}
	visits := []doctor.Visit{{About: "sockets", Look: func(_ context.Context, say func(...doctor.Finding)) {
		say(broken, doctor.Finding{About: "disk", What: "full"})
	}}}
	found := doctor.Round(context.Background(), visits, doctor.Board(a, visits, func(f doctor.Finding) bool { return f.Fix != nil }))
	if strings.Contains(out.String(), "stale") || !strings.Contains(out.String(), "full") {
		t.Errorf("%q", out.String())
	}
	found = doctor.Repair(context.Background(), found, func(f doctor.Finding) { doctor.PrintFinding(a, f) })
	if !strings.Contains(out.String(), "stale: removed") || !found[0].OK || found[1].OK {
		t.Errorf("%q, %v", out.String(), found)
	}
}

// The line that says what is waited for never breaks.
func TestDoctorWaitingLineFits(t *testing.T) {
	t.Parallel()
	about := []string{"agent " + strings.Repeat("a", 50), "program qwen", "program opencode"}
	text := doctor.UnderWay(about, []doctor.VisitState{doctor.VisitUnderWay, doctor.VisitUnderWay, doctor.VisitAhead}, time.Minute, 30)
	if len([]rune(text)) > 30 || !strings.HasSuffix(text, "…") {
		t.Errorf("%q", text)
	}
	if text := doctor.UnderWay(about, []doctor.VisitState{doctor.VisitDone, doctor.VisitDone, doctor.VisitDone}, time.Minute, 30); text != "" {
		t.Errorf("nothing is waited for, and it says %q", text)
	}
}

// A program that an agent uses is reported once: its own check waits for the agent's check.
func TestDoctorMeetsAProgramOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		met := &doctor.AgentsMet{Agents: []config.Agent{{Name: "dev", Driver: config.DriverACP, Command: []string{"opencode", "acp"}}}, Paths: map[string]bool{}}
		met.Wait.Go(func() {
			wait.Elapse(time.Second)
			met.Add([]doctor.Finding{{Program: &probe.Program{Path: "/bin/opencode"}}})
		})
		begun := time.Now()
		if met.Has(setup.FoundProgram{AgentProgram: setup.AgentProgram{File: "qwen", Driver: config.DriverACP}, Path: "/bin/qwen"}) || time.Since(begun) != 0 {
			t.Error("a program that no agent can be waits, or is said to be one")
		}
		if !met.Has(setup.FoundProgram{AgentProgram: setup.AgentProgram{File: "opencode", Driver: config.DriverACP}, Path: "/bin/opencode"}) {
			t.Error("it would be greeted twice")
		}
		if met.Has(setup.FoundProgram{AgentProgram: setup.AgentProgram{File: "opencode", Driver: config.DriverACP}, Path: "/opt/opencode"}) {
			t.Error("another one of that name is not looked at")
		}
	})
}

// remains is what a terminal shows in the end, of lines that others were written over.
func remains(out string) string {
	var lines []string
	for l := range strings.Lines(out) {
		parts := strings.Split(l, "\r")
		lines = append(lines, parts[len(parts)-1])
	}
	return strings.Join(lines, "")
}

// order is whom the lines are about.
func order(out string) string {
	var about []string
	for l := range strings.Lines(out) {
		if words := strings.Fields(l); len(words) > 1 {
			about = append(about, words[1])
		}
	}
	return strings.Join(about, " ")
}
