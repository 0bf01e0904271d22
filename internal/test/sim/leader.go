package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// What a lead does when it is told something about its team, before it reports, and how it does.
var (
	callings = []string{"well", "well", "well", "some", "twice", "wrong", "others", "broken", "none"}
	reports  = []string{
		"well", "well", "well", "well", "late", "empty", "partial", "lies", "mixed", "seatless",
		"broken", "pieces", "pieces", "lines", "twice", "glued", "silent", "mute", "torn", "goes", "crashes",
	}
	givenNames = []string{"Lyra", "Kael", "Noor", "Mira", "O'<Brien>&Co", "Ærøskøbing 漢字", "Tess", "Odo"}
)

// leads answers one thing that a lead is told for its team.
func (k *talker) leads(do crew.ActionKind) (end script.End, over bool) {
	how, rep := callings[k.rnd.IntN(len(callings))], reports[k.rnd.IntN(len(reports))]
	if k.w.isEvening() {
		how, rep = "well", []string{"well", "pieces", "lines"}[k.rnd.IntN(3)]
	}
	why := k.rest(100, 2500)
	if why == none {
		k.tell(map[string]any{"type": driver.UsageReported, "input_tokens": 2, "output_tokens": 1, "cost_usd": leadCost(k.w.isEvening())})
		switch do {
		case crew.TellSummon, crew.TellRegister:
			why = k.calls(how)
		case crew.TellWake:
			why = k.wakes(how)
		case crew.TellStatus:
			k.chats()
		}
	}
	if why == none {
		switch rep {
		case "goes":
			k.chats()
			return k.end(nothing), true
		case "crashes":
			return script.End{Code: -1, Signal: "SIGSEGV"}, true
		case "torn":
			text := k.status(k.here("alive"))
			k.said("and now "+text[:k.rnd.IntN(len(text)-1)+1], true, nil)
			return script.End{Code: -1, Signal: "SIGSEGV"}, true
		}
		why = k.reportsThat(rep)
	}
	switch why {
	case none:
		return script.End{}, false
	case hushed:
		return k.stopped()
	default:
		return k.end(why), true
	}
}

// leadCost is what an answer costs: a lead that has a limit is to meet it on its day, and not in
// the evening.
func leadCost(evening bool) float64 {
	if evening {
		return 0.01
	}
	return leadCostMax / 4
}

// calls has agents come into being, each on its seat.
func (k *talker) calls(how string) cut {
	if how == "none" {
		return none
	}
	seats := k.w.hatching()
	if len(seats) == 0 {
		seats = []int{k.rnd.IntN(9)}
	}
	for i, seat := range seats {
		if why := k.rest(50, 2500); why != none {
			return why
		}
		name := givenNames[(seat+k.rnd.IntN(2))%len(givenNames)]
		if how == "some" && i%2 == 1 {
			k.crew[seat] = name // it is there, but was never named
			continue
		}
		m := k.registers(name, seat)
		k.utter(m, k.manner())
		switch how {
		case "twice":
			k.utter(k.again(m), k.manner())
		case "wrong":
			k.utter(k.registers(name, []int{4, 9, -1, 1 << 40}[k.rnd.IntN(4)]), "whole")
		case "others":
			k.utter(k.registers("another agent", seat), "whole")
		case "broken":
			k.utter(&spelled{mark: mark{kind: registerMark}, text: registerMark + ` {"name":"` + name + `","gridPosition":"` + strconv.Itoa(seat) + `"}`}, "whole")
		}
		k.crew[seat] = name
		if k.rnd.IntN(2) == 0 {
			k.speaksFor(name)
		}
	}
	return k.gone
}

// wakes starts those again whom it is told to.
func (k *talker) wakes(how string) cut {
	all, _ := payloadsIn(k.now.order.Text)
	for i, p := range all {
		if why := k.rest(50, 2500); why != none {
			return why
		}
		seat, _ := strconv.Atoi(p.Seat)
		if how == "none" || how == "some" && i%2 == 1 {
			continue
		}
		k.crew[seat] = p.Name
		if how == "twice" { // it need not register anybody, and does
			k.utter(k.registers(p.Name, seat), k.manner())
		}
		k.speaksFor(p.Name)
	}
	return k.gone
}

