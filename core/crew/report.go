package crew

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// counts reports whether markers of a session count. Only those of the lead's session do.
func (d *crewDraft) counts(session string) bool { return session != "" && d.lead.Session == session }

// reported takes in the lead's list of agents that are alive. All other visible agents are
// sleeping.
func (d *crewDraft) reported(in Reported) error {
	if !d.counts(in.Session) {
		return d.faulty(Faulty{Session: in.Session, Marker: "[AGENT_STATUS]"})
	}
	if len(in.Agents) > listedMax {
		return d.faulty(Faulty{
			Agent: d.lead.Agent, Session: in.Session, Marker: "[AGENT_STATUS]",
			Fault: fmt.Sprintf("it lists %d agents, the limit is %d", len(in.Agents), listedMax),
		})
	}
	if in.OutOfRange() {
		fault := fmt.Sprintf("it lists no agent of the crew: %s on %s", quoted(in.Agents[0].Name), noMemberSeat(in.Agents[0].Seat))
		return d.faulty(Faulty{Agent: d.lead.Agent, Session: in.Session, Marker: "[AGENT_STATUS]", Fault: fault})
	}
	alive, listed, alone, wrong := d.match(in.Agents)
	for _, doc := range d.visible() {
		event := NotListed
		switch {
		case alive[doc.ID]:
			event = ListedAlive
		case alone[doc.ID]:
			continue
		}
		if _, takes := Table[doc.Status][event]; !takes {
			continue // asleep, and not listed
		}
		if err := d.move(doc.ID, event, named{}); err != nil {
			return err
		}
	}
	if err := d.reportEnds(listed); err != nil {
		return err
	}
	if err := d.registerAgain(in.Agents, alive); err != nil {
		return err
	}
	for _, words := range wrong {
		if err := d.leadStep(Noticed, step{Notice: d.notice(NoticeRefused, words, in.Session)}); err != nil {
			return err
		}
	}
	return nil
}

// match finds the agents that a report lists as alive, all agents that it lists, and those to leave
// unchanged because the report contradicts itself or the documents. wrong describes the
// contradictions.
func (d *crewDraft) match(report []Listed) (alive, listed, alone map[DocID]bool, wrong []string) {
	alive, listed, alone = map[DocID]bool{}, map[DocID]bool{}, map[DocID]bool{}
	for _, line := range report {
		doc, mixed, fault := d.meant(line)
		for _, other := range mixed {
			alone[other.ID] = true
		}
		if fault != "" {
			wrong = append(wrong, fault)
			continue
		}
		listed[doc.ID], alive[doc.ID] = true, line.Status == string(Alive)
	}
	for id := range alone {
		delete(alive, id)
		delete(listed, id)
	}
	return alive, listed, alone, wrong
}

// meant finds the document of one line, by its seat, then by its name. mixed are the documents that
// an inconsistent line may mean.
func (d *crewDraft) meant(line Listed) (doc *Document, mixed []*Document, fault string) {
	var same []*Document
	for _, one := range d.visible() {
		if one.Name == line.Name && line.Name != "" {
			same = append(same, one)
		}
	}
	if line.Seat == NoSeat {
		switch {
		case len(same) == 1:
			return same[0], nil, ""
		case len(same) > 1:
			return nil, same, fmt.Sprintf("a report names %s without a seat, and two agents have this name", quoted(line.Name))
		}
		return nil, nil, fmt.Sprintf("a report names %s, which was never registered", quoted(line.Name))
	}
	if words := noMemberSeat(line.Seat); words != "" {
		return nil, same, fmt.Sprintf("a report has %s on %s", quoted(line.Name), words)
	}
	switch here := d.onSeat(line.Seat); {
	case here != nil && (here.Status == Hatching || line.Name == "" || here.Name == line.Name):
		return here, nil, ""
	case here != nil:
		return nil, append(same, here),
			fmt.Sprintf("a report has %s on seat %d, which is %s's", quoted(line.Name), line.Seat, quoted(here.Name))
	case len(same) > 0:
		return nil, same, fmt.Sprintf("a report has %s on seat %d; it sits on seat %d", quoted(line.Name), line.Seat, same[0].Seat)
	default:
		return nil, nil, fmt.Sprintf("a report has %s on seat %d, which was never registered", quoted(line.Name), line.Seat)
	}
}

