package crew

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// A script contains comments, input lines, a line of dashes, and the expected result. An empty line
// ends a block. The next block continues with the same crew, until `team` creates a new one. A line
// may begin with a time of day; otherwise it happens a second after the line before.
//
//	team [LEAD] [SIZE] [status=D] [hatch=D]    creates a crew, by default of eight, led by julian, and configures it
//	led by LEAD [SIZE] [status=D] [hatch=D]    configures it again
//	daemon starts                   a page load of seed 001
//	person summons | wakes [NAME or ID …]
//	hold | release | limit "words" | unlimited
//	lead is heard UUID              a marker in its ordinary session: o1 …
//	lead begins [UUID]              a lead session: s1, s2 …       lead outlives the daemon   it is adopted
//	lead ends ["why"]               lead loses its conversation    lead cannot begin "why"           lead is told [one]
//	lead registers NAME SEAT [soul="…"]
//	lead reports 'nobody' | NAME@SEAT[=STATUS] | NAME[=STATUS] | @SEAT …
//	lead says "…" | works
//	NAME registers … | reports … | says …      the same, from a session that is not the lead's
//	lead garbles "marker" "fault"   NAME garbles …
//	import ID SEAT [STATUS | bare] [name=N] [soul="…"] [extra={…}]
//	time                            the next deadline passes
func TestScripts(t *testing.T) {
	golden.Stories(t, "*.script", func(t *testing.T, script string) string { return (&stage{t: t}).play(script) })
}

type stage struct {
	t        *testing.T
	crew     *Crew
	now      Now
	sessions int
	asks     map[uint64]bool
	shown    string
	out      strings.Builder
}

// play runs a script and returns it with its actual results.
func (s *stage) play(script string) string {
	return machinetest.Play(script, &s.out, func(line string) bool { s.line(line); return true }, s.show)
}

func (s *stage) line(line string) {
	words := machinetest.Fields(line)
	s.now.At, words = machinetest.Next(s.now.At, words)
	switch words[0] {
	case "team":
		s.crew, s.now, s.asks, s.sessions, s.shown = noLead(), Now{At: machinetest.Noon}, map[uint64]bool{}, 0, ""
		s.quietly(s.configured(words[1:]))
	case "led":
		s.decide(s.configured(words[2:]))
	case "daemon":
		s.decide(DaemonStarted{})
	case "person":
		s.person(words[1:])
	case "hold":
		s.now.Held = true
	case "release":
		s.now.Held = false
	case "limit":
		s.now.Limit = words[1]
	case "unlimited":
		s.now.Limit = ""
	case "import":
		s.imports(words[1:])
	case "time":
		if s.now.At = s.crew.Deadline(); s.now.At.IsZero() {
			s.t.Fatal("no deadline stands")
		}
		s.decide(TimerFired{})
	case "lead":
		s.lead(words[1:])
	default:
		s.says(words[0], "s-"+words[0], words[1:])
	}
}

func (s *stage) configured(words []string) LeadConfigured {
	in := LeadConfigured{Agent: "julian", Size: 8}
	for _, word := range words {
		key, value, has := strings.Cut(word, "=")
		size, err := strconv.Atoi(word)
		switch {
		case has && key == "status":
			in.StatusMax, _ = time.ParseDuration(value)
		case has && key == "hatch":
			in.HatchMax, _ = time.ParseDuration(value)
		case word == "nobody":
			in = LeadConfigured{}
		case err == nil:
			in.Size = size
		default:
			in.Agent = word
		}
	}
	return in
}

func (s *stage) person(words []string) {
	if words[0] == "summons" {
		s.decide(SummonAsked{})
		return
	}
	var in WakeAsked
	for _, name := range words[1:] {
		if doc, err := s.crew.ByName(name); err == nil {
			name = string(doc.ID)
		}
		in.Docs = append(in.Docs, DocID(name))
	}
	s.decide(in)
}

