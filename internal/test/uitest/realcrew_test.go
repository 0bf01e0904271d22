package uitest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/work/turns"
)

// silentLead reads its prompts and says nothing; the test submits the lead's reports.
const silentLead = `steps:
  - hang
lead:
  - expect_prompt
  - again
`

// Eight are the members that hatch in the stories, by seat.
var Eight = map[int]crew.Identity{
	0: member(0, "Lyra", "#c9b1e8", "Violet Heaven", "woman", "standard", "gentle",
		"I am Lyra.\n\nMy position on the wager: I would rather ask whether it is so than say that it is."),
	1: member(1, "Kael", "#3b6ea5", "Deep Current", "man", "narrow", "straight", "Kael. Short, because a name should fit into a shout."),
	2: member(2, "Mira", "#f2b705", "Saffron Morning", "woman", "wide", "smile", "They call me Mira, and I look twice."),
	3: member(3, "Oren", "#7fb685", "Moss after Rain", "man", "sleepy", "gentle", "Oren, a tree that is in no hurry."),
	5: member(5, "Sol", "#f2784b", "Amber", "nonbinary", "happy", "laugh", "I am Sol. I came laughing."),
	6: member(6, "Vesper", "#1f2440", "Blue Hour", "woman", "starry", "small", "Vesper is the hour in which one light is lit."),
	7: member(7, "Noor", "#e8c39e", "Warm Sand", "woman", "calm", "tilted", "Noor. I listen with my eyes closed."),
	8: member(8, "Tamsin", "#d94f70", "Rosehip", "woman", "wink", "grin", "Tamsin, one of two."),
}

func member(seat int, name, color, colorName, gender, eyes, mouth, soul string) crew.Identity {
	return crew.Identity{
		Seat: seat, Name: name, Color: color, ColorName: colorName, Gender: gender,
		Face: crew.Face{Eyes: eyes, Mouth: mouth}, Soul: soul,
	}
}

// CrewByHand is the real server with a crew whose lead says nothing: the test submits the lead's
// reports to the loop, as the lead's listener does.
type CrewByHand struct {
	*Server
	Lead  string
	Proxy *Proxy
}

// NewCrewByHand returns a team with a lead and an empty crew.
func NewCrewByHand(t testing.TB) *CrewByHand {
	t.Helper()
	s := NewServer(t, map[string]string{
		"fairlead.yaml":    "version: 1\nteam: {lead: julian, size: 8}\nagents:\n  julian: {description: Leads a crew of eight, driver: script, script: lead.script.yaml}\n",
		"lead.script.yaml": silentLead,
	})
	return &CrewByHand{Server: s, Lead: "julian", Proxy: s.Intercept()}
}

func (c *CrewByHand) submit(what any) {
	c.t.Helper()
	if _, err := c.engine.Loop.Submit(c.t.Context(), turns.ByAgent(c.Lead), "", what); err != nil {
		c.t.Fatalf("submit %T: %v", what, err)
	}
}

func (c *CrewByHand) state(read func(*crew.Crew)) {
	c.t.Helper()
	if err := c.engine.Loop.View(c.t.Context(), func(t *team.Team) { read(&t.Crew) }); err != nil {
		c.t.Fatal(err)
	}
}

// session waits until the lead's session is open and has no pending action, and returns its id.
func (c *CrewByHand) session() (id string) {
	c.t.Helper()
	if err := c.engine.Loop.Until(c.t.Context(), func(t *team.Team) bool {
		id = t.Crew.Lead.Session
		return id != "" && len(t.Crew.Lead.Actions) == 0
	}); err != nil {
		c.t.Fatalf("wait for the session of the lead: %v", err)
	}
	return id
}

// Hatch registers all members, with the changes that the caller makes to them.
func (c *CrewByHand) Hatch(change func(*crew.Identity)) {
	c.t.Helper()
	session := c.session()
	for _, seat := range seatsOf {
		who := Eight[seat]
		if change != nil {
			change(&who)
		}
		c.submit(crew.Registered{Session: session, Identity: who})
	}
	c.Report(seatsOf...)
}

