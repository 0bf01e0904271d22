package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// registerKinds and reportKinds are the ways in which a lead registers members and reports their
// status.
var (
	registerKinds = []string{"well", "well", "well", "some", "twice", "wrong", "others", "broken", "none"}
	reportKinds   = []string{
		"well", "well", "well", "well", "late", "empty", "partial", "lies", "mixed", "seatless",
		"broken", "pieces", "pieces", "lines", "twice", "glued", "silent", "mute", "torn", "exits", "crashes",
	}
	memberNames = []string{"Lyra", "Kael", "Noor", "Mira", "O'<Brien>&Co", "Ærøskøbing 漢字", "Tess", "Odo"}
)

func (k *simAgent) answerLead(do crew.ActionKind) (end script.End, over bool) {
	how, rep := registerKinds[k.rnd.IntN(len(registerKinds))], reportKinds[k.rnd.IntN(len(reportKinds))]
	if (channelWorld{k.w}).isWellBehaved() {
		how, rep = "well", []string{"well", "pieces", "lines"}[k.rnd.IntN(3)]
	}
	why := k.sleep(100, 2500)
	if why == uninterrupted {
		k.emit(map[string]any{
			"type": driver.UsageReported, "input_tokens": 2, "output_tokens": 1,
			"cost_usd": leadCost(channelWorld{k.w}.isWellBehaved()),
		})
		switch do {
		case crew.TellSummon, crew.TellRegister:
			why = k.registerAll(how)
		case crew.TellWake:
			why = k.wakeAll(how)
		case crew.TellStatus:
			k.sayNote()
		}
	}
	if why == uninterrupted {
		switch rep {
		case "exits":
			k.sayNote()
			return k.end(inputEnded), true
		case "crashes":
			return script.End{Code: -1, Signal: "SIGSEGV"}, true
		case "torn":
			text := k.status(k.members("alive"))
			k.sayRaw("and now "+text[:k.rnd.IntN(len(text)-1)+1], true, nil)
			return script.End{Code: -1, Signal: "SIGSEGV"}, true
		}
		why = k.reportStatus(rep)
	}
	return k.answered(why)
}

// leadCost is the cost of an answer. A lead with a limit must reach it during the day, but not at
// its end.
func leadCost(dayEnding bool) float64 {
	if dayEnding {
		return 0.01
	}
	return leadCostMax / 4
}

func (k *simAgent) registerAll(how string) interruption {
	if how == "none" {
		return uninterrupted
	}
	seats := k.w.placeholderSeats()
	if len(seats) == 0 {
		seats = []int{k.rnd.IntN(9)}
	}
	for i, seat := range seats {
		if why := k.sleep(50, 2500); why != uninterrupted {
			return why
		}
		name := memberNames[(seat+k.rnd.IntN(2))%len(memberNames)]
		if how == "some" && i%2 == 1 {
			k.crew[seat] = name // it exists, but is never registered
			continue
		}
		m := k.registers(name, seat)
		k.sayMarker(m, k.markerStyle())
		switch how {
		case "twice":
			k.sayMarker(k.copyMarker(m), k.markerStyle())
		case "wrong":
			k.sayMarker(k.registers(name, []int{4, 9, -1, 1 << 40}[k.rnd.IntN(4)]), "whole")
		case "others":
			k.sayMarker(k.registers("another agent", seat), "whole")
		case "broken":
			k.sayMarker(&markerText{
				marker: marker{kind: registerMark},
				text:   registerMark + ` {"name":"` + name + `","gridPosition":"` + strconv.Itoa(seat) + `"}`,
			}, "whole")
		}
		k.crew[seat] = name
		if k.rnd.IntN(2) == 0 {
			k.sayFor(name)
		}
	}
	return k.interrupted
}

// wakeAll starts the members that the prompt names.
func (k *simAgent) wakeAll(how string) interruption {
	all, _ := payloadsIn(k.now.order.Text)
	for i, p := range all {
		if why := k.sleep(50, 2500); why != uninterrupted {
			return why
		}
		seat, _ := strconv.Atoi(p.Seat)
		if how == "none" || how == "some" && i%2 == 1 {
			continue
		}
		k.crew[seat] = p.Name
		if how == "twice" { // an unnecessary registration
			k.sayMarker(k.registers(p.Name, seat), k.markerStyle())
		}
		k.sayFor(p.Name)
	}
	return k.interrupted
}

