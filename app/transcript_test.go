package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
)

const crewTalksYAML = crewYAML + "channels:\n  plan: {agents: [julian]}\n"

func newTalkingCrew(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, crewTalksYAML, map[string]string{"julian.script": "listen\n"})
	if _, err := w.engine.Agents.Hold(context.Background(), human, true, ""); err != nil {
		t.Fatal(err)
	}
	w.leads("Lyra", "Kael")
	return w
}

func (w *world) transcript(q crewctl.TranscriptQuery) crewctl.TranscriptPage {
	w.t.Helper()
	page, err := w.engine.Crew.Transcript(context.Background(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return page
}

// all reads all pages of a query in one direction.
func (w *world) all(q crewctl.TranscriptQuery) (all []crewctl.Message, pages int) {
	w.t.Helper()
	for {
		page := w.transcript(q)
		pages++
		if q.After != 0 {
			all = append(all, page.Messages...)
			q.After = page.Next
		} else {
			all = append(slices.Clone(page.Messages), all...)
			q.Before = page.Next
		}
		if !page.More {
			return all, pages
		}
		if page.Next == 0 || pages > 10_000 {
			w.t.Fatalf("more pages of %+v without a position: %+v", q, page)
		}
	}
}

func TestTranscriptSplitsALeadsText(t *testing.T) {
	t.Parallel()
	w := newTalkingCrew(t)
	w.happens(crew.Spoke{
		Session: "julian-1",
		Text:    "Hello.\n[Lyra]: I am here,\nand well.\n[Nobody]: who?\n[Kael]: so am I\n[julian]: Good.",
	})
	if _, err := w.engine.Channels.Say(context.Background(), human, "plan", "[Lyra]: this is a person's", ""); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range w.transcript(crewctl.TranscriptQuery{}).Messages {
		got = append(got, fmt.Sprintf("%s %s %s %q %v", m.Kind, m.Speaker, m.Channel, m.Text, m.Session == leadUUID))
	}
	want := []string{
		`lead julian  "Hello." true`,
		`agent Lyra  "I am here,\nand well.\n[Nobody]: who?" true`,
		`agent Kael  "so am I" true`,
		`lead julian  "Good." true`,
		`human tester plan "[Lyra]: this is a person's" false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	messages, leftOut, err := w.engine.Crew.MessagesFor(context.Background(), leadUUID, "Lyra")
	if err != nil || len(messages) != 1 || leftOut != 0 || !strings.HasPrefix(messages[0].Text, "I am here") {
		t.Errorf("%+v %d %v", messages, leftOut, err)
	}
	if messages, _, err := w.engine.Crew.MessagesFor(context.Background(), "elsewhere", "Lyra"); err != nil || len(messages) != 0 {
		t.Errorf("from another machine: %+v %v", messages, err)
	}
}

// TestTranscriptOfALeadsPost checks that a post of a lead in a channel is one change that may have
// several speakers.
// TestTranscriptIndexIsMadeByTheFirstQuery checks that nothing is indexed before a query, and all of it afterwards.
func TestTranscriptIndexIsMadeByTheFirstQuery(t *testing.T) {
	t.Parallel()
	w := newTalkingCrew(t)
	said := &w.engine.Crew.CrewState.Said
	places := func() int {
		said.Mu.Lock()
		defer said.Mu.Unlock()
		return len(said.Places)
	}
	w.happens(crew.Spoke{Session: "julian-1", Text: "before"})
	if n := places(); n != 0 {
		t.Errorf("%d places are in the index before a query", n)
	}
	if err := w.engine.Crew.MakeTranscript(context.Background()); err != nil || places() != 1 {
		t.Errorf("%d places after the first query: %v", places(), err)
	}
	w.happens(crew.Spoke{Session: "julian-1", Text: "after"})
	if n := places(); n != 2 {
		t.Errorf("%d places after another message", n)
	}
}

func TestTranscriptOfALeadsPost(t *testing.T) {
	t.Parallel()
	post := change.Change{Entity: "channel/plan", Body: &channel.Set{
		Body: channel.Body{Post: &channel.Post{N: 1, Kind: channel.OfTurn, By: "julian"}}, Session: leadUUID,
		Text: "We begin.\n[Lyra]: I take the first.\n[Later]: not born yet",
	}}
	said, is := crewctl.SpokenIn(&post, 7)
	if !is {
		t.Fatal("nothing was said")
	}
	if got := said.Speakers(); !slices.Equal(got, []string{"julian", "Lyra", "Later"}) {
		t.Errorf("%q", got)
	}
	w := crewctl.Whom{Lead: "somebody else by now", Names: map[string]bool{"Lyra": true}}
	got := w.Messages(&said)
	if len(got) != 2 || got[0].Kind != crewctl.KindOfLead || got[1].Speaker != "Lyra" || got[1].Kind != crewctl.KindOfAgent ||
		!strings.HasSuffix(got[1].Text, "not born yet") {
		t.Errorf("%+v", got)
	}
	change.As[channel.Set](post.Body).Session = "julian-4" // not a lead session: it has only one speaker
	said, _ = crewctl.SpokenIn(&post, 8)
	if got := w.Messages(&said); len(got) != 1 || got[0].Kind != crewctl.KindOfAgent {
		t.Errorf("%+v", got)
	}
}

func TestTranscriptPagesAndFinds(t *testing.T) {
	t.Parallel()
	w := newTalkingCrew(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	speakers := []string{"julian", "Lyra", "Kael"}
	for n := range 300 {
		if n%7 == 0 {
			if _, err := w.engine.Channels.Say(context.Background(), human, "plan", fmt.Sprintf("Question %d", n), ""); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var text strings.Builder
		for range 1 + rnd.IntN(3) {
			fmt.Fprintf(&text, "[%s]: line %d %s\n", speakers[rnd.IntN(3)], n, []string{"Tide", "tide", "ebb"}[rnd.IntN(3)])
		}
		w.happens(crew.Spoke{Session: "julian-1", Text: text.String()})
	}
	check := func(when string) {
		t.Helper()
		whole, _ := w.all(crewctl.TranscriptQuery{Limit: 500})
		if len(whole) < 300 {
			t.Fatalf("%s: %d messages", when, len(whole))
		}
		questions := 25
		if testsize.Race {
			questions = 8
		}
		for range questions {
			q := crewctl.TranscriptQuery{Limit: 1 + rnd.IntN(90)}
			if rnd.IntN(2) == 0 {
				q.Speaker = append(speakers, "tester", "nobody")[rnd.IntN(5)]
			}
			if rnd.IntN(3) == 0 {
				q.Session = []string{leadUUID, "none"}[rnd.IntN(2)]
			}
			if rnd.IntN(2) == 0 {
				q.Text = []string{"TIDE", "line 1", "question", "[", "absent"}[rnd.IntN(5)]
			}
			switch pivot := whole[rnd.IntN(len(whole))].Seq; rnd.IntN(3) {
			case 0:
				q.Before = pivot
			case 1:
				q.After = pivot
			}
			var want []crewctl.Message
			for _, m := range whole {
				if (q.Speaker == "" || m.Speaker == q.Speaker) && (q.Session == "" || m.Session == q.Session) &&
					strings.Contains(strings.ToLower(m.Text), strings.ToLower(q.Text)) &&
					(q.Before == 0 || m.Seq < q.Before) && m.Seq > q.After {
					want = append(want, m)
				}
			}
			got, _ := w.all(q)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s: %+v: %s", when, q, diff)
			}
		}
	}
	check("as it was said")
	w.stop()
	w.start()
	<-w.engine.Loop.Ready()
	check("after a start")
	said := &w.engine.Crew.CrewState.Said
	said.Mu.Lock()
	half := len(said.Places) / 2
	for said.Places[half].Seq == said.Places[half-1].Seq {
		half++
	}
	said.Below, said.Places = said.Places[half-1].Seq, said.Places[half:]
	said.Mu.Unlock()
	check("with half of it in the journal alone")
	said.Mu.Lock()
	for i := range said.Places { // as if there were too many speakers for numbers
		said.Places[i].Speaker = crewctl.Anybody
	}
	for n := range crewctl.TranscriptIDsMax {
		said.Id(fmt.Sprintf("speaker %d", n))
	}
	said.Mu.Unlock()
	check("with more speakers than have numbers")
}

// TestTranscriptIndexHasNoGap checks that the index drops its beginning if too much was said. Older
// messages are then not put before the gap, so that a search does not pass over missing ones.
func TestTranscriptIndexHasNoGap(t *testing.T) {
	t.Parallel()
	transcript := crewctl.Transcript{Ids: map[string]uint32{}}
	const began = 1000
	for n := range uint64(crewctl.TranscriptMax + 1) {
		transcript.Note(crewctl.Spoken{Seq: began + n, Session: "s", By: "julian"})
	}
	if transcript.Below <= began {
		t.Fatalf("no message was dropped: %d", transcript.Below)
	}
	transcript.Begin([]crewctl.Spoken{{Seq: 1, Session: "s", By: "julian"}})
	if first := transcript.Places[0].Seq; first <= transcript.Below {
		t.Errorf("the index has %d and lacks the messages between it and %d", first, transcript.Below)
	}
	whole := crewctl.Transcript{Ids: map[string]uint32{}}
	whole.Note(crewctl.Spoken{Seq: crewctl.TranscriptMax + 10, Session: "s", By: "julian"})
	var past []crewctl.Spoken
	for n := range uint64(crewctl.TranscriptMax) {
		past = append(past, crewctl.Spoken{Seq: 1 + n, Session: "s", By: "julian"})
	}
	if whole.Begin(past); len(whole.Places) > crewctl.TranscriptMax || whole.Below != 1 {
		t.Errorf("the index has %d places and lacks the messages up to %d", len(whole.Places), whole.Below)
	}
}

// TestTranscriptKnowsASessionByBothNames checks that a lead's session can be named by its id in
// every list.
func TestTranscriptKnowsASessionByBothNames(t *testing.T) {
	t.Parallel()
	tm := team.New(nil)
	tm.Agents["julian"] = &team.Agent{
		Name: "julian", Session: &team.Session{ID: "julian-2", UUID: "u2"},
		Past: []team.Session{{ID: "julian-1", UUID: "u1"}, {ID: "julian-0"}},
	}
	for session, want := range map[string]string{"julian-2": "u2", "julian-1": "u1", "julian-0": "julian-0", "u1": "u1", "": ""} {
		if got := crewctl.InTranscripts(tm, session); got != want {
			t.Errorf("%q is %q, want %q", session, got, want)
		}
	}
}