// reportsThat says who is alive, or what it takes for that.
func (k *talker) reportsThat(how string) cut {
	said := k.here("alive")
	switch how {
	case "late":
		if why := k.rest(28_000, 70_000); why != none {
			return why
		}
	case "silent":
		k.chats()
		return none
	case "mute":
		return none
	case "empty":
		clear(k.crew)
		said = nil
	case "partial":
		said = said[:len(said)/2]
	case "lies":
		said = k.w.everybody()
	case "mixed":
		for i := range said {
			said[i].seat = (said[i].seat + k.rnd.IntN(3)) % 10
		}
		said = append(said, k.here([]string{"idle", "alive", "sleeping"}[k.rnd.IntN(3)])...)
		said = append(said, entry{name: "nobody", status: "alive", seat: k.rnd.IntN(9)})
	case "seatless":
		for i := range said {
			said[i].seat = -1
		}
	case "broken":
		text := k.status(said)
		k.utter(&spelled{mark: mark{kind: statusMark}, text: text[:len(text)-3] + `"x}`}, "whole")
		return none
	case "glued":
		k.utter(k.report(said), "glued")
		return none
	case "twice":
		k.utter(k.report(nil), k.manner())
	}
	if how != "pieces" && how != "lines" {
		how = k.manner()
	}
	return k.utter(k.report(said), how)
}

// here are those who live in this session, as a report lists them.
func (k *talker) here(status string) (all []entry) {
	for _, seat := range slices.Sorted(maps.Keys(k.crew)) {
		all = append(all, entry{k.crew[seat], status, seat})
	}
	return all
}

func (k *talker) manner() string {
	return []string{"whole", "whole", "glued", "pieces", "lines"}[k.rnd.IntN(5)]
}

// spelled is a marker with its text.
type spelled struct {
	mark
	text string
}

func (k *talker) report(said []entry) *spelled {
	return &spelled{mark: mark{kind: statusMark, listed: said, sound: true}, text: k.status(said)}
}

func (k *talker) again(m *spelled) *spelled {
	return &spelled{mark: mark{kind: m.kind, who: m.who, listed: m.listed, sound: m.sound}, text: m.text}
}

func (k *talker) status(said []entry) string {
	list := make([]map[string]any, len(said))
	for i, e := range said {
		list[i] = map[string]any{"name": e.name, "status": e.status}
		if e.seat >= 0 {
			list[i]["gridPosition"] = e.seat
		}
	}
	return statusMark + " " + marshal(map[string]any{"agents": list, "more": "than is asked for"})
}

func (k *talker) registers(name string, seat int) *spelled {
	soul := fmt.Sprintf("I chose %s in %s. ]]> </soul> & \"so\" [AGENT_STATUS] {\"agents\":[]} %d", name, k.s.id, k.rnd.IntN(1000))
	is := crew.Identity{Name: name, Seat: seat, Soul: soul, Color: "#c9b1e8", ColorName: "Violet Heaven", Gender: "woman", Face: crew.Face{Eyes: "standard", Mouth: "gentle"}}
	return &spelled{mark: mark{kind: registerMark, who: is, sound: seat >= 0}, text: registerMark + " " + marshal(map[string]any{
		"name": name, "color": is.Color, "colorName": is.ColorName, "gender": is.Gender, "gridPosition": seat,
		"faceVariant": map[string]string{"eyes": "standard", "mouth": "gentle"}, "individuationArtifact": soul,
	})}
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sim: " + err.Error())
	}
	return string(b)
}

