package uitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// pictures returns the folder for pictures of the page, for people to look at:
//
//	PICTURES=folder go test -run TestPictures ./internal/test/uitest
func pictures(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	return dir
}

// TestPictures takes pictures of agents, a run and the inbox in all their states.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir := pictures(t)
	target := uitest.RealTarget(t, "")
	url := target.URL
	p := uitest.Browse(t, target.Line)
	shot := func(name string) { p.Screenshot(filepath.Join(dir, name+".png")) }
	p.OpenTeam(url)
	p.Choose("coder")
	p.Click(".orders", "Start Agent")
	p.WaitText(".tape", target.Says)
	target.Say("\x1b[36m●\x1b[0m Edit(berth/table.go)\n  └ \x1b[32m+12\x1b[0m \x1b[31m-3\x1b[0m\nRunning the tests again.\n")
	p.WaitText(".tape", "Running the tests again")
	target.Workflow.Loop()
	p.Click(".places", "Runs")
	p.Click(".run-tools", "Start a run")
	p.WaitText("dialog", "Start a run")
	p.Until("the form has the focus", `document.activeElement.name === 'workflow'`)
	p.Press(target.Workflow.File)
	p.Click("dialog .dialog-foot", "Start")
	p.WaitText(".node-wait", "waits for you")
	run := uitest.Eval[string](p, `location.hash.split('/').slice(0, 3).join('/')`)
	for _, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		p.Open(url + "#/agents/coder/output")
		p.WaitText(".tape", "Running the tests again")
		shot(v.Name + "-agent")
		p.Click(".tabs", "Evidence")
		p.WaitText(".evidence", "yes")
		shot(v.Name + "-evidence")
		p.Click(".tabs", "History")
		p.WaitText(".history", "Ordered to run")
		shot(v.Name + "-history")
		p.Press("?")
		p.WaitText("dialog", "Keys and words")
		shot(v.Name + "-help")
		p.Click("dialog", "Close")
		p.Open(url + run + "/approve")
		p.WaitText(".step .answer", "Risk")
		shot(v.Name + "-run")
		p.Click(".run-forms", "Timeline")
		shot(v.Name + "-run-timeline")
		p.Click(".places", "Inbox")
		p.WaitText(".inbox", "Risk")
		shot(v.Name + "-inbox")
		p.Click(".places", "Team")
		p.WaitText(".roster", "coder")
		shot(v.Name + "-team")
	}
	p.Press("h")
	p.WaitText("dialog", "Nothing new starts")
	shot("phone-dark-hold-asked")
	p.Resize(uitest.Desktop)
	shot("desktop-dark-hold-asked")
	p.Click("dialog", "Hold the team")
	p.WaitText(".banners", "held")
	shot("desktop-dark-held")
	target.Line.Cut()
	p.WaitText(".banners", "Cut off since")
	shot("desktop-dark-cut")
	p.Resize(uitest.Phone)
	shot("phone-dark-cut")
	p.NoConsoleErrors()

	limited, words := uitest.RealLimited(t)
	refused := uitest.Browse(t)
	refused.OpenTeam(limited.URL)
	refused.Choose(limited.Agent)
	refused.Click(".orders", "Run Single Session")
	refused.WaitText(".notes", words)
	refused.Screenshot(filepath.Join(dir, "desktop-dark-refused.png"))

	empty := uitest.Browse(t)
	empty.OpenTeam(uitest.NewServer(t, map[string]string{"fairlead.yaml": "version: 1\nagents: {}\n"}).URL)
	empty.WaitText(".roster", "No agents yet")
	empty.Screenshot(filepath.Join(dir, "desktop-dark-empty.png"))

	many := uitest.Browse(t)
	many.OpenTeam(crowd(t, 1000).URL)
	many.WaitText(".roster", "agent-000")
	many.Screenshot(filepath.Join(dir, "desktop-dark-crowd.png"))
}