// Report submits the lead's list of alive members.
func (c *CrewByHand) Report(seats ...int) {
	c.t.Helper()
	var listed []crew.Listed
	session := c.session()
	c.state(func(now *crew.Crew) {
		for _, d := range now.Docs {
			if slices.Contains(seats, d.Seat) && d.Name != "" {
				listed = append(listed, crew.Listed{Name: d.Name, Status: string(crew.Alive), Seat: d.Seat})
			}
		}
	})
	slices.SortFunc(listed, func(a, b crew.Listed) int { return a.Seat - b.Seat })
	c.submit(crew.Reported{Session: session, Agents: listed})
}

func (c *CrewByHand) ends() { c.Do("POST", "/crew/sleep", strings.NewReader(`{}`)) }

func (c *CrewByHand) woken() (names []string) {
	c.t.Helper()
	c.state(func(now *crew.Crew) {
		for _, id := range now.Lead.Who {
			names = append(names, string(id))
		}
	})
	return names
}

func (c *CrewByHand) say(speaker, text string) {
	c.t.Helper()
	if speaker != c.Lead {
		text = fmt.Sprintf("[%s]: %s", speaker, text)
	}
	c.submit(crew.Spoke{Session: c.session(), Text: text})
}

func (c *CrewByHand) notice(text string) {
	c.t.Helper()
	c.submit(crew.Faulty{Agent: c.Lead, Session: c.session(), Marker: "[AGENT_STATUS] {", Fault: text})
}

// edit changes members in every later answer, because the server accepts no such members.
func (c *CrewByHand) edit(changes map[int]func(*Document)) {
	c.t.Helper()
	c.Proxy.Edit("/crew", func(body map[string]any) {
		members, _ := body["agents"].([]any)
		for _, m := range members {
			of, _ := m.(map[string]any)
			seat, _ := of["gridPosition"].(float64)
			change := changes[int(seat)]
			if change != nil {
				maps.Copy(of, changedAs(of, change)) // a Document has only some of the fields
			}
		}
	})
}

// spoken replaces every later transcript by one message, because the server accepts no such
// speaker.
func (c *CrewByHand) spoken(speaker, text string) {
	c.Proxy.Edit("/crew/transcript", func(body map[string]any) {
		body["messages"] = []any{map[string]any{
			"seq": 1, "at": "2026-02-16T00:00:00Z", "session": "s", "speaker": speaker, "kind": "agent",
			"channel": "", "text": text,
		}}
	})
}

// leaveOutSouls removes the souls from the list of the crew, as the server does for a list that is
// too long.
func (c *CrewByHand) leaveOutSouls() {
	c.Proxy.Edit("/crew", func(body map[string]any) {
		members, _ := body["agents"].([]any)
		for _, m := range members {
			m.(map[string]any)["individuationArtifact"] = ""
		}
		body["souls_left_out"] = len(members)
	})
}

// RealCrewByHand is the target of scenarios in which the test decides what the lead reports.
func RealCrewByHand(t *testing.T) Target {
	t.Helper()
	c := NewCrewByHand(t)
	return Target{URL: c.URL, Agent: c.Lead, CrewStory: &CrewStory{
		Lead: c.Lead, Size: len(seatsOf), Names: []string{"Lyra", "Kael"}, Hatch: func() { c.Hatch(nil) }, Ends: c.ends, Report: c.Report,
		Woken: c.woken, Say: c.say, Notice: c.notice, Edit: c.edit, Spoken: c.spoken, LeaveOutSouls: c.leaveOutSouls,
		Refuse: func() string {
			const reason = "the team is held; release it first"
			c.Proxy.Refuse("POST", "/crew/wake", reason)
			return reason
		},
	}}
}
