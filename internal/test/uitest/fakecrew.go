package uitest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Document is one agent of the crew as the API shows it.
type Document struct {
	Type        string    `json:"type"`
	Status      string    `json:"status"`
	Name        *string   `json:"name"`
	Color       string    `json:"color"`
	ColorName   string    `json:"colorName"`
	Gender      string    `json:"gender"`
	Seat        int       `json:"gridPosition"`
	Face        FaceWords `json:"faceVariant"`
	Soul        string    `json:"individuationArtifact"`
	CreatedAt   string    `json:"createdAt"`
	LastAliveAt *string   `json:"lastAliveAt"`
	LastSession *string   `json:"lastSessionId"`
	ID          string    `json:"id"`
}

// FaceWords are what an agent's face is drawn from.
type FaceWords struct {
	Eyes  string `json:"eyes"`
	Mouth string `json:"mouth"`
}

// CrewLead is the agent that answers for the crew.
type CrewLead struct {
	Agent      string     `json:"agent"`
	Session    string     `json:"session"`
	State      string     `json:"state"`
	Why        string     `json:"why"`
	ReportedAt *time.Time `json:"reported_at"`
	Seat       int        `json:"seat"`
}

// Noticed is something that people should see.
type Noticed struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Text    string    `json:"text"`
	Session string    `json:"session"`
}

// Said is what one speaker said in a row.
type Said struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Session string    `json:"session"`
	Speaker string    `json:"speaker"`
	Kind    string    `json:"kind"`
	Channel string    `json:"channel"`
	Text    string    `json:"text"`
}

// fakeCrew is the part of a Fake that a lead answers for. It follows the presence machine's
// table as far as a page can see it.
type fakeCrew struct {
	docs     []*Document
	lead     CrewLead
	size     int
	progress string
	notices  []Noticed
	said     []Said
	uuid     string // of the lead session that is open
	sessions int
	soulsOut bool
}

// seatsOf are the seats in the order in which they are filled: all but the lead's.
var seatsOf = []int{0, 1, 2, 3, 5, 6, 7, 8}

// Led makes an agent the lead of a crew of so many. Nobody is there yet.
func (f *Fake) Led(lead string, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crew.lead, f.crew.size = CrewLead{Agent: lead, State: "asleep", Seat: 4}, size
}

func (f *Fake) stamp() string { return f.now().Format("2006-01-02T15:04:05.000Z") }

// button is the seed's table.
func (c *fakeCrew) button() string {
	count := map[string]int{}
	visible := 0
	for _, d := range c.docs {
		count[d.Status]++
		if d.Status != "expired" {
			visible++
		}
	}
	switch {
	case c.lead.Agent == "":
		return "none"
	case c.progress != "":
		return "WAKING…"
	case visible == 0:
		return "SUMMON"
	case count["sleeping"]+count["unknown"] > 0:
		return "WAKE"
	case count["hatching"] > 0:
		return "WAKING…"
	}
	return "none"
}

// tellDocument puts a document as it is now into the journal; who: with its identity.
func (f *Fake) tellDocument(d *Document, row, from, trigger string, who bool) {
	set := map[string]any{"status": d.Status, "created_at": d.CreatedAt}
	if d.LastAliveAt != nil {
		set["last_alive_at"] = *d.LastAliveAt
	}
	if d.LastSession != nil {
		set["last_session"] = *d.LastSession
	}
	if who {
		name := ""
		if d.Name != nil {
			name = *d.Name
		}
		set["identity"] = map[string]any{"name": name, "color": d.Color, "color_name": d.ColorName, "gender": d.Gender, "seat": d.Seat, "face": d.Face, "soul": d.Soul}
	}
	f.append(Change{Machine: "presence", Entity: "presence/" + d.ID, Row: row, From: from, To: d.Status, Trigger: trigger, Actor: Actor{"agent", f.crew.lead.Agent}, Data: map[string]any{"presence": map[string]any{"doc": set}}})
}

func (f *Fake) tellLead(trigger string) {
	c := &f.crew
	set := map[string]any{"agent": c.lead.Agent, "session": c.lead.Session, "uuid": c.uuid, "stage": c.progress, "size": c.size}
	if c.lead.ReportedAt != nil {
		set["reported"] = *c.lead.ReportedAt
	}
	f.append(Change{Machine: "presence", Entity: "presence/lead", Row: "L1", From: "idle", To: "idle", Trigger: trigger, Actor: Actor{"engine", "presence"}, Data: map[string]any{"presence": map[string]any{"lead": set}}})
}

// become brings a document into a status.
func (f *Fake) become(d *Document, row, to, trigger string, who bool) {
	from := d.Status
	d.Status = to
	if to == "alive" {
		now, session := f.stamp(), f.crew.uuid
		d.LastAliveAt, d.LastSession = &now, &session
	}
	f.tellDocument(d, row, from, trigger, who)
}

// summon is P1.
func (f *Fake) summon() string {
	c := &f.crew
	if slices.ContainsFunc(c.docs, func(d *Document) bool { return d.Status != "expired" }) {
		return "there is a crew already; wake it"
	}
	c.progress = "summoning"
	for _, seat := range seatsOf[:c.size] {
		d := &Document{Type: "agent-identity", Seat: seat, CreatedAt: f.stamp(), ID: fmt.Sprintf("agent-%d", len(c.docs)+1)}
		c.docs = append(c.docs, d)
		f.become(d, "P1", "hatching", "summon_asked", true)
	}
	f.leadBegins()
	return ""
}