func (s *stage) lead(words []string) {
	session := s.crew.Lead.Session
	switch words[0] {
	case "begins":
		s.sessions++
		session = fmt.Sprint("s", s.sessions)
		uuid := "uuid-" + session
		if len(words) > 1 {
			uuid = words[1]
		}
		s.decide(LeadBegan{Session: session, UUID: uuid})
	case "outlives":
		s.decide(LeadBegan{Session: session, UUID: s.crew.Lead.UUID, Adopted: true})
	case "loses": // loses its conversation
		s.decide(LeadLost{Session: session})
	case "ends":
		s.decide(LeadEnded{Session: session, Why: strings.Join(words[1:], " ")})
	case "cannot":
		s.decide(LeadEnded{Why: words[2]})
	case "is":
		if words[1] == "heard" {
			s.sessions++
			s.decide(LeadHeard{Session: fmt.Sprint("o", s.sessions), UUID: words[2]})
			return
		}
		s.tell(len(words) > 2)
	default:
		s.says("julian", cmp.Or(session, "s0"), words)
	}
}

// tell delivers the pending actions of the lead, or only the first one.
func (s *stage) tell(one bool) {
	for range 100 {
		asks := s.crew.Lead.Actions
		if len(asks) == 0 {
			return
		}
		fmt.Fprintf(&s.out, "  -> %s\n", askText(asks[0]))
		if s.decide(ActionReceived{N: asks[0].N}); one {
			return
		}
	}
	s.t.Fatal("a hundred actions without an end")
}

func askText(a Action) string {
	text := fmt.Sprintf("%s %d", a.Do, a.N)
	for i, seat := range a.Seats {
		text += fmt.Sprintf(" %d", seat)
		if i < len(a.Names) {
			text += "=" + a.Names[i]
		}
	}
	for _, id := range a.Docs {
		text += " " + string(id)
	}
	return text
}

func (s *stage) says(who, session string, words []string) {
	switch words[0] {
	case "registers":
		seat, err := strconv.Atoi(words[2])
		if err != nil {
			s.t.Fatal(err)
		}
		in := Registered{Session: session, Identity: Identity{Name: words[1], Seat: seat, Color: "#c9b1e8"}}
		in.Soul = cmp.Or(value(words, "soul"), "I am "+words[1]+".")
		s.decide(in)
	case "reports":
		in := Reported{Session: session}
		for _, word := range words[1:] {
			if word != "nobody" {
				in.Agents = append(in.Agents, listed(s.t, word))
			}
		}
		s.decide(in)
	case "says":
		s.decide(Spoke{Session: session, Text: words[1]})
	case "works":
		s.decide(Spoke{Session: session})
	case "garbles":
		s.decide(Faulty{Agent: who, Session: session, Marker: words[1], Fault: words[2]})
	default:
		s.t.Fatalf("%s cannot do that: %v", who, words)
	}
}

// listed parses NAME@SEAT=STATUS. All parts but one may be missing.
func listed(t testing.TB, word string) Listed {
	line := Listed{Status: "alive", Seat: NoSeat}
	name, status, has := strings.Cut(word, "=")
	if has {
		line.Status = status
	}
	name, seat, has := strings.Cut(name, "@")
	if line.Name = name; has {
		n, err := strconv.Atoi(seat)
		if err != nil {
			t.Fatal(err)
		}
		line.Seat = n
	}
	return line
}

func value(words []string, key string) string {
	for _, word := range words {
		if v, ok := strings.CutPrefix(word, key+"="); ok {
			return v
		}
	}
	return ""
}

