package uitest

import (
	"fmt"
	"strings"
	"time"
)

// Crew is a team on an ordinary afternoon: some work, some rest, one is in
// trouble. It is what the pictures show.
func Crew() *Fake {
	f := NewFake("harbour-api")
	limits := Limits{Session: "2h", Cost: 50}
	f.Add(Agent{Name: "coder", Description: "Writes and changes code", Driver: "exec", Limits: limits, Usage: Usage{In: 412_300, Out: 38_120, Cost: 11.84}})
	f.Add(Agent{Name: "reviewer", Description: "Reads every change before it is merged", Driver: "claude", Limits: limits, Usage: Usage{In: 220_900, Out: 9_410, Cost: 4.02}})
	f.Add(Agent{Name: "tester", Description: "Runs the tests, writes the missing ones", Driver: "codex", Limits: Limits{Session: "1h", Tokens: 900_000, Cost: 20}, Usage: Usage{In: 801_200, Out: 61_000, Cost: 17.35}})
	f.Add(Agent{Name: "docs", Description: "Keeps the manual true", Driver: "acp", Limits: limits, Usage: Usage{In: 58_000, Out: 7_700, Cost: 0.91}})
	f.Add(Agent{Name: "dependabot", Description: "Bumps dependencies one at a time", Driver: "exec", Limits: limits})
	f.Add(Agent{Name: "gardener", Description: "Removes what nobody uses any more", Driver: "script", Limits: limits, Usage: Usage{In: 12_000, Out: 800, Cost: 0.12}})
	f.Add(Agent{Name: "night-watch", Description: "Foreign loop on the build host", Driver: "exec", Loop: "foreign"})
	f.Add(Agent{Name: "release", Description: "Tags, builds, writes the notes", Driver: "exec", Limits: limits})
	for i, n := range []string{"coder", "coder", "coder", "coder", "coder"} {
		f.Past(n, "session", []string{"ok", "ok", "failed", "ok", "ok"}[i], []string{"", "", "exit status 1: tests failed", "", ""}[i], time.Duration(58-i*10)*time.Minute, 8*time.Minute+20*time.Second, "earlier work\n")
	}
	for i := range 4 {
		f.Past("reviewer", "session", "ok", "", time.Duration(50-i*13)*time.Minute, 5*time.Minute, "reviewed\n")
		f.Past("tester", "session", []string{"ok", "failed", "failed", "failed"}[i], "exit status 2", time.Duration(48-i*12)*time.Minute, 4*time.Minute, "FAIL\n")
	}
	f.Past("docs", "cleanup", "ok", "", 31*time.Minute, 12*time.Minute, "tidied\n")
	f.Past("gardener", "session", "interrupted", "the machine was restarted", 44*time.Minute, 9*time.Minute, "…\n")
	f.Past("night-watch", "foreign", "lost", "its process vanished", 40*time.Minute, 25*time.Minute, "…\n")
	f.mu.Lock()
	defer f.mu.Unlock()
	start := func(name, verb, note string, ago time.Duration) {
		f.order(f.agent(name), verb, note)
		began := f.now().Add(-ago)
		a := f.agent(name)
		a.Session.StartedAt = began
		f.sessions[a.Session.ID].StartedAt, f.sessions[a.Session.ID].OpenedAt = began, began
		f.changes[len(f.changes)-1].Time = began
	}
	start("coder", "start", "Carry on with PLAN.md, section 4", 6*time.Minute+12*time.Second)
	start("reviewer", "start", "", 92*time.Second)
	start("docs", "cleanup", "Tidy the glossary", 4*time.Minute)
	start("night-watch", "start", "", 14*time.Minute)
	f.order(f.agent("reviewer"), "stop", "Enough for today")
	f.agent("night-watch").Doubt = "no sign of life for 6 minutes: its file says continuous, no process was found"
	tester, retry := f.agent("tester"), f.now().Add(42*time.Second)
	tester.Desired, tester.Current, tester.Badge, tester.Failures, tester.RetryAt = "continuous", "continuous", "RUNNING", 3, &retry
	tester.SetBy, tester.Note = "human", "Until the flaky ones are found"
	gardener := f.agent("gardener")
	gardener.Desired, gardener.Behind, gardener.SetBy = "run_once", "step review of run f8c1a491", "human"
	s := f.sessions[f.agent("coder").Session.ID]
	s.output = []byte(coderOutput())
	s.Bytes = len(s.output)
	return f
}

func coderOutput() string {
	var b strings.Builder
	b.WriteString("\x1b[1mReading PLAN.md\x1b[0m\n\nSection 4 asks for berths to be released when a vessel leaves early.\nI will start with the table, then the handler, then its test.\n\n")
	for i, file := range []string{"berth/table.go", "berth/release.go", "berth/release_test.go", "api/berths.go"} {
		fmt.Fprintf(&b, "\x1b[36m●\x1b[0m Edit(%s)\n  └ \x1b[32m+%d\x1b[0m \x1b[31m-%d\x1b[0m\n\n", file, 12+i*9, 3+i)
	}
	b.WriteString("\x1b[36m●\x1b[0m Bash(go test ./berth/...)\n  downloading 10%\r  downloading 60%\r  downloading 100%\n")
	b.WriteString("  ok  	harbour/berth	0.412s\n  --- FAIL: TestReleaseTwice (0.00s)\n      release_test.go:41: berth 7 was released twice\n  FAIL	harbour/api	1.031s\n\n")
	b.WriteString("A vessel that leaves twice is an answer, not a crash: the second release must be refused.\nI will name the case in the table and refuse it there.\n\n\x1b[36m●\x1b[0m Edit(berth/table.go)\n  └ \x1b[32m+4\x1b[0m \x1b[31m-1\x1b[0m\n\nRunning the tests again.\n")
	return b.String()
}