// TestPicturesOfChannels takes pictures of channels in their states.
func TestPicturesOfChannels(t *testing.T) {
	t.Parallel()
	dir := pictures(t)
	agents := []string{"coder", "reviewer", "tester"}
	g := uitest.NewGuests(t,
		uitest.GuestsYAML("channels:\n  reviews: {agents: [coder, reviewer, tester]}\n  release: {agents: [tester]}\n  gardening: {agents: [coder, reviewer], maxRounds: 1}\n  empty: {agents: [coder], humanInterruptMode: queue}\n", agents...), agents...)
	g.Hear("gardening", "Which of the old berth tables is unused?", "")
	g.Converse("gardening", 2)
	g.Hear("release", "Tag 0.9 when the tests are green, and not before.", "")
	g.Wait("release", "the signature of a person")
	g.Hear("reviews", "A vessel that leaves early must free its berth. What does section 4 of PLAN.md break?", "")
	g.Say("reviews", "I have added `Released`:\n\n```go\nMoored: {\n\tLeft: {To: Free},\n},\n```", true)
	g.Pass("reviews")
	g.Hear("reviews", "Stop: is berth 7 the one on the north quay?", "interrupt")
	g.Answer("reviews", "Yes. North quay, between the crane and the bunker.")
	g.Late("reviews", "coder", 1, "--- FAIL: TestReleaseTwice (0.00s)")
	g.Say("reviews", "Reading the change again.", false)
	g.Hear("reviews", "And please name the case in the manual.", "queue")
	p := uitest.Browse(t)
	for _, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		shot := func(name string) { p.Screenshot(filepath.Join(dir, "channel-"+v.Name+"-"+name+".png")) }
		p.Open(g.URL + "#/channels")
		p.WaitText(".channel-list", "reviews")
		shot("list")
		for _, name := range []string{"reviews", "release", "gardening", "empty"} {
			p.Open(g.URL + "#/channels/" + name)
			p.WaitText("#channel-title", name)
			p.Until("its words are shown", `document.querySelector('.say, .entries-empty')`)
			shot(name)
			if v.Size == uitest.Phone {
				p.Click(".sides", "Rotation")
				shot(name + "-rotation")
			}
		}
		p.Open(g.URL + "#/agents/tester/output")
		p.WaitText(".turn-chips", "reviews")
		shot("agent")
	}
	p.NoConsoleErrors()
}

// TestPicturesOfSessions takes pictures of a dispatch in all its states.
func TestPicturesOfSessions(t *testing.T) {
	t.Parallel()
	dir := pictures(t)
	const agent = "fullstack-engineer"
	empty := uitest.NewServer(t, uitest.OneAgent)
	d := uitest.NewDispatchByHand(t)
	d.Input("Please write it down")
	d.Deny(agent)
	d.Delegate(agent, "Create hello_world.py and run it.")
	d.Made("hello_world.py", "print(\"Hello, World!\")\n")
	d.Done("hello_world.py is written.")
	d.Respond("The script is in outputs/hello_world.py, and it runs.")
	d.Input("Now a server that serves it, please")
	d.Deny(agent)
	d.Delegate(agent, "Write a web server that serves hello_world.py.")
	d.Input("And then write release notes for it")
	p := uitest.Browse(t)
	for _, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		shot := func(name string) { p.Screenshot(filepath.Join(dir, "sessions-"+v.Name+"-"+name+".png")) }
		p.Open(empty.URL + "#/dispatch")
		p.WaitText(".session-list", "No dispatch yet")
		shot("empty")
		p.Open(d.URL + "#/dispatch")
		p.WaitText(".session-list", d.Name)
		shot("list")
		p.Click(".session-list", d.Name)
		p.WaitText(".state-now", "FULLSTACK_ENGINEER")
		shot("one")
		uitest.Eval[bool](p, `(document.querySelector('.session-pane').scrollTop = 700, true)`)
		shot("further")
		p.Click(".convs", "conv_001")
		p.WaitText(".dialogue", "reports")
		p.Click(".output-file", "Show")
		p.WaitText(".output-file-text", "Hello, World")
		shot("conversation")
		p.Press("d")
		p.WaitText(".session-list", d.Name)
		p.Click(".session-list", "Start a dispatch")
		p.WaitText("dialog", "Who does the work")
		shot("start")
	}
	p.NoConsoleErrors()
}
