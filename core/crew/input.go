package crew

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Input is something that happened.
type Input = change.Input[LeadEvent]

// Subject is what an input is about: Entity is the id of a document. The lead is the only one.
type Subject = change.Subject[LeadEvent]

// Now is what a decision depends on besides the crew.
type Now struct {
	At    time.Time
	Held  bool   // the team is held or the daemon stops: nothing starts (X8)
	Limit string // the limit that stops the lead (X9); empty: none
}

type (
	// LeadConfigured is the crew's configuration from fairlead.yaml. Zero durations mean the defaults.
	LeadConfigured struct {
		Agent               string
		Size                int
		StatusMax, HatchMax time.Duration
	}

	// DaemonStarted is a page load of seed 001: every status is unknown.
	DaemonStarted struct{}

	// SummonAsked creates the crew. People can ask for it once.
	SummonAsked struct{}

	// WakeAsked wakes agents, all of them if it has no names.
	WakeAsked struct{ Docs []DocID }

	// LeadBegan is a lead session whose process was seen; Adopted: it outlived a daemon.
	LeadBegan struct {
		Session, UUID string
		Adopted       bool
	}

	// LeadEnded is the end of a lead session. If Session is empty, the session could not start, and
	// Why is the reason.
	LeadEnded struct{ Session, Why string }

	// LeadHeard is a marker in an ordinary session of the lead, while no lead session is open. The
	// session counts as the lead session, but receives no actions.
	LeadHeard struct{ Session, UUID string }

	// LeadLost is the end of a session that keeps a summon or a wake in progress. The next lead
	// session receives the actions again. Either the program no longer knew its conversation and
	// did nothing (Why says so), or it was an ordinary session with markers.
	LeadLost struct{ Session, Why string }

	// ActionReceived records that the lead received an action.
	ActionReceived struct{ N uint64 }

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

	// Spoke is text from a lead session outside of any channel. Empty: the session was
	// busy without text.
	Spoke struct{ Session, Text string }

	// Faulty is a marker without effect: invalid, or from a session that does not lead.
	Faulty struct {
		Agent, Session string
		Marker         string // as written
		Fault          string // empty: the marker is valid but from the wrong session
	}

	// Imported is a document from outside: a file that another program created or changed, or an
	// uploaded one. Bare: it has no status.
	Imported struct {
		ID       DocID
		Document Document
		Bare     bool
		From     string // file name, for people
	}

	// TimerFired is a deadline that has passed. The crew knows which.
	TimerFired struct{}
)

// Listed is one line of a report. Seat is -1 if the line has none.
type Listed struct {
	Name, Status string
	Seat         int
}

// OutOfRange reports whether every agent of a report is on a seat that no member can have. Such a report is a fault and
// changes nothing.
func (in Reported) OutOfRange() bool {
	inRange := func(l Listed) bool { return l.Seat == NoSeat || noMemberSeat(l.Seat) == "" }
	return len(in.Agents) > 0 && !slices.ContainsFunc(in.Agents, inRange)
}

// NoSeat is the seat of a line without a seat.
const NoSeat = -1

func ofSession(event LeadEvent, id string) Subject { return Subject{Event: event, Session: id} }

// Subject of each input is what it is about.
func (in LeadConfigured) Subject() Subject { return Subject{Event: Configured, Agent: in.Agent} }
func (DaemonStarted) Subject() Subject     { return Subject{Event: Forgotten} }
func (SummonAsked) Subject() Subject       { return Subject{Event: SummonBegins, Starts: true} }
func (WakeAsked) Subject() Subject         { return Subject{Event: WakeBegins, Starts: true} }
func (in LeadBegan) Subject() Subject      { return ofSession(Began, in.Session) }
func (in LeadEnded) Subject() Subject      { return ofSession(Ended, in.Session) }
func (in LeadHeard) Subject() Subject      { return ofSession(Heard, in.Session) }
func (in LeadLost) Subject() Subject       { return ofSession(Left, in.Session) }
func (ActionReceived) Subject() Subject    { return Subject{Event: Received} }
func (in Reported) Subject() Subject       { return ofSession(ReportedAll, in.Session) }
func (in Registered) Subject() Subject     { return ofSession(NewRegistered, in.Session) }
func (in Spoke) Subject() Subject          { return ofSession(SpokeOn, in.Session) }
func (in Faulty) Subject() Subject         { return ofSession(Noticed, in.Session) }
func (in Imported) Subject() Subject       { return Subject{Event: FileSeen, Entity: string(in.ID)} }
func (TimerFired) Subject() Subject        { return Subject{Event: FellSilent} }

// Passage is consecutive text of one speaker.
type Passage struct{ Speaker, Text string }

// Speakers splits a lead's text by speaker. A line that starts with the name of an agent of the crew
// in brackets and a colon starts a passage of that agent, up to the next such line. Other text is the
// lead's own.
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

// speakerOf parses `[Name]: text`.
func speakerOf(line string) (name, words string, ok bool) {
	rest, ok := strings.CutPrefix(line, "[")
	if !ok {
		return "", "", false
	}
	name, words, ok = strings.Cut(rest, "]:")
	return name, strings.TrimPrefix(words, " "), ok && name != ""
}
