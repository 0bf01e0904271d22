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

// Scenarios that need another team than that of RealTarget.
var (
	crewed     = []string{"a crew on two pages", "a crew cut and restored", "a crew taken in", "a crew by keyboard"}
	byHand     = []string{"a crew refused", "one is woken", "a crew read", "hostile crew", "crew accessible"}
	guests     = []string{"unheard", "waited", "channels accessible", "skipped"}
	asking     = []string{"permission given", "permission standing", "asks by keyboard"}
	submitting = []string{"asked in words", "an answer refused", "hostile asks", "what is known of a program", "usage", "asks accessible"}
	dispatch   = []string{"a hosted session"}
	byReport   = []string{
		"a session denied and delegated", "a session from here", "a session cut and restored", "hostile session",
		"a session by keyboard", "sessions accessible",
	}
)

// target returns the server that a scenario needs.
func target(t *testing.T) uitest.Target {
	_, story, _ := strings.Cut(t.Name(), "/")
	story, _, _ = strings.Cut(story, "/")
	story = strings.ReplaceAll(story, "_", " ")
	t.Parallel() // a scenario mostly waits for its browser
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
		return uitest.RealTarget(t, story)
	}
}

// TestScenarios runs every scenario, on a desktop or on a phone, with FAIRLEAD_LONG=1 on both. The scenarios about
// accessibility use all views.
func TestScenarios(t *testing.T) {
	t.Parallel()
	if testsize.Long() {
		uitest.RunAll(t, target)
	} else {
		uitest.RunEach(t, target)
	}
}

// crowd returns the real server with this number of agents, which it does not start.
func crowd(t *testing.T, agents int) *uitest.Server {
	t.Helper()
	var config strings.Builder
	config.WriteString("version: 1\nagents:\n")
	files := map[string]string{}
	for i := range agents {
		fmt.Fprintf(&config,
			"  agent-%03d: {description: One of many, driver: exec, command: [\"true\"], loop: foreign, workspace: many/%03d}\n", i, i)
		files[fmt.Sprintf("many/%03d/README", i)] = "A workspace.\n"
	}
	files["fairlead.yaml"] = config.String()
	return uitest.NewServer(t, files)
}

// bySize skips a test of size unless the sizes of .ci/run were requested.
func bySize(t *testing.T) {
	t.Helper()
	if !testsize.CI() {
		t.Skip("takes half a minute; only with FAIRLEAD_LONG=ci")
	}
}

// TestCrowd checks that a thousand agents and thousands of changes leave the page usable. The time
// is logged and not checked, because machines differ.
func TestCrowd(t *testing.T) {
	t.Parallel()
	bySize(t)
	const agents = 1000
	changes := uint64(20_000)
	s := crowd(t, agents)
	p := uitest.Browse(t)
	began := time.Now()
	p.Open(s.URL + "#/agents/agent-000") // without a name the page chooses an agent that has failed by then
	p.WaitText(".roster", "agent-000")
	t.Logf("%d agents on screen after %v", agents, time.Since(began).Round(time.Millisecond))
	if n := uitest.Eval[int](p, `document.querySelectorAll('.row').length`); n > 40 {
		t.Errorf("%d rows are drawn for %d agents; only those in sight should be", n, agents)
	}
	uitest.Eval[bool](p, `(() => {
		window.slowest = 0; window.frames = 0; let last = performance.now();
		const step = (now) => { window.slowest = Math.max(window.slowest, now - last); window.frames++; last = now; requestAnimationFrame(step); };
		requestAnimationFrame(step); return true; })()`)
	before := s.Head()
	began = time.Now()
	for round := 0; s.Head() < before+changes; round++ {
		for i := range agents {
			s.Command(fmt.Sprintf("agent-%03d", i), []string{"continuous", "pause"}[round%2])
		}
	}
	t.Logf("%d changes made after %v", s.Head(), time.Since(began).Round(time.Millisecond))
	p.Choose("agent-003")
	p.Click(".tabs", "History")
	p.Until("the newest change is shown",
		fmt.Sprintf(`document.querySelector('.change-list .change')?.dataset.seq === '%d'`, s.Newest("control/agent-003")))
	t.Logf("%d changes taken in after %v; slowest frame %d ms of %d", s.Head(), time.Since(began).Round(time.Millisecond),
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

// floodScript writes a long line and many lines when the file go exists, and then continues.
const floodScript = `wait() { until [ -e "$1" ]; do sleep 0.02; done; }
wait go
head -c 20971520 /dev/zero | tr '\0' x
echo
seq 0 19999 | sed 's/^/line /'
wait stop`

// TestFlood checks that twenty MiB in one line, and many lines, do not block the page.
func TestFlood(t *testing.T) {
	t.Parallel()
	bySize(t)
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": fmt.Sprintf("version: 1\nagents:\n  coder: {driver: exec, command: [sh, -c, %q], workspace: coder}\n",
			floodScript),
		"coder/README": "The workspace of coder.\n",
	})
	p := uitest.Browse(t)
	p.OpenTeam(s.URL)
	p.Choose("coder")
	p.Click(".orders", "Start Agent")
	p.WaitText(".agent-title .badge", "RUNNING")
	p.WaitText(".tape", "No output yet")
	began := time.Now()
	s.Put("coder/go", "")
	p.WaitText(".tape", "line 19999")
	t.Logf("20 MiB in one line and 20,000 lines shown after %v", time.Since(began).Round(time.Millisecond))
	p.WaitText(".tape", "earlier lines let go")
	if n := uitest.Eval[int](p, `document.querySelectorAll('.line').length`); n > 5001 {
		t.Errorf("%d lines are kept, want 5,000 at most", n)
	}
	p.Press("1")
	p.NoConsoleErrors()
}
