package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	crewcli "github.com/fairlead-dev/fairlead/cli/crew"
	"github.com/fairlead-dev/fairlead/files/prompts"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/read/view"
)

// member of a crew, as a view has it.
func crewMember(id, name, status string, seat int, alive time.Duration) view.DocumentView {
	now := time.Now().Add(-time.Second / 2)
	doc := view.DocumentView{ID: id, Status: status, Seat: seat, CreatedAt: now.Add(-40 * time.Second).Format(time.RFC3339Nano)}
	if name != "" {
		doc.Name = &name
	}
	if alive > 0 {
		at := now.Add(-alive).Format(time.RFC3339Nano)
		doc.LastAliveAt = &at
	}
	return doc
}

// The page of a team in each of its lives: whatever others wrote is one harmless line, and all
// of it fits into 80 columns.
func TestTeamPage(t *testing.T) {
	for name := range teamPages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // no time passes between a page and what it says of it
				var out bytes.Buffer
				if err := crewcli.PrintCrew((&cli.App{Out: &out}), teamPages()[name]); err != nil {
					t.Fatal(err)
				}
				for l := range strings.Lines(out.String()) {
					if l = strings.TrimSuffix(l, "\n"); cli.Columns(l) > 80 && !strings.Contains(l, "very") &&
						!strings.Contains(l, "silent") {
						t.Errorf("%d columns: %s", cli.Columns(l), l)
					}
				}
				if strings.ContainsAny(out.String(), "\x1b\x07\u202e") {
					t.Errorf("it is not harmless: %q", &out)
				}
				golden.Check(t, filepath.Join("testdata", "team", strings.ReplaceAll(name, " ", "-")+".txt"),
					strings.ReplaceAll(out.String(), cli.Clock(time.Time{}), "HH:MM:SS"))
			})
		})
	}
}

// teamPages are views of a team, as they are now.
func teamPages() map[string]view.CrewView {
	reported := time.Now().Add(-12*time.Second - time.Second/2)
	heard := view.LeadView{Agent: "julian", Session: "julian-3", State: view.LeadHeard, Seat: 4, ReportedAt: &reported}
	hostile := "\x1b[31mEve\x07\u202e\nroot: " + strings.Repeat("very ", 40) + "long"
	return map[string]view.CrewView{
		"never": {Button: "SUMMON", Size: 8, Lead: view.LeadView{Agent: "julian", State: view.LeadAsleep, Seat: 4}},
		"nobody leads": {
			Button: "SUMMON", Size: 8, Lead: view.LeadView{State: view.LeadAsleep, Seat: 4},
		},
		"hatching": {Button: "WAKING…", InProgress: "summoning", Size: 2, Lead: heard, Agents: []view.DocumentView{
			crewMember("agent-1", "", "hatching", 0, 0), crewMember("agent-2", "Kael", "alive", 1, 2*time.Second),
		}},
		"mixed": {Button: "WAKE", Size: 8, Lead: heard, Agents: []view.DocumentView{
			crewMember("agent-1", "Lyra", "alive", 0, 12*time.Second), crewMember("agent-2", "Kael", "sleeping", 1, 3*time.Minute),
			crewMember("zoe", "Zoë", "sleeping", 5, 0), crewMember("eve", hostile, hostile, 8, time.Hour),
			crewMember("agent-9", "", "expired", 7, 0),
		}},
		"unknown": {
			Button: "WAKE", Size: 8,
			Lead:   view.LeadView{Agent: "julian", State: view.LeadWaits, Seat: 4, Why: "julian-2 (turn) holds its seat"},
			Agents: []view.DocumentView{crewMember("agent-1", "Lyra", "unknown", 0, 2*time.Hour)},
			Notices: []view.NoticeView{
				{Kind: "silent", Text: "the lead was asked who is awake, and has not said so for 30 s"},
				{Kind: hostile, Text: hostile},
			},
		},
		"awake": {
			Button: "none", Size: 8, Lead: heard,
			Agents: []view.DocumentView{crewMember("agent-1", "Lyra", "alive", 0, time.Second)},
		},
	}
}

// Who is not awake when a wake is over is named, with what is known of why.
func TestNotAwake(t *testing.T) {
	t.Parallel()
	before := view.CrewView{Notices: []view.NoticeView{{Kind: "fault", Text: "old"}}}
	view := view.CrewView{
		Lead: view.LeadView{Agent: "julian", State: view.LeadUnheard},
		Agents: []view.DocumentView{
			crewMember("a", "Lyra", "alive", 0, time.Second), crewMember("b", "Kael", "unknown", 1, time.Hour),
			crewMember("c", "", "expired", 2, 0),
		},
		Notices: append(before.Notices, view.NoticeView{Kind: "silent", Text: "new"}),
	}
	if err := crewcli.NotAwake(view, []string{"a", "gone"}, before); err != nil {
		t.Errorf("%v", err)
	}
	err := crewcli.NotAwake(view, []string{"a", "b", "c"}, before)
	if err == nil || err.Error() != "Kael is unknown: the lead has not reported yet\n(c) is expired: did not become an agent\nsilent: new" {
		t.Errorf("%v", err)
	}
	if got := crewcli.Outcome(view, []string{"a", "b", "c"}); got != "1 of 3 are awake: Lyra" {
		t.Error(got)
	}
}

// The words for faces that a lead is told are those for which the page has a drawing.
func TestFaceWords(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "ui", "static", "crew", "face.js"))
	if err != nil {
		t.Fatal(err)
	}
	for list, begins := range map[string]string{"EYES": "Eyes that can be drawn: ", "MOUTHS": "Mouths: "} {
		_, words, _ := strings.Cut(string(source), "export const "+list+" = [")
		words, _, ok := strings.Cut(words, "]")
		want := begins + strings.ReplaceAll(words, "'", "") + "."
		for of, told := range map[string]string{
			"LEAD.md":  prompts.LeadInstructions("julian"),
			"a summon": prompts.ForSummon([]int{0}, "julian"),
		} {
			if !ok || !strings.Contains(told, want) {
				t.Errorf("%s does not say %q", of, want)
			}
		}
	}
}
