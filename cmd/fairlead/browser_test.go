package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// fakesOnly are stories that skip themselves on a real daemon. They are named so that no browser
// and no daemon is started to find that out.
var fakesOnly = []string{
	"a_refusal", "a_faulty_run", "a_run_by_keyboard", "runs_accessible", "unheard", "waited", "hostile_talk",
	"a_channel_cut_and_restored", "channels_accessible", "a_crew_on_two_pages", "a_crew_refused", "one_is_woken", "a_crew_read",
	"a_crew_cut_and_restored", "a_crew_taken_in", "hostile_crew", "a_crew_by_keyboard", "crew_accessible",
	"a_session_denied_and_delegated", "a_session_from_here", "a_session_cut_and_restored", "a_hosted_session", "hostile_session",
	"a_session_by_keyboard", "sessions_accessible",
	"permission_given", "permission_standing", "asked_in_words", "an_answer_refused", "asks_by_keyboard", "hostile_asks",
	"what_is_known_of_a_program", "usage", "asks_accessible",
}

// The page on the real daemon, with a real agent: the stories that internal/test/uitest runs on a
// fake one. Every eighth runs, with FAIRLEAD_LONG=1 each on a desktop and on a phone. What only a fake
// can be made to do (a refusal, an agent with a hostile name) is skipped here and runs there.
func TestPage(t *testing.T) {
	t.Parallel()
	uitest.Chromium(t)
	tell, long := uitest.RunFew, testsize.Long()
	if long {
		tell = uitest.RunAll
	}
	tell(t, func(t *testing.T) uitest.Target {
		t.Parallel() // a story mostly waits for its browser
		_, story, _ := strings.Cut(t.Name(), "/")
		story, _, _ = strings.Cut(story, "/")
		switch {
		case long:
		case slices.Contains(fakesOnly, story):
			t.Skip("needs a fake; FAIRLEAD_LONG=1 tries it without one")
		case story == "accessible":
			t.Skip("looks at the same page as with a fake, in 24 states; FAIRLEAD_LONG=1 does it here too")
		}
		files := uitest.RunFiles()
		files["fairlead.yaml"] = fmt.Sprintf("version: 1\nagents:\n  coder:\n    description: Writes and changes code\n    driver: exec\n    command: [sh, -c, %q]\n    workspace: coder\n  tester:\n    description: Runs the tests\n    driver: exec\n    command: [sh, -c, 'true']\n    workspace: tester\n", uitest.TalkingScript) + uitest.MeetingYAML(strings.ReplaceAll(story, "_", " "))
		files[uitest.MeetingFile] = uitest.MeetingScript
		s := newRig(t, files)
		put := func(name, text string) {
			file, err := os.OpenFile(filepath.Join(s.dir, "coder", name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			if _, err := file.WriteString(text); err != nil {
				t.Error(err)
			}
		}
		return uitest.Target{
			URL: s.url, Agent: "coder", Line: uitest.NewLine(t, s.url), Workflow: &uitest.Workflow{File: uitest.PlanCodeReviewFile},
			ChannelStory: uitest.RealMeeting(),
			Says:         "hello from a real process",
			Say:          func(text string) { put("say", text) },
			Finish:       func() { put("finish", "") },
		}
	})
}

// The crew's page on the real daemon, with the example's lead: two pages see it summoned, asleep
// and awake again; a line that is cut dims it; documents are dropped on it. The other stories of
// a crew need a fake.
func TestCrewPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for i, name := range []string{"a crew on two pages", "a crew cut and restored", "a crew taken in", "a crew by keyboard"} {
		at := slices.IndexFunc(uitest.Scenarios(), func(s uitest.Scenario) bool { return s.Name == name })
		if at < 0 {
			t.Fatalf("no story is called %q any more", name)
		}
		story := uitest.Scenarios()[at]
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t, exampleCrew(t))
			line := uitest.NewLine(t, s.url)
			p := uitest.Browse(t, line)
			p.Resize(uitest.Views[i%2].Size)
			p.Scheme(uitest.Views[i%2].Scheme)
			story.Run(t, p, uitest.Target{URL: s.url, Line: line, Agent: "julian", CrewStory: uitest.RealCeremony("julian")})
			p.NoConsoleErrors()
		})
	}
}

// exampleCrew are the files of examples/crew, whose agents need no time to come.
func exampleCrew(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(examples.Files, "crew", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := examples.Files.ReadFile(name)
		files[strings.TrimPrefix(name, "crew/")] = strings.Replace(string(text), `PACE: "0.7"`, `PACE: "0.05"`, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