func quoted(name string) string { return fmt.Sprintf("%q", clip.Text(name, 100)) }

// reportEnds applies a report to the summon or wake in progress, which continues until all agents
// that it is about were reported (listed: as alive or not).
func (d *crewDraft) reportEnds(listed map[DocID]bool) error {
	l := &d.lead
	switch l.stage() {
	case Asking:
		if who := d.notAlive(l.Who); len(who) > 0 {
			for _, id := range who {
				if err := d.move(id, Woken, named{}); err != nil {
					return err
				}
			}
			return d.leadStep(ReportedSome, step{Wake: who})
		}
	case Waking:
		if l.pending(TellWake) {
			return d.reportEarly()
		}
		missing := slices.DeleteFunc(d.notAlive(l.Who), func(id DocID) bool { return listed[id] })
		if len(missing) > 0 {
			return d.leadStep(ReportedPart, step{Wake: missing})
		}
	case Summoning:
		if l.pending(TellSummon) {
			return d.leadStep(ReportedEarly, step{})
		}
		if slices.ContainsFunc(d.visible(), func(doc *Document) bool { return doc.Status == Hatching && !listed[doc.ID] }) {
			return d.leadStep(ReportedPart, step{})
		}
	case Idle:
	}
	return d.leadStep(ReportedAll, step{})
}

// reportEarly removes agents from a wake that were alive before the lead received it.
func (d *crewDraft) reportEarly() error {
	who := d.notAlive(d.lead.Who)
	if len(who) == 0 {
		return d.leadStep(ReportedAll, step{})
	}
	for _, id := range who {
		if err := d.move(id, Woken, named{}); err != nil {
			return err
		}
	}
	return d.leadStep(ReportedEarly, step{Wake: who})
}

func (d *crewDraft) notAlive(docs []DocID) (who []DocID) {
	for _, id := range docs {
		if doc := d.doc(id); doc.Visible() && doc.Status != Alive {
			who = append(who, id)
		}
	}
	return who
}

// registerAgain asks the lead to register an agent that it listed on a placeholder's seat. It asks once
// for a seat and session, because a lead that cannot do it would be asked forever.
func (d *crewDraft) registerAgain(listed []Listed, alive map[DocID]bool) error {
	var with step
	for _, doc := range d.visible() {
		if doc.Status != Hatching || !alive[doc.ID] || slices.Contains(d.lead.Again, doc.Seat) {
			continue
		}
		with.Seats = append(with.Seats, doc.Seat)
		name := ""
		for _, line := range listed {
			if line.Seat == doc.Seat {
				name = clip.Text(line.Name, 200)
			}
		}
		with.Names = append(with.Names, name)
	}
	if len(with.Seats) == 0 || len(d.lead.Actions) >= asksMax {
		return nil
	}
	return d.leadStep(RegisterDue, with)
}

