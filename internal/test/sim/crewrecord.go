package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
)

// crewRecord records what the simulated lead really said about its crew and what the journal
// stored. It uses no transition table. The world's lock guards it.
type crewRecord struct {
	docs          map[string]*memberDocument
	uuid          map[string]string           // session → its id in the documents
	markers       map[string][]*marker        // session → the markers that it said, in order
	inTranscripts map[string]transcriptSource // word → the session and speaker that the journal has for it
	orders        map[string]string           // pending orders of people by actor; removed when the journal has them
	lead          string                      // the running lead session; empty: none
	since         time.Time                   // only reports after this time make members alive
	before        crew.Lead                   // the lead's state after the last change

	ordered           bool              // a person has given an order that needs a lead session
	statusRequestsMax map[string]int    // lead session → how many status requests are allowed
	statusRequests    map[string]int    // lead session → how many status requests it received
	adopted           bool              // the lead session outlived an engine and has not been asked for a status since
	noticesOf         map[string]int    // other session → number of notices about its markers
	lastSpeaker       map[string]string // session → the speaker of its last line that named one
	stageBegan        time.Time         // start of the current summon or wake
	lastHeard         time.Time         // last time that the lead said or received something
}

// memberDocument is the document of a member as the journal has it.
type memberDocument struct {
	id, status, name, soul, session string
	seat                            int
	made, alive                     time.Time
	wokenNow                        bool // woken by the last append
}

// transcriptSource is the session and the speaker of a word in the transcripts.
type transcriptSource struct{ session, speaker string }

// marker is a marker in the output of a session.
type marker struct {
	end       int64 // offset of its end in the output
	kind      string
	listed    []entry
	who       crew.Identity
	valid     bool // it is complete and well-formed
	processed bool
}

const (
	statusMark   = "[AGENT_STATUS]"
	registerMark = "[AGENT_REGISTERED]"
)

// entry is one line of a report. Seat -1 means that the line names no seat.
type entry struct {
	name, status string
	seat         int
}

func newCrewRecord() *crewRecord {
	return &crewRecord{
		docs: map[string]*memberDocument{}, uuid: map[string]string{}, markers: map[string][]*marker{},
		inTranscripts: map[string]transcriptSource{}, orders: map[string]string{},
		statusRequestsMax: map[string]int{}, statusRequests: map[string]int{}, noticesOf: map[string]int{},
		lastSpeaker: map[string]string{},
	}
}

// inOrder lists the documents by id.
func (b *crewRecord) inOrder() []*memberDocument {
	var all []*memberDocument
	for _, is := range b.docs {
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b *memberDocument) int {
		return cmp.Or(cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
	})
	return all
}

func (b *crewRecord) visible() (n int) {
	for _, is := range b.docs {
		if is.status != "expired" {
			n++
		}
	}
	return n
}

// nth returns a document by the number in an act, or nil if there are none.
func (b *crewRecord) nth(n int) *memberDocument {
	all := b.inOrder()
	if len(all) == 0 {
		return nil
	}
	return all[n%len(all)]
}

func (b *crewRecord) on(seat int) *memberDocument {
	for _, is := range b.docs {
		if is.seat == seat && is.status != "expired" {
			return is
		}
	}
	return nil
}

func (b *crewRecord) knows(name string) bool {
	for _, is := range b.docs {
		if is.name == name && name != "" {
			return true
		}
	}
	return false
}

// checkCrew checks all changes of one append together, after they were applied.
func (w crewWorld) checkCrew(batch []change.Change) {
	b := w.crew
	if w.lead() == "" {
		return
	}
	heard, unsure := w.newMarkers(batch), false
	was := map[int]memberDocument{}
	for _, is := range b.docs {
		is.wokenNow = false
		if is.status != "expired" {
			was[is.seat] = *is
		}
	}
	for i := range batch {
		ch := &batch[i]
		switch body := ch.Body.(type) {
		case *team.TeamSet:
			if ch.Trigger == "daemon_started" {
				b.since, unsure = ch.At, true
				clear(b.noticesOf) // an engine does not remember the notices of the one before it
			}
		case *team.Session:
			if body.IsLead() {
				unsure = true
				w.checkLeadSession(ch)
			}
		case *crew.Body:
			switch {
			case body.Doc != nil:
				w.checkDocument(ch, heard)
				unsure = unsure || strings.HasPrefix(ch.Trigger, "imported")
			case body.Words != nil:
				b.lastHeard = ch.At // the output may be read long after it was written
				w.checkSpoken(body.Words)
			default:
				w.checkLeadChange(ch)
			}
		}
	}
	if slices.ContainsFunc(heard, func(m *marker) bool { return m.valid && m.kind == statusMark }) {
		b.adopted = false // the lead reported before it was asked
	}
	w.checkAliveMembers()
	if !unsure && len(heard) > 0 {
		w.checkReportsApplied(was, heard)
	}
}