// wake is P8: nobody is alive by it.
func (f *Fake) wake() {
	f.crew.progress = "asking"
	for _, d := range f.crew.docs {
		if d.Status == "sleeping" {
			f.become(d, "P8", "unknown", "wake_asked", false)
		}
	}
	f.leadBegins()
}

func (f *Fake) leadBegins() {
	c := &f.crew
	if c.lead.Session == "" {
		c.sessions++
		c.lead.Session, c.lead.State = fmt.Sprintf("%s-%d", c.lead.Agent, c.sessions), "unheard"
		c.uuid = fmt.Sprintf("%08x-4a1e-4c8e-9d10-6b1f0e4d2c77", uint32(0x0b7d3c52)*uint32(c.sessions))
	}
	f.tellLead("lead_began")
}

// on finds who sits there.
func (c *fakeCrew) on(seat int) *Document {
	i := slices.IndexFunc(c.docs, func(d *Document) bool { return d.Seat == seat && d.Status != "expired" })
	if i < 0 {
		return nil
	}
	return c.docs[i]
}

// Hatch is P2: whoever hatches on a seat becomes somebody.
func (f *Fake) Hatch(seat int, d Document) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.crew.on(seat)
	old.Name, old.Color, old.ColorName, old.Gender, old.Face, old.Soul = d.Name, d.Color, d.ColorName, d.Gender, d.Face, d.Soul
	f.become(old, "P2", "alive", "registered", true)
}

// Report is what the lead says of its crew: who sits there is alive, the others sleep (P4, P5).
func (f *Fake) Report(seats ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	c := &f.crew
	c.lead.State, c.lead.ReportedAt, c.progress = "heard", &now, ""
	for _, d := range c.docs {
		switch listed := slices.Contains(seats, d.Seat); {
		case d.Status == "hatching" || d.Status == "expired":
		case listed:
			f.become(d, "P4", "alive", "listed", false)
		case d.Status != "sleeping":
			f.become(d, "P5", "sleeping", "not_listed", false)
		}
	}
	f.tellLead("reported")
}

// LeadEnds is P3.
func (f *Fake) LeadEnds() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leadEnds()
}

func (f *Fake) leadEnds() {
	c := &f.crew
	c.lead.Session, c.lead.State, c.lead.ReportedAt, c.progress = "", "asleep", nil, ""
	for _, d := range c.docs {
		if d.Status == "alive" {
			f.become(d, "P3", "sleeping", "lead_ended", false)
		}
	}
	f.tellLead("lead_ended")
}

// Notice has people see something about the lead's words.
func (f *Fake) Notice(kind, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := Noticed{At: f.now(), Kind: kind, Text: text, Session: f.crew.uuid}
	f.crew.notices = append(f.crew.notices, n)
	f.append(Change{Machine: "presence", Entity: "presence/lead", Row: "L9", Trigger: "noticed", Actor: Actor{"engine", "presence"}, Data: map[string]any{"presence": map[string]any{"notice": n}}})
}

// Speak is what somebody says in the lead's session.
func (f *Fake) Speak(speaker, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := "agent"
	if speaker == f.crew.lead.Agent {
		kind = "lead"
	}
	f.append(Change{Machine: "presence", Entity: "presence/words", Trigger: "spoke", Actor: Actor{"agent", f.crew.lead.Agent}, Data: map[string]any{"presence": map[string]any{"words": map[string]any{"session": f.crew.uuid, "speaker": speaker, "text": text}}}})
	f.crew.said = append(f.crew.said, Said{Seq: uint64(len(f.changes)), At: f.now(), Session: f.crew.uuid, Speaker: speaker, Kind: kind, Text: text})
}

// EditDocument changes a document behind the journal's back, as passing time does.
func (f *Fake) EditDocument(seat int, change func(*Document)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.crew.on(seat))
}

// LeaveOutSouls has the list of the crew carry no souls, as one that would be too long does.
func (f *Fake) LeaveOutSouls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crew.soulsOut = true
}

// named finds a document by its id, then by its name.
func (c *fakeCrew) named(name string) *Document {
	for _, d := range c.docs {
		if d.ID == name {
			return d
		}
	}
	for _, d := range c.docs {
		if d.Name != nil && *d.Name == name && d.Status != "expired" {
			return d
		}
	}
	return nil
}

// transcript is the page of what was said that a query asks for.
func (c *fakeCrew) transcript(speaker, session, text string, before, after uint64, limit int) ([]Said, bool) {
	found := []Said{}
	for _, m := range c.said {
		if (speaker == "" || m.Speaker == speaker) && (session == "" || m.Session == session) && strings.Contains(strings.ToLower(m.Text), strings.ToLower(text)) &&
			(before == 0 || m.Seq < before) && m.Seq > after {
			found = append(found, m)
		}
	}
	switch {
	case len(found) <= limit:
		return found, false
	case after > 0:
		return found[:limit], true
	default:
		return found[len(found)-limit:], true
	}
}
