package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/doctor"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// takes is a check that takes so many seconds and finds one thing.
func takes(name string, seconds int) doctor.Check {
	return doctor.Check{Name: name, Check: func(context.Context) []doctor.Finding {
		if seconds > 0 {
			wait.Elapse(time.Duration(seconds) * time.Second)
		}
		return []doctor.Finding{{OK: true, About: name, What: "looked at"}}
	}}
}

// Checks run side by side, and never more of them than so many.
func TestDoctorLooksSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		var checks []doctor.Check
		for i := range 3 * doctor.ChecksAtOnce {
			checks = append(checks, doctor.Check{Name: fmt.Sprint(i), Check: func(context.Context) []doctor.Finding {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				wait.Elapse(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return nil
			}})
		}
		begun := time.Now()
		doctor.Run(t.Context(), &cli.App{Out: io.Discard}, checks, false)
		if took := time.Since(begun); most != doctor.ChecksAtOnce || took != 3*time.Second {
			t.Errorf("%d at once, %s in all", most, took)
		}
	})
}

// The lines are in the order of the checks, whichever ends first.
func TestDoctorHasOneOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		found := doctor.Run(t.Context(), &cli.App{Out: &out}, []doctor.Check{takes("a", 3), takes("b", 1), takes("c", 2)}, false)
		if order(out.String()) != "a b c" || len(found) != 3 || found[0].About != "a" {
			t.Errorf("%q, %v", out.String(), found)
		}
		if strings.ContainsAny(out.String(), "\r…") {
			t.Errorf("a pipe is told what is waited for: %q", out.String())
		}
	})
}

// A terminal is told what is waited for, in a line that never breaks; what is left in the end are the findings.
func TestDoctorOnATerminalTellsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer screen.Close()
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 20, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	go func() {
		all, _ := io.ReadAll(screen) // it ends with an error when the terminal is closed
		seen <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	long := "agent " + strings.Repeat("a", 50)
	through, end := cli.Terminal(terminal)
	doctor.Run(t.Context(), &cli.App{Out: through}, []doctor.Check{takes("a", 0), takes(long, 0)}, false)
	if err := errors.Join(end(), terminal.Close()); err != nil {
		t.Fatal(err)
	}
	out := <-seen
	if !strings.Contains(out, "… waits for a (1 of 2)") || !strings.Contains(out, "… waits for agent aaa") {
		t.Errorf("it does not say what it waits for: %q", out)
	}
	for line := range strings.FieldsFuncSeq(out, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if strings.HasPrefix(line, "…") && len([]rune(line)) > 29 {
			t.Errorf("the line breaks: %q", line)
		}
	}
	if left := remains(out); strings.Contains(left, "…") || !strings.Contains(left, "looked at") {
		t.Errorf("this is left: %q", left)
	}
}

// A finding that --fix repairs is shown once, after the fix; without --fix it is shown as it is.
func TestDoctorHoldsBackWhatItMends(t *testing.T) {
	t.Parallel()
	broken := doctor.Finding{About: "socket", What: "stale", Fix: func(context.Context) (string, error) { return "removed", nil }}
	checks := []doctor.Check{{Name: "sockets", Check: func(context.Context) []doctor.Finding {
		return []doctor.Finding{broken, {About: "disk", What: "full"}}
	}}}
	var out bytes.Buffer
	a := &cli.App{Out: &out}
	if doctor.Run(t.Context(), a, checks, false); !strings.Contains(out.String(), "stale") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	found := doctor.Run(t.Context(), a, checks, true)
	if strings.Contains(out.String(), "stale") || !strings.Contains(out.String(), "full") {
		t.Errorf("%q", out.String())
	}
	found = doctor.Repair(t.Context(), found, func(f doctor.Finding) { doctor.PrintFinding(a, f) })
	if !strings.Contains(out.String(), "stale: removed") || !found[0].OK || found[1].OK {
		t.Errorf("%q, %v", out.String(), found)
	}
}

// A program that an agent uses is reported once: its own check waits for the agents' checks.
func TestDoctorMeetsAProgramOnce(t *testing.T) {
	t.Parallel()
	agents := []config.Agent{{Name: "dev", Driver: config.DriverACP, Command: []string{"opencode", "acp"}}}
	waited := 0
	met := func() []doctor.Finding {
		waited++
		return []doctor.Finding{{Program: &probe.Program{Path: "/bin/opencode"}}}
	}
	program := func(file, path string) setup.FoundProgram {
		return setup.FoundProgram{AgentProgram: setup.AgentProgram{File: file, Driver: config.DriverACP}, Path: path}
	}
	if doctor.Uses(agents, met, program("qwen", "/bin/qwen")) || waited != 0 {
		t.Error("a program that no agent can be waits, or is said to be one")
	}
	if !doctor.Uses(agents, met, program("opencode", "/bin/opencode")) || waited != 1 {
		t.Error("it would be greeted twice")
	}
	if doctor.Uses(agents, met, program("opencode", "/opt/opencode")) {
		t.Error("another one of that name is not looked at")
	}
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
