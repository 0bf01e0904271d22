package crew

import (
	"fmt"
	"strings"
	"time"
)

// names are the names of members in a walk. Two members may have the same name.
var names = []string{"Lyra", "Kael"}

// walkInputs returns all inputs for a crew of a size, except timers. few selects some of them, and
// only reports in which each agent is alive or not listed.
func walkInputs(size int, few bool) []walkInput {
	all := []walkInput{
		{"a person summons", always(SummonAsked{})},
		{"a person wakes all", always(WakeAsked{})},
		{"the lead begins", func(c *Crew) Input {
			if c.Lead.Session != "" {
				return nil
			}
			return LeadBegan{Session: "s1", UUID: "u1"}
		}},
		{"the lead is adopted", func(c *Crew) Input {
			if c.Lead.Session == "" || c.Lead.Heard() {
				return nil
			}
			return LeadBegan{Session: c.Lead.Session, UUID: c.Lead.UUID, Adopted: true}
		}},
		{"the lead ends", func(c *Crew) Input { return LeadEnded{Session: c.Lead.Session, Why: "it went"} }},
		{"the lead is told", func(c *Crew) Input {
			if c.Lead.Session == "" || len(c.Lead.Actions) == 0 {
				return nil
			}
			return ActionReceived{N: c.Lead.Actions[0].N}
		}},
		{"the lead speaks", func(c *Crew) Input { return Spoke{Session: c.Lead.Session, Text: "words"} }},
	}
	for seat := range size {
		all = append(all, walkInput{fmt.Sprintf("a person wakes seat %d", seat), func(c *Crew) Input {
			for id, doc := range c.Docs {
				if doc.Visible() && doc.Seat == seat {
					return WakeAsked{Docs: []DocID{id}}
				}
			}
			return nil
		}})
		for i, name := range names {
			if few && i != seat%len(names) {
				continue
			}
			all = append(all, walkInput{fmt.Sprintf("%s registers on %d", name, seat), func(c *Crew) Input {
				if c.Lead.Session == "" {
					return nil
				}
				return Registered{Session: c.Lead.Session, Identity: Identity{Name: name, Seat: seat}}
			}})
		}
		for _, status := range []Status{Alive, Sleeping, Hatching} {
			if few && status != Sleeping {
				continue
			}
			all = append(all, walkInput{fmt.Sprintf("%s imported on %d", status, seat), imported(status, seat)})
		}
	}
	return append(all, reports(size, few)...)
}

func always(in Input) func(*Crew) Input { return func(*Crew) Input { return in } }

func imported(status Status, seat int) func(*Crew) Input {
	return func(c *Crew) Input {
		in := Imported{Document: Document{Status: status, Identity: Identity{Name: "Lyra", Seat: seat}, LastSession: "elsewhere"}}
		if status == Hatching {
			in.Document.Name = ""
			in.Document.CreatedAt = time.Time{} // "now"
		}
		return in
	}
}

// reports returns all reports of a lead on this number of seats: for each seat no line, its member
// as alive, or another member as alive; and lines without a seat.
func reports(size int, few bool) []walkInput {
	hows := []string{"is alive", "is another one", "is named"}
	if few {
		hows = hows[:1]
	}
	all := []walkInput{{"the report", func(*Crew) Input { return Reported{} }}}
	for seat := range size {
		longer := all
		for _, how := range hows {
			for _, d := range all {
				longer = append(longer, walkInput{fmt.Sprintf("%s, %d %s", d.name, seat, how), func(c *Crew) Input {
					in := d.in(c).(Reported)
					in.Agents = append(in.Agents, line(c, seat, how))
					return in
				}})
			}
		}
		all = longer
	}
	for i, d := range all {
		all[i].in = func(c *Crew) Input {
			in := d.in(c).(Reported)
			if in.Session = c.Lead.Session; in.Session == "" {
				return nil
			}
			return in
		}
	}
	return all
}

func line(c *Crew, seat int, how string) Listed {
	name := names[0]
	for _, doc := range c.Docs {
		if doc.Visible() && doc.Seat == seat && doc.Name != "" {
			name = doc.Name
		}
	}
	switch {
	case how == "is alive":
		return Listed{Name: name, Status: "alive", Seat: seat}
	case how == "is named":
		return Listed{Name: name, Status: "alive", Seat: NoSeat}
	default:
		return Listed{Name: strings.ToUpper(name), Status: "alive", Seat: seat}
	}
}