// registered sets the identity of an agent.
func (d *crewDraft) registered(in Registered) error {
	if !d.counts(in.Session) {
		return d.faulty(Faulty{Session: in.Session, Marker: "[AGENT_REGISTERED] " + in.Name})
	}
	refused := func(words string) error {
		return d.leadStep(Noticed, step{Notice: d.notice(NoticeRefused, words, in.Session)})
	}
	switch words := noMemberSeat(in.Seat); {
	case words != "":
		return refused(fmt.Sprintf("%s was registered on %s", quoted(in.Name), words))
	case strings.TrimSpace(in.Name) == "":
		return refused(fmt.Sprintf("an agent without a name was registered on seat %d", in.Seat))
	}
	if err := d.goOn(); err != nil {
		return err
	}
	here := d.onSeat(in.Seat)
	if here == nil {
		if len(d.crew.Docs) >= docsMax {
			return refused(fmt.Sprintf("%s was registered, but there are already %d documents, which is the limit", quoted(in.Name),
				docsMax))
		}
		id := d.newID()
		return d.move(id, RegisteredHere, named{Identity: in.Identity, Made: d.made})
	}
	if here.Status != Hatching && here.Name != in.Name {
		return d.move(here.ID, RegisteredOther,
			named{Notice: fmt.Sprintf("%s was registered on seat %d, which is %s's", quoted(in.Name), in.Seat, quoted(here.Name))})
	}
	if err := d.move(here.ID, RegisteredHere, named{Identity: in.Identity}); err != nil || d.lead.stage() != Waking {
		return err
	}
	switch who := d.notAlive(d.lead.Who); {
	case len(who) == 0:
		return d.leadStep(AllAwake, step{})
	case len(who) < len(d.lead.Who) && d.lead.pending(TellWake):
		return d.leadStep(AwakeEarly, step{Wake: who})
	}
	return nil
}

// spoke records text and extends the deadline of a summon or wake.
func (d *crewDraft) spoke(in Spoke) error {
	session := in.Session
	if d.counts(session) {
		session = d.lead.UUID
	}
	for _, said := range few(Speakers(in.Text, d.lead.Agent, d.knows), d.lead.Agent) {
		d.add(change.Change{
			Entity: WordsEntity, Row: "L9", Trigger: "said",
			Body: &Body{Words: &Words{Session: session, Speaker: said.Speaker, Text: said.Text}},
		})
	}
	if !d.counts(in.Session) {
		return nil
	}
	return d.goOn()
}

// passagesMax limits the passages of one text, because each is a change in a journal that is kept
// forever.
const passagesMax = 256

// few merges the last passages into one of the lead if there are too many. The merged text contains
// the names of its speakers, so no text is lost.
func few(said []Passage, lead string) []Passage {
	if len(said) <= passagesMax {
		return said
	}
	var rest strings.Builder
	for i, one := range said[passagesMax-1:] {
		if i > 0 {
			rest.WriteByte('\n')
		}
		fmt.Fprintf(&rest, "[%s]: %s", one.Speaker, one.Text)
	}
	return append(said[:passagesMax-1:passagesMax-1], Passage{Speaker: lead, Text: rest.String()})
}

// knows reports whether an agent of the crew has this name.
func (d *crewDraft) knows(name string) bool {
	for _, doc := range d.crew.Docs {
		if doc.Name == name && name != "" {
			return true
		}
	}
	return false
}

// renewEvery is how often the lead's text extends a deadline, because each extension is a change.
const renewEvery = time.Second

func (d *crewDraft) goOn() error {
	l := &d.lead
	if _, takes := LeadTable[l.stage()][SpokeOn]; !takes || l.Ends.IsZero() || d.patience(l).Sub(l.Ends) < renewEvery {
		return nil
	}
	return d.leadStep(SpokeOn, step{})
}

// faulty records an invalid marker as a notice.
func (d *crewDraft) faulty(in Faulty) error {
	kind, words := NoticeFault, in.Fault
	switch {
	case in.Fault != "" && (in.Session == "" || d.counts(in.Session)):
	case d.lead.Agent == "":
		kind, words = NoticeIgnored, "the team has no lead"
	case in.Agent == d.lead.Agent:
		kind, words = NoticeIgnored, "only its session "+d.lead.Session+" counts, and this is another one"
	default:
		kind, words = NoticeIgnored, "only markers of "+d.lead.Agent+" count, which leads the team"
	}
	text := words
	if in.Marker != "" {
		text += ": " + in.Marker
	}
	return d.leadStep(Noticed, step{Notice: d.notice(kind, text, in.Session)})
}
