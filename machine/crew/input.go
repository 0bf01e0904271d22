package crew

import (
	"strings"
	"time"
)

// Input is something that happened, as the world tells it.
type Input interface{ input() }

// Now is what a decision may know of the world beside the crew.
type Now struct {
	At    time.Time
	Held  bool   // the team is held or the daemon stops: nothing begins (X8)
	Limit string // one that keeps the lead from working (X9); empty: none
}

type (
	// LeadConfigured is what fairlead.yaml says of the team. Zero times are the usual ones.
	LeadConfigured struct {
		Agent               string
		Size                int
		StatusMax, HatchMax time.Duration
	}

	// DaemonStarted is a page load in the seed's words: nobody knows any more who is awake.
	DaemonStarted struct{}

	// SummonAsked is a person's, once in a team's life.
	SummonAsked struct{}

	// WakeAsked is a person's, ever after. Without names it is for everybody.
	WakeAsked struct{ Docs []DocID }

	// LeadBegan is a lead session whose process was seen; Adopted: it outlived a daemon.
	LeadBegan struct {
		Session, UUID string
		Adopted       bool
	}

	// LeadEnded is its end, or why it cannot begin: Session is empty then.
	LeadEnded struct{ Session, Why string }

	// ActionTold says that the lead has been told something.
	ActionTold struct{ N uint64 }

	// Reported is the lead's [AGENT_STATUS].
	Reported struct {
		Session string
		Agents  []Listed
	}

	// Registered is the lead's [AGENT_REGISTERED].
	Registered struct {
		Session string
		Identity
	}

	// Spoke is something that was said in a lead session, apart from any channel. Empty: it was
	// busy with something that is not speech.
	Spoke struct{ Session, Text string }

	// Faulty is a marker that means nothing: broken, or from somebody who does not lead.
	Faulty struct {
		Agent, Session string
		Marker         string // as it was written
		Fault          string // empty: it came from the wrong session
	}

	// Imported is a document from elsewhere: a file that somebody put or changed, or one that
	// was handed in. Bare: it says no status.
	Imported struct {
		ID       DocID
		Document Document
		Bare     bool
		From     string // for people: which file
	}

	// TimerFired is a deadline that has passed; what it was about is read off the crew.
	TimerFired struct{}
)

// Listed is one line of a report. Seat is -1 where it names none.
type Listed struct {
	Name, Status string
	Seat         int
}

// NoSeat is the seat of a line that names none.
const NoSeat = -1

func (LeadConfigured) input() {}
func (DaemonStarted) input()  {}
func (SummonAsked) input()    {}
func (WakeAsked) input()      {}
func (LeadBegan) input()      {}
func (LeadEnded) input()      {}
func (ActionTold) input()     {}
func (Reported) input()       {}
func (Registered) input()     {}
func (Spoke) input()          {}
func (Faulty) input()         {}
func (Imported) input()       {}
func (TimerFired) input()     {}

// Passage is what one speaker said in a row.
type Passage struct{ Speaker, Text string }

// Speakers takes a lead's words apart: a line that begins with the name of somebody of the team
// in brackets and a colon opens a passage of that one, up to the next such line. All else the
// lead says itself.
func Speakers(text, lead string, known func(name string) bool) []Passage {
	var said []Passage
	who, begin := lead, 0
	end := func(at int) {
		if words := strings.Trim(text[begin:at], "\r\n"); strings.TrimSpace(words) != "" {
			said = append(said, Passage{Speaker: who, Text: words})
		}
	}
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if name, words, ok := speakerOf(line); ok && (name == lead || known(name)) {
			end(at)
			who, begin = name, at+len(line)-len(words)
		}
		at += len(line) + 1
	}
	end(len(text))
	return said
}

// speakerOf reads `[Name]: words`.
func speakerOf(line string) (name, words string, ok bool) {
	rest, ok := strings.CutPrefix(line, "[")
	if !ok {
		return "", "", false
	}
	name, words, ok = strings.Cut(rest, "]:")
	return name, strings.TrimPrefix(words, " "), ok && name != ""
}