// reportStatus reports which members are alive, correctly or in one of several wrong ways.
func (k *simAgent) reportStatus(how string) interruption {
	said := k.members("alive")
	switch how {
	case "late":
		if why := k.sleep(28_000, 70_000); why != uninterrupted {
			return why
		}
	case "silent":
		k.sayNote()
		return uninterrupted
	case "mute":
		return uninterrupted
	case "empty":
		clear(k.crew)
		said = nil
	case "partial":
		said = said[:len(said)/2]
	case "lies":
		said = k.w.claimAllAlive()
	case "mixed":
		for i := range said {
			said[i].seat = (said[i].seat + k.rnd.IntN(3)) % 10
		}
		said = append(said, k.members([]string{"idle", "alive", "sleeping"}[k.rnd.IntN(3)])...)
		said = append(said, entry{name: "unknown", status: "alive", seat: k.rnd.IntN(9)})
	case "seatless":
		for i := range said {
			said[i].seat = -1
		}
	case "broken":
		text := k.status(said)
		k.sayMarker(&markerText{marker: marker{kind: statusMark}, text: text[:len(text)-3] + `"x}`}, "whole")
		return uninterrupted
	case "glued":
		k.sayMarker(k.report(said), "glued")
		return uninterrupted
	case "twice":
		k.sayMarker(k.report(nil), k.markerStyle())
	}
	if how != "pieces" && how != "lines" {
		how = k.markerStyle()
	}
	return k.sayMarker(k.report(said), how)
}

// members lists the members of this session as entries of a report.
func (k *simAgent) members(status string) (all []entry) {
	for _, seat := range slices.Sorted(maps.Keys(k.crew)) {
		all = append(all, entry{k.crew[seat], status, seat})
	}
	return all
}

func (k *simAgent) markerStyle() string {
	return []string{"whole", "whole", "glued", "pieces", "lines"}[k.rnd.IntN(5)]
}

type markerText struct {
	marker
	text string
}

func (k *simAgent) report(said []entry) *markerText {
	inRange := func(e entry) bool { return e.seat != 4 && e.seat <= 8 } // -1: no seat
	valid := len(said) == 0 || slices.ContainsFunc(said, inRange)
	return &markerText{marker: marker{kind: statusMark, listed: said, valid: valid}, text: k.status(said)}
}

func (k *simAgent) copyMarker(m *markerText) *markerText {
	return &markerText{marker: marker{kind: m.kind, who: m.who, listed: m.listed, valid: m.valid}, text: m.text}
}

func (k *simAgent) status(said []entry) string {
	list := make([]map[string]any, len(said))
	for i, e := range said {
		list[i] = map[string]any{"name": e.name, "status": e.status}
		if e.seat >= 0 {
			list[i]["gridPosition"] = e.seat
		}
	}
	return statusMark + " " + marshal(map[string]any{"agents": list, "more": "than is asked for"})
}

func (k *simAgent) registers(name string, seat int) *markerText {
	soul := fmt.Sprintf("I chose %s in %s. ]]> </soul> & \"so\" [AGENT_STATUS] {\"agents\":[]} %d", name, k.s.id, k.rnd.IntN(1000))
	is := crew.Identity{
		Name: name, Seat: seat, Soul: soul, Color: "#c9b1e8", ColorName: "Violet Heaven", Gender: "woman",
		Face: crew.Face{Eyes: "standard", Mouth: "gentle"},
	}
	return &markerText{marker: marker{kind: registerMark, who: is, valid: seat >= 0}, text: registerMark + " " + marshal(map[string]any{
		"name": name, "color": is.Color, "colorName": is.ColorName, "gender": is.Gender, "gridPosition": seat,
		"faceVariant": map[string]string{"eyes": "standard", "mouth": "gentle"}, "individuationArtifact": soul,
	})}
}

func marshal(v any) string { return string(encode.JSON(v)) }

