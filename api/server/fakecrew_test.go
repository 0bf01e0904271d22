package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

// lyra is the one whom the fake's team consists of, and what a foreign agent may be called.
const (
	lyraSoul = "I am Lyra. <b>Nobody</b> else is. ]]>\n"
	oddName  = "Zoë/\u202e<script>"
)

func lyra() view.DocumentView {
	name, seen, session := "Lyra", "2026-11-21T10:30:00.123Z", "0b7d3c52-uuid"
	return view.DocumentView{
		ID: "agent-7", Type: "agent-identity", Status: "alive", Name: &name, Color: "#c9b1e8", ColorName: "Violet Heaven", Gender: "woman",
		Face: view.FaceView{Eyes: "standard", Mouth: "gentle"}, Soul: lyraSoul, CreatedAt: "2026-11-21T09:30:00.123Z", LastAliveAt: &seen, LastSession: &session,
	}
}

func (f *fake) Crew(_ context.Context, all bool) (view.CrewView, error) {
	shown := view.CrewView{Button: "WAKE", Agents: []view.DocumentView{lyra()}, Lead: view.LeadView{Agent: "coder", State: "asleep", Seat: 4}, Size: 8, Head: 2}
	if f.team != nil {
		shown.Agents = slices.Clone(f.team)
	}
	if all {
		egg := view.DocumentView{ID: "agent-1", Type: "agent-identity", Status: "expired", Seat: 8, CreatedAt: "2026-11-21T09:30:00.123Z"}
		shown.Agents = append(shown.Agents, egg)
	}
	return shown, f.answer()
}

// Document knows Lyra by two names; Twin is the name of two.
func (f *fake) Document(ctx context.Context, name string) (view.DocumentView, error) {
	if err := f.answer(); err != nil {
		return view.DocumentView{}, err
	}
	switch name {
	case "agent-7", "Lyra", oddName:
		return lyra(), nil
	case "Twin":
		return view.DocumentView{}, &machine.Refusal{Subject: "Twin", Event: "document", State: "two of that name", Row: "P4", Reason: "say agent-2 or agent-3"}
	case "hang":
		<-ctx.Done()
		return view.DocumentView{}, ctx.Err()
	}
	return view.DocumentView{}, &team.Unknown{What: "agent of the team", Name: name, Known: []string{"Lyra"}}
}

// commands keeps an order about the team as one line, and gives it a sequence.
func (f *fake) commands(by seam.Actor, format string, args ...any) (uint64, error) {
	if err := f.answer(); err != nil {
		return 0, err
	}
	f.said(by, format, args...)
	return 21, nil
}

func (f *fake) Summon(_ context.Context, by seam.Actor) (uint64, error) {
	return f.commands(by, "summon")
}

func (f *fake) Wake(ctx context.Context, by seam.Actor, who []string) (uint64, error) {
	for _, name := range who {
		if _, err := f.Document(ctx, name); err != nil {
			return 0, err
		}
	}
	return f.commands(by, "wake %q", who)
}

func (f *fake) Sleep(_ context.Context, by seam.Actor) (uint64, error) {
	return f.commands(by, "sleep")
}

// ImportDocument takes in whatever has a type; crewfile reads documents.
func (f *fake) ImportDocument(_ context.Context, by seam.Actor, data []byte) (view.DocumentView, error) {
	switch text := string(data); {
	case f.answer() != nil:
		return view.DocumentView{}, f.answer()
	case strings.Contains(text, "refuse"):
		return view.DocumentView{}, &machine.Refusal{Subject: "a document", Event: "imported", State: "none", Row: "P11", Reason: `seat 0 is taken by "Lyra"`}
	case !strings.Contains(text, `"type"`):
		return view.DocumentView{}, &crewctl.BadDocument{Why: errors.New("a document has a type, agent-identity; this one has none: say so")}
	}
	f.said(by, "import %q", data)
	return lyra(), nil
}

// Transcript has three messages, two of them of one change.
func (f *fake) Transcript(_ context.Context, q crewctl.TranscriptQuery) (crewctl.TranscriptPage, error) {
	if q.After == 12 {
		return crewctl.TranscriptPage{Head: 12}, f.answer()
	}
	asked := fmt.Sprintf("speaker=%q session=%q text=%q before=%d after=%d limit=%d", q.Speaker, q.Session, q.Text, q.Before, q.After, q.Limit)
	return crewctl.TranscriptPage{More: true, Next: 11, Head: 12, Messages: []crewctl.Message{
		{Seq: 11, At: testTime, Session: "0b7d3c52-uuid", Speaker: "coder", Kind: "lead", Text: asked},
		{Seq: 11, At: testTime, Session: "0b7d3c52-uuid", Speaker: "Lyra", Kind: "agent", Text: "Good morning."},
		{Seq: 12, At: testTime, Session: "0b7d3c52-uuid", Speaker: "Lyra", Kind: "agent", Channel: "reviews", Text: "</script>"},
	}}, f.answer()
}
