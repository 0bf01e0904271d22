package uitest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// Stories that need another team than that of RealTarget.
var (
	steered    = []string{"hostile talk", "a channel cut and mended"}
	crewed     = []string{"a crew on two pages", "a crew cut and mended", "a crew taken in", "a crew by keyboard"}
	byHand     = []string{"a crew refused", "one is woken", "a crew read", "hostile crew", "crew accessible"}
	guests     = []string{"unheard", "waited", "channels accessible", "skipped"}
	asking     = []string{"permission given", "permission standing", "asks by keyboard"}
	submitting = []string{"asked in words", "an answer refused", "hostile asks", "what is known of a program", "usage", "asks accessible"}
	dispatch   = []string{"a hosted session"}
	byReport   = []string{"a session denied and delegated", "a session from here", "a session cut and mended", "hostile session", "a session by keyboard", "sessions accessible"}
)

// target is the server that a story needs.
func target(t *testing.T) uitest.Target {
	_, story, _ := strings.Cut(t.Name(), "/")
	story, _, _ = strings.Cut(story, "/")
	story = strings.ReplaceAll(story, "_", " ")
	t.Parallel() // a story mostly waits for its browser
	switch {
	case story == "a refusal":
		limited, words := uitest.RealLimited(t)
		limited.Refuse = func() string { return words }
		return limited
	case slices.Contains(crewed, story):
		return uitest.RealCrew(t)
	case slices.Contains(byHand, story):
		return uitest.RealCrewByHand(t)
	case story == "hostile words":
		return uitest.RealLiar(t)
	case slices.Contains(guests, story):
		return uitest.RealGuests(t)
	case slices.Contains(asking, story):
		return uitest.RealAsking(t)
	case slices.Contains(submitting, story):
		return uitest.RealQuestions(t)
	case slices.Contains(byReport, story):
		return uitest.RealDispatchByHand(t)
	case slices.Contains(dispatch, story):
		return uitest.RealDispatch(t)
	default:
		return uitest.RealTarget(t, slices.Contains(steered, story))
	}
}

// Every fourth story, on a desktop or on a phone. FAIRLEAD_LONG=ci plays every story once, FAIRLEAD_LONG=1
// on both. The stories about accessibility go through all views by themselves.
func TestScenarios(t *testing.T) {
	testsize.Pick(uitest.RunFew, uitest.RunEach, uitest.RunAll)(t, target)
}

// A thousand agents and twenty thousand changes must leave the page usable. How
// long it took is told, not judged: machines differ.
func TestCrowd(t *testing.T) {
	const agents, changes = 1000, 20_000
	fake := uitest.NewFake("fleet")
	for i := range agents {
		fake.Add(uitest.Agent{Name: fmt.Sprintf("agent-%03d", i), Description: "One of many"})
	}
	p := uitest.Browse(t)
	url := fake.Serve(t)
	began := time.Now()
	p.Open(url)
	p.WaitText(".roster", "agent-000")
	t.Logf("%d agents on screen after %v", agents, time.Since(began).Round(time.Millisecond))
	if n := uitest.Eval[int](p, `document.querySelectorAll('.row').length`); n > 40 {
		t.Errorf("%d rows are drawn for %d agents; only those in sight should be", n, agents)
	}
	uitest.Eval[bool](p, `(() => {
		window.slowest = 0; window.frames = 0; let last = performance.now();
		const step = (now) => { window.slowest = Math.max(window.slowest, now - last); window.frames++; last = now; requestAnimationFrame(step); };
		requestAnimationFrame(step); return true; })()`)
	began = time.Now()
	fake.Storm(changes)
	p.Choose("agent-003")
	p.Click(".tabs", "History")
	p.WaitText(".history", fmt.Sprintf("#%d", fake.Head()-agents+4))
	t.Logf("%d changes taken in after %v; slowest frame %d ms of %d", changes, time.Since(began).Round(time.Millisecond),
		uitest.Eval[int](p, `Math.round(window.slowest)`), uitest.Eval[int](p, `window.frames`))
	began = time.Now()
	uitest.Eval[bool](p, `(document.querySelector('#search').focus(), true)`)
	p.Press("agent-99")
	p.WaitText(".roster", "agent-990")
	p.WaitGone(".roster", "agent-003")
	t.Logf("found 10 of %d after %v", agents, time.Since(began).Round(time.Millisecond))
	uitest.Eval[bool](p, `(document.querySelector('#search').blur(), true)`)
	p.NoConsoleErrors()
}

// Twenty MiB in one line, and many lines, must not stop the page.
func TestFlood(t *testing.T) {
	fake := uitest.NewFake("harbour-api")
	fake.Add(uitest.Agent{Name: "coder"})
	p := uitest.Browse(t)
	p.Open(fake.Serve(t))
	p.Choose("coder")
	p.Click(".orders", "Start Agent")
	p.WaitText(".agent-title .badge", "RUNNING")
	p.WaitText(".tape", "No output yet")
	began := time.Now()
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = 'x'
	}
	for range 20 {
		fake.Say("coder", string(chunk))
	}
	fake.Say("coder", "\n")
	for i := range 20_000 {
		fake.Say("coder", fmt.Sprintf("line %d\n", i))
	}
	p.WaitText(".tape", "line 19999")
	t.Logf("20 MiB in one line and 20,000 lines shown after %v", time.Since(began).Round(time.Millisecond))
	p.WaitText(".tape", "earlier lines let go")
	if n := uitest.Eval[int](p, `document.querySelectorAll('.line').length`); n > 5001 {
		t.Errorf("%d lines are kept, want 5,000 at most", n)
	}
	p.Press("1")
	p.NoConsoleErrors()
}
