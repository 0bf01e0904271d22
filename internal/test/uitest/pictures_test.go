package uitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPictures draws the page in all its states, for a person to look at:
//
//	PICTURES=folder go test -run TestPictures ./internal/test/uitest
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	fake := uitest.Crew()
	fake.AddRun(*uitest.PlanCodeReview("run1"))
	fake.Move("run1", "plan", "RUNNING", nil)
	workflow := fakeWorkflow(fake)
	workflow.Loop()
	workflow.Ask()
	url := fake.Serve(t)
	line := uitest.NewLine(t, url)
	p := uitest.Browse(t, line)
	shot := func(name string) { p.Screenshot(filepath.Join(dir, name+".png")) }
	p.Open(url)
	p.WaitText(".roster", "coder")
	p.WaitText(".tape", "Running the tests again")
	for _, scheme := range []string{"dark", "light"} {
		p.Scheme(scheme)
		p.Resize(uitest.Desktop)
		p.Open(url + "/#/")
		p.WaitText(".tape", "Running the tests again")
		shot("desktop-" + scheme)
		p.Click(".tabs", "Evidence")
		p.WaitText(".evidence", "shim")
		shot("desktop-" + scheme + "-evidence")
		p.Click(".tabs", "History")
		p.WaitText(".history", "#")
		shot("desktop-" + scheme + "-history")
		p.Click(".tabs", "Output")
		p.Click(".masthead", "Help")
		shot("desktop-" + scheme + "-help")
		p.Click("dialog", "Close")
		p.Resize(uitest.Phone)
		shot("phone-" + scheme + "-agent")
		p.Click(".agent-head", "Team")
		shot("phone-" + scheme + "-team")
		for size, name := range map[uitest.Size]string{uitest.Desktop: "desktop-", uitest.Phone: "phone-"} {
			p.Resize(size)
			p.Open(url + "/#/run/run1/approve")
			p.WaitText(".step .answer", "Risk")
			shot(name + scheme + "-run")
			p.Click(".run-forms", "Timeline")
			shot(name + scheme + "-run-timeline")
			p.Click(".places", "Inbox")
			p.WaitText(".inbox", "Risk")
			shot(name + scheme + "-inbox")
			p.Click(".places", "Team")
		}
	}
	p.Scheme("dark")
	p.Click(".masthead", "Hold")
	p.WaitText("dialog", "Nothing new starts")
	shot("phone-dark-hold-asked")
	p.Resize(uitest.Desktop)
	shot("desktop-dark-hold-asked")
	p.Click("dialog", "Hold the team")
	p.WaitText(".banners", "held")
	p.Click(".roster", "night-watch")
	fake.Refuse("once", "night-watch", "it runs its own loop; Fairlead only commands it")
	p.Click(".orders", "Run Single Session")
	p.WaitText(".notes", "refused")
	shot("desktop-dark-held-doubt-refused")
	line.Cut()
	p.WaitText(".banners", "Cut off since")
	shot("desktop-dark-cut")
	p.Resize(uitest.Phone)
	shot("phone-dark-cut")
	p.NoConsoleErrors()

	empty := uitest.Browse(t)
	empty.Open(uitest.NewFake("harbour-api").Serve(t))
	empty.WaitText(".roster", "No agents yet")
	empty.Screenshot(filepath.Join(dir, "desktop-dark-empty.png"))

	crowd := uitest.NewFake("harbour-api")
	for i := range 1000 {
		crowd.Add(uitest.Agent{Name: fmt.Sprintf("agent-%03d", i), Description: "One of many"})
	}
	many := uitest.Browse(t)
	many.Open(crowd.Serve(t))
	many.WaitText(".roster", "agent-000")
	many.Screenshot(filepath.Join(dir, "desktop-dark-crowd.png"))
}

// fakeWorkflow plays the run that is drawn.
func fakeWorkflow(fake *uitest.Fake) *uitest.Workflow {
	do := func(steps ...string) {
		for _, s := range steps {
			fake.Move("run1", s, "RUNNING", nil)
			fake.SayStep("run1", s, "working on "+s+"\n")
			fake.Move("run1", s, "COMPLETED", nil)
		}
	}
	return &uitest.Workflow{
		File: "workflows/plan-code-review.yaml",
		Loop: func() {
			fake.Move("run1", "plan", "COMPLETED", nil)
			do("code", "test")
			fake.Move("run1", "review", "RUNNING", nil)
			fake.LoopBack("run1", "review", "a test is missing", "code", "test")
		},
		Ask: func() {
			do("code", "test", "review")
			fake.Move("run1", "approve", "RUNNING", nil)
			fake.Move("run1", "approve", "WAITING_ON_HUMAN", func(s *uitest.Step) { s.Artifacts = []string{"artifacts/change.patch"} })
		},
		End: func() { do("release") },
	}
}
