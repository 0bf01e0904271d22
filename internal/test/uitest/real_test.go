package uitest_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestAgainst runs the scenarios against a running daemon, with an agent whose sessions end by
// themselves and begin with a known text, as those of fairlead demo do:
//
//	PAGE='http://127.0.0.1:7466/?token=…' AGENT=coder SAYS=Session go test -count=1 -run TestAgainst ./internal/test/uitest
//
// With WORKFLOW, a file whose run proceeds by itself as that of RealTarget does, it also runs the
// scenarios of runs.
func TestAgainst(t *testing.T) {
	t.Parallel()
	page, agent, says := os.Getenv("PAGE"), os.Getenv("AGENT"), os.Getenv("SAYS")
	if page == "" || agent == "" || says == "" {
		t.Skip("needs a running daemon; set PAGE, AGENT and SAYS")
	}
	uitest.RunAll(t, func(t *testing.T) uitest.Target {
		rest(t, page, agent)
		target := uitest.Target{URL: page, Line: uitest.NewLine(t, page), Agent: agent, Says: says, Finish: func() {}}
		if file := os.Getenv("WORKFLOW"); file != "" {
			target.Workflow = &uitest.Workflow{File: file}
		}
		return target
	})
}

// rest pauses the agent through the page, as a person does.
func rest(t *testing.T, page, agent string) {
	t.Helper()
	p := uitest.Browse(t)
	p.OpenTeam(page)
	p.Choose(agent)
	p.Until("orders can be given", `document.querySelector('.orders .order') && !document.querySelector('.orders .order[aria-disabled]')`)
	if uitest.Eval[bool](p, `!!document.querySelector('.orders .order-stop')`) {
		p.Click(".orders", "Stop Agent")
	}
	p.WaitText(".agent-title .badge", "IDLE")
}

// TestAgainstCrew runs the scenario of a crew against a running daemon that has never summoned one,
// with a lead that answers by itself, as that of examples/crew does:
//
//	PAGE='http://127.0.0.1:7466/?token=…' CREW=julian go test -count=1 -run TestAgainstCrew ./internal/test/uitest
//
// STORY names another scenario of a crew; each needs a new daemon. With PICTURE, a file, it takes a
// picture of the crew at the end.
func TestAgainstCrew(t *testing.T) {
	t.Parallel()
	page, lead := os.Getenv("PAGE"), os.Getenv("CREW")
	if page == "" || lead == "" {
		t.Skip("needs a running daemon; set PAGE and CREW")
	}
	line := uitest.NewLine(t, page)
	p := uitest.Browse(t, line)
	target := uitest.Target{URL: page, Line: line, Agent: lead, CrewStory: uitest.RealCeremony(lead)}
	story := os.Getenv("STORY")
	if story == "" {
		story = "a crew on two pages"
	}
	told := false
	for _, s := range uitest.Scenarios() {
		if s.Name == story {
			s.Run(t, p, target)
			told = true
		}
	}
	if !told {
		t.Fatalf("there is no scenario %q", story)
	}
	if picture := os.Getenv("PICTURE"); picture != "" {
		p.Screenshot(picture)
	}
	p.NoConsoleErrors()
}