// sayMarker says a marker in one message, between other words, in arbitrary pieces, or over several
// lines.
func (k *simAgent) sayMarker(m *markerText, how string) (why interruption) {
	if k.interrupted != uninterrupted {
		return k.interrupted
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
			for n < len(text) && !utf8.RuneStart(text[n]) { // do not split a character
				n++
			}
			pieces, text = append(pieces, text[:n]), text[n:]
		}
	}
	for i, piece := range pieces {
		last := i == len(pieces)-1
		if i > 0 && k.rnd.IntN(6) == 0 {
			switch stop := k.sleep(5, 900); stop {
			case uninterrupted:
			case cancelled:
				why = stop // finish the marker first
			default:
				k.interrupted = stop
				return stop
			}
		}
		of := &m.marker
		if !last {
			of = nil
		}
		k.sayRaw(piece, part, of)
	}
	if part {
		k.sayRaw("\n", false, nil)
	}
	return why
}

// sayRaw says a text unchanged. of is the marker that ends with it, or nil.
func (k *simAgent) sayRaw(text string, part bool, of *marker) {
	if k.interrupted != uninterrupted {
		return // it stopped within a marker; more output could look like its rest
	}
	event := map[string]any{"type": driver.Said, "text": text}
	if part {
		event["part"] = true
	}
	line := marshal(event) + "\n"
	k.w.mu.Lock()
	if of != nil { // record it before the engine can read it
		of.end = int64(len(k.s.out) + len(line))
		k.w.crew.markers[k.s.id] = append(k.w.crew.markers[k.s.id], of)
	}
	if k.s.kind == driver.Lead {
		k.w.crew.lastHeard = k.w.now()
	}
	k.w.mu.Unlock()
	_, _ = spool{k.w, k.s}.Write([]byte(line))
}

func (k *simAgent) newWord(speaker string) string {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	name := k.w.record.word(agentIn(k.s.id), k.s, k.now.key)
	k.w.record.words[name].must, k.w.record.words[name].speaker = k.unanswered && k.interrupted == uninterrupted, speaker
	return name
}

// sayNote says something, sometimes in the name of a member.
func (k *simAgent) sayNote() {
	names := slices.Sorted(maps.Values(k.crew))
	if len(names) > 0 && k.rnd.IntN(2) == 0 {
		k.sayFor(names[k.rnd.IntN(len(names))])
		return
	}
	if k.rnd.IntN(3) == 0 {
		k.sayFor(agentIn(k.s.id))
		return
	}
	k.sayRaw("I look around "+k.newWord(""), false, nil)
}

func (k *simAgent) sayFor(name string) {
	k.sayRaw("["+name+"]: I am here "+k.newWord(name), false, nil)
}

// markers makes an agent report on the crew in a channel. The report must count only if the agent
// is the lead.
func (k *simAgent) markers() interruption {
	if (crewWorld{k.w}).lead() == "" || k.rnd.IntN(6) != 0 {
		return uninterrupted
	}
	if k.s.kind != driver.Lead && agentIn(k.s.id) == (crewWorld{k.w}).lead() {
		return uninterrupted // such a report would count; the random tests of package team cover it
	}
	if k.s.kind != driver.Lead {
		k.sayMarker(k.report(k.w.claimAllAlive()), k.markerStyle())
		return k.sayMarker(k.registers("an impostor", k.rnd.IntN(9)), "whole")
	}
	if k.rnd.IntN(3) == 0 {
		k.sayNote()
	}
	return k.reportStatus([]string{"well", "partial", "pieces", "lines", "seatless"}[k.rnd.IntN(5)])
}

// placeholderSeats lists the seats of placeholders. claimAllAlive reports every member as alive,
// which is often false.
func (w *world) placeholderSeats() (seats []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, is := range w.crew.inOrder() {
		if is.status == "hatching" {
			seats = append(seats, is.seat)
		}
	}
	return seats
}

func (w *world) claimAllAlive() (all []entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, is := range w.crew.inOrder() {
		if is.status != "expired" {
			all = append(all, entry{cmp.Or(is.name, "no one yet"), "alive", is.seat})
		}
	}
	return all
}