// utter says a marker: in one message, with words around it, in pieces that may end anywhere, or
// over several lines.
func (k *talker) utter(m *spelled, how string) (why cut) {
	if k.gone != none {
		return k.gone
	}
	pieces := []string{m.text}
	part := false
	switch how {
	case "glued":
		pieces[0] = "so it is " + k.newWord("") + " " + m.text + " and so on " + k.newWord("")
	case "lines":
		pieces = strings.SplitAfter(m.text, ",")
	case "pieces":
		part, pieces = true, nil
		for text := m.text; text != ""; {
			n := min(len(text), 1+k.rnd.IntN(60))
			for n < len(text) && !utf8.RuneStart(text[n]) { // within JSON there are whole characters
				n++
			}
			pieces, text = append(pieces, text[:n]), text[n:]
		}
	}
	for i, piece := range pieces {
		last := i == len(pieces)-1
		if i > 0 && k.rnd.IntN(6) == 0 {
			switch stop := k.rest(5, 900); stop {
			case none:
			case hushed:
				why = stop // it finishes the sentence
			default:
				k.gone = stop
				return stop
			}
		}
		of := &m.mark
		if !last {
			of = nil
		}
		k.said(piece, part, of)
	}
	if part {
		k.said("\n", false, nil)
	}
	return why
}

// said says something as it is; of is the marker that ends with it.
func (k *talker) said(text string, part bool, of *mark) {
	if k.gone != none {
		return // in the middle of a marker: nothing may look like the rest of it
	}
	event := map[string]any{"type": driver.Said, "text": text}
	if part {
		event["part"] = true
	}
	line := marshal(event) + "\n"
	k.w.mu.Lock()
	if of != nil { // noted before anybody can hear it
		of.end = int64(len(k.s.out) + len(line))
		k.w.crew.marks[k.s.id] = append(k.w.crew.marks[k.s.id], of)
	}
	if k.s.kind == driver.Lead {
		k.w.crew.quiet = k.w.now()
	}
	k.w.mu.Unlock()
	_, _ = spool{k.w, k.s}.Write([]byte(line))
}

func (k *talker) newWord(speaker string) string {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	name := k.w.book.word(agentIn(k.s.id), k.s, k.now.key)
	k.w.book.words[name].must, k.w.book.words[name].speaker = k.open && k.gone == none, speaker
	return name
}

// chats says something, sometimes for a member.
func (k *talker) chats() {
	names := slices.Sorted(maps.Values(k.crew))
	if len(names) > 0 && k.rnd.IntN(2) == 0 {
		k.speaksFor(names[k.rnd.IntN(len(names))])
		return
	}
	if k.rnd.IntN(3) == 0 {
		k.speaksFor(agentIn(k.s.id))
		return
	}
	k.said("I look around "+k.newWord(""), false, nil)
}

func (k *talker) speaksFor(name string) {
	k.said("["+name+"]: I am here "+k.newWord(name), false, nil)
}

// markers has an agent that talks in a channel report on the crew: if it is the lead, the report
// counts, and otherwise it must not.
func (k *talker) markers() cut {
	if k.w.lead() == "" || k.rnd.IntN(6) != 0 {
		return none
	}
	if k.s.kind != driver.Lead && agentIn(k.s.id) == k.w.lead() {
		return none // they would count; the random orders of package team have that
	}
	if k.s.kind != driver.Lead {
		k.utter(k.report(k.w.everybody()), k.manner())
		return k.utter(k.registers("an impostor", k.rnd.IntN(9)), "whole")
	}
	if k.rnd.IntN(3) == 0 {
		k.chats()
	}
	return k.reportsThat([]string{"well", "partial", "pieces", "lines", "seatless"}[k.rnd.IntN(5)])
}

// hatching lists the seats with placeholders, and everybody is the whole team as a liar has it.
func (w *world) hatching() (seats []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, is := range w.crew.inOrder() {
		if is.status == "hatching" {
			seats = append(seats, is.seat)
		}
	}
	return seats
}

func (w *world) everybody() (all []entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, is := range w.crew.inOrder() {
		if is.status != "expired" {
			all = append(all, entry{cmp.Or(is.name, "no one yet"), "alive", is.seat})
		}
	}
	return all
}