// newMarkers returns the markers of the lead that this append records: they end before the stored
// output offset. Markers of other sessions have no effect.
func (w crewWorld) newMarkers(batch []change.Change) (heard []*marker) {
	b := w.crew
	for i := range batch {
		used := change.As[team.Used](batch[i].Body)
		if used == nil {
			continue
		}
		for _, m := range b.markers[used.Session] {
			if m.processed || m.end > used.Offset {
				continue
			}
			m.processed = true
			if used.Session == b.lead {
				heard = append(heard, m)
			}
		}
	}
	return heard
}

// checkLeadSession follows the sessions of the lead.
func (w crewWorld) checkLeadSession(ch *change.Change) {
	b, s := w.crew, change.As[team.Session](ch.Body)
	switch {
	case s.Phase == session.Open && ch.From == string(session.None):
		checks(w).check(summonWanted, b.ordered, "%s is opened, but no person has ordered a lead session since the last one ended", s.ID)
		for other, name := range b.uuid {
			checks(w).check(memberKept, name != s.UUID || other == s.ID, "%s has the same id in the documents as %s", s.ID, other)
		}
		b.uuid[s.ID], b.lastHeard = s.UUID, ch.At
		b.statusRequestsMax[s.ID]++ // the first prompt may ask for a status
	case s.Phase == session.Running && (ch.Trigger == "started" || ch.Trigger == "adopted"):
		checks(w).check(oneSession, b.lead == "" || b.lead == s.ID, "%s and %s both lead", s.ID, b.lead)
		b.lead, b.since = s.ID, ch.At
		if b.adopted = ch.Trigger == "adopted"; b.adopted || !w.truth.Crew.Lead.InProgress() {
			b.statusRequestsMax[s.ID]++
		}
	case s.Phase == session.None:
		if b.lead = ""; s.Outcome != "withdrawn" {
			b.ordered = false
		}
		b.adopted = false
	}
}

// checkLeadChange checks the changes of the lead's state: summons, wakes and their ends.
func (w crewWorld) checkLeadChange(ch *change.Change) {
	b, set := w.crew, change.As[crew.Body](ch.Body).Lead
	if n := change.As[crew.Body](ch.Body).Notice; n != nil {
		w.notef("notice: %s", n.Text)
	}
	if n := change.As[crew.Body](ch.Body).Notice; n != nil && n.Kind == crew.NoticeIgnored && n.Session != "" {
		b.noticesOf[n.Session]++
		checks(w).check(reportApplied, b.noticesOf[n.Session] <= 3 || b.uuid[n.Session] != "",
			"%s is not the lead, but its markers caused %d notices", n.Session, b.noticesOf[n.Session])
	}
	if b.lastHeard = ch.At; set == nil {
		return
	}
	switch ch.Trigger {
	case "summon_asked", "wake_asked", "wake_asked_unheard":
		what, _, _ := strings.Cut(ch.Trigger, "_")
		checks(w).check(summonWanted, b.orders[ch.Actor.ID] == what, "%s begins for %s, which ordered %q", what, ch.Actor.ID,
			b.orders[ch.Actor.ID])
		delete(b.orders, ch.Actor.ID)
		b.ordered, b.stageBegan = true, ch.At
		if ch.Trigger == "wake_asked_unheard" && b.lead != "" {
			b.statusRequestsMax[b.lead]++
		}
		b.lastHeard = ch.At
	case "lead_told":
		b.lastHeard = ch.At
		for _, ask := range b.before.Actions {
			if _, still := set.ActionOf(ask.N); !still && ask.Do == crew.TellStatus {
				b.adopted = false
			}
		}
	case "lead_ended", "fell_silent", "reported":
		if b.lead == "" {
			b.ordered = false
		}
	}
	b.before = *set
}

// checkCrewOrderAllowed runs before a change is applied. No summon or wake begins while the team is
// held or over a limit.
func (w crewWorld) checkCrewOrderAllowed(ch change.Change) {
	if change.As[crew.Body](ch.Body) == nil || ch.Trigger != "summon_asked" && !strings.HasPrefix(ch.Trigger, "wake_asked") {
		return
	}
	checks(w).check(summonWanted, !w.truth.Hold.On && !w.truth.Stopping, "%s begins while the team is held", ch.Trigger)
	a := w.truth.Agents[w.lead()]
	if limit := w.conf.Agents[w.index(a.Name)].Limits.CostPerDayUSD; limit > 0 && a.Usage.Day == ch.At.Format(time.DateOnly) {
		checks(w).check(summonWanted, a.Usage.CostUSD < limit, "%s begins, but %.2f of %.2f USD are used up", ch.Trigger, a.Usage.CostUSD,
			limit)
	}
}