func (s *stage) imports(words []string) {
	seat, err := strconv.Atoi(words[1])
	if err != nil {
		s.t.Fatal(err)
	}
	in := Imported{ID: DocID(words[0]), From: words[0] + ".json", Document: Document{
		Status: Unknown, CreatedAt: s.now.At.Add(-time.Hour), LastAliveAt: s.now.At.Add(-time.Minute), LastSession: "another-device",
		Identity: Identity{Name: value(words, "name"), Seat: seat, Soul: value(words, "soul")},
	}}
	if slices.Contains(words, "hatching") {
		in.Document.CreatedAt = s.now.At
	}
	if extra := value(words, "extra"); extra != "" {
		in.Document.Extra = json.RawMessage(extra)
	}
	for _, word := range words[2:] {
		if word == "bare" {
			in.Bare, in.Document.Status = true, ""
		} else if !strings.Contains(word, "=") {
			in.Document.Status = Status(word)
		}
	}
	if is := s.crew.Docs[in.ID]; is != nil { // the program that writes the file leaves the rest unchanged
		doc := *is
		doc.Extra = in.Document.Extra
		if word := value(words, "name"); word != "" {
			doc.Name = word
		}
		if len(words) > 2 && !strings.Contains(words[2], "=") {
			doc.Status = in.Document.Status
		}
		if word := value(words, "soul"); word != "" {
			doc.Soul = word
		}
		doc.Seat = seat
		in.Document = doc
	}
	s.decide(in)
}

func (s *stage) quietly(in Input) {
	changes, err := decide(s.t, s.crew, in, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, ch := range changes {
		s.crew.Apply(journaled(s.t, ch))
	}
}

func (s *stage) decide(in Input) {
	changes, err := decide(s.t, s.crew, in, s.now)
	switch {
	case err != nil:
		fmt.Fprintf(&s.out, "refused: %v\n", err)
	case len(changes) == 0:
		s.out.WriteString("nothing\n")
	}
	for _, ch := range changes {
		before := s.crew.Lead
		s.crew.Apply(journaled(s.t, ch))
		s.tellChange(&ch, &before)
	}
}

func (s *stage) tellChange(ch *change.Change, before *Lead) {
	who := cmp.Or(string(DocOf(ch)), "lead")
	body := change.As[Body](ch.Body)
	switch {
	case body.Words != nil:
		fmt.Fprintf(&s.out, "  %s, %s: %q\n", body.Words.Session, body.Words.Speaker, body.Words.Text)
		return
	case ch.From == ch.To:
		fmt.Fprintf(&s.out, "%-34s %-4s %s\n", who+" "+ch.From, ch.Row, ch.Trigger)
	default:
		fmt.Fprintf(&s.out, "%-34s %-4s %s\n", fmt.Sprintf("%s %s -> %s", who, ch.From, ch.To), ch.Row, ch.Trigger)
	}
	if n := body.Notice; n != nil {
		fmt.Fprintf(&s.out, "  %s: %s\n", n.Kind, n.Text)
	}
	if body.Lead == nil {
		return
	}
	for _, a := range body.Lead.Actions {
		if had, is := before.ActionOf(a.N); !is {
			fmt.Fprintf(&s.out, "  to be told: %s\n", askText(a))
		} else if !slices.Equal(had.Docs, a.Docs) {
			fmt.Fprintf(&s.out, "  to be told instead: %s\n", askText(a))
		}
	}
	for _, a := range before.Actions {
		if _, is := body.Lead.ActionOf(a.N); !is && ch.Trigger != string(Received) {
			fmt.Fprintf(&s.out, "  not to be told any more: %s\n", askText(a))
		}
	}
}

// show prints the state of the crew if it changed.
func (s *stage) show() {
	l := &s.crew.Lead
	text := string(s.crew.Button())
	switch {
	case l.Session == "":
		text += ", lead asleep"
	case l.Heard():
		text += ", lead " + l.Session + " heard"
	default:
		text += ", lead " + l.Session + " not heard"
	}
	if l.InProgress() {
		text += ", " + string(l.Stage)
	}
	if d := s.crew.Deadline(); !d.IsZero() {
		text += ", until " + d.Format("15:04:05")
	}
	for _, doc := range s.crew.InOrder() {
		if !doc.Visible() {
			text += fmt.Sprintf(" | (%s expired)", doc.ID)
			continue
		}
		text += fmt.Sprintf(" | %d %s %s", doc.Seat, cmp.Or(doc.Name, string(doc.ID)), doc.Status)
		if doc.LastSession != "" {
			text += " " + doc.LastSession
		}
	}
	if text != s.shown {
		s.out.WriteString("= " + text + "\n")
	}
	s.shown = text
}
