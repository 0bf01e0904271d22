package sim

import (
	"encoding/json"
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/view"
)

// ofLead returns the kind of a lead's action; empty: it belongs to a channel, or the key is empty.
func ofLead(key string) crew.ActionKind {
	do, rest, _ := strings.Cut(key, "/")
	if !strings.HasPrefix(rest, "/") {
		return ""
	}
	return crew.ActionKind(do)
}

// payload is one agent in what the lead is told.
type payload struct {
	Name       string `xml:"name,attr"`
	Seat       string `xml:"position,attr"`
	Soul       string `xml:"soul"`
	Transcript string `xml:"transcript"`
}

// payloadsIn reads the elements of a prompt, as a lead would.
func payloadsIn(prompt string) (all []payload, err error) {
	at := strings.Index(prompt, "\n<agent ")
	if at < 0 {
		return nil, nil
	}
	var list struct {
		Agents []payload `xml:"agent"`
	}
	err = xml.Unmarshal([]byte("<all>"+prompt[at:]+"</all>"), &list)
	return list.Agents, err
}

// checkTold looks at what the lead is told in the moment in which it is.
func (w *world) checkTold(s *hostSession, key, input string) {
	do := ofLead(key)
	if do == "" || w.lead() == "" {
		return
	}
	b := w.crew
	var order script.Order
	if err := json.Unmarshal([]byte(input), &order); err != nil {
		w.broken(toldOnce, "%s is told to %s in what is no order: %v", key, s.id, err)
		return
	}
	first, _, _ := strings.Cut(order.Text, "\n")
	b.quiet = w.now()
	switch do {
	case crew.TellStatus:
		b.asked[s.id]++
		w.check(statusAsked, b.asked[s.id] <= max(b.asks[s.id], 1), "%s is asked for a status for the %d. time, and there were %d reasons to", s.id, b.asked[s.id], b.asks[s.id])
	case crew.TellSummon:
		w.check(payloadRight, first == "[SUMMON AGENTS]", "%s is told to summon in these words: %q", s.id, first)
	case crew.TellWake:
		w.check(payloadRight, first == "[WAKE AGENTS]", "%s is told to wake in these words: %q", s.id, first)
		w.checkPayloads(s, order.Text)
	case crew.TellRegister:
	}
}

// checkPayloads: who is handed its soul is not awake, and what it is handed is its own.
func (w *world) checkPayloads(s *hostSession, prompt string) {
	all, err := payloadsIn(prompt)
	w.check(payloadRight, err == nil && len(all) > 0, "%s is told to wake members, but none can be read (%v): %s", s.id, err, prompt)
	for _, p := range all {
		seat, err := strconv.Atoi(p.Seat)
		is := w.crew.on(seat)
		if err != nil || is == nil || is.name != p.Name {
			w.broken(payloadRight, "%s is told to wake %q on seat %s, and there sits %v", s.id, p.Name, p.Seat, is)
			return
		}
		w.check(payloadRight, is.status != "alive" && is.status != "hatching", "%s is told to wake %s, who is %s", s.id, is, is.status)
		w.check(payloadRight, strings.TrimSpace(p.Soul) == strings.TrimSpace(is.soul), "%s is handed this soul: %q; it is %q", is, p.Soul, is.soul)
		w.checkMemory(is, p.Transcript)
	}
}

// checkMemory: a waking member receives everything that it said in the session in which it was alive
// last; on one day that is less than the limit.
func (w *world) checkMemory(is *being, transcript string) {
	has := map[string]bool{}
	for _, name := range isWord.FindAllString(transcript, -1) {
		word, at := w.book.words[name], w.crew.spoken[name]
		has[name] = true
		fine := word != nil && at.session == is.session && (at.speaker == is.name || at.speaker == "" && (word.speaker == is.name || word.speaker == ""))
		w.check(payloadRight, fine, "%s was alive in %s last, and is told that it said %s: %+v", is, is.session, name, at)
	}
	for name, at := range w.crew.spoken {
		mine := at.speaker == is.name || at.speaker == "" && w.book.words[name].speaker == is.name
		w.check(payloadRight, !mine || at.session != is.session || has[name], "%s said %s in the session in which it was alive last, and is not told: %q", is, name, transcript)
	}
}

// checkCrewCalm is for a moment at which all is done.
func (w *world) checkCrewCalm(l *life, view view.CrewView) {
	b, lead := w.crew, &w.truth.Crew.Lead
	if w.lead() == "" {
		return
	}
	now := w.now()
	w.checkView(l, view)
	for _, is := range b.inOrder() {
		w.check(ceremonyEnds, is.status != "hatching" || now.Before(is.made.Add(hatchMax+calmFor)), "%s hatches since %v", is, is.made)
	}
	s := w.truth.Agents[w.lead()].Session
	told := s.IsLead() && s.ID == b.lead && len(lead.Actions) == 0 && !s.AnswerPending()
	if lead.InProgress() {
		w.check(ceremonyEnds, now.Before(b.stage.Add(hatchMax+calmFor)), "it is %s since %v", lead.Stage, b.stage)
		w.check(ceremonyEnds, !told || now.Before(b.quiet.Add(statusMax+calmFor+2*time.Second)), "it is %s, the lead was told all, and nothing was heard since %v", lead.Stage, b.quiet)
	}
	if told && s.Ending == "" {
		w.check(statusAsked, !b.adopted, "%s outlived an engine, has nothing to answer, and was not asked who is awake", s.ID)
	}
	for _, ask := range lead.Actions {
		idle := s.IsLead() && s.ID == b.lead && !s.AnswerPending() && s.Ending == "" && !w.truth.Hold.On && !w.truth.Stopping
		w.check(toldOnce, !idle, "%s listens, and is not told: %+v", w.lead(), ask)
	}
}

// checkView: what people are shown is what the journal tells, and the one button is the seed's.
func (w *world) checkView(l *life, shown view.CrewView) {
	w.check(replayIsLive, len(shown.Agents) == len(w.crew.docs), "engine %d shows %d of the team, and there are %d", l.n, len(shown.Agents), len(w.crew.docs))
	some, asleep := false, false
	for _, seen := range shown.Agents {
		is := w.crew.docs[seen.ID]
		fine := is != nil && seen.Status == is.status && seen.Seat == is.seat && seen.Soul == is.soul && (seen.Name == nil) == (is.name == "")
		w.check(replayIsLive, fine, "engine %d shows %s as %s on seat %d, but the journal has %v %s", l.n, seen.ID, seen.Status, seen.Seat, is, is.state())
		some = some || seen.Status != "expired"
		asleep = asleep || seen.Status == "sleeping" || seen.Status == "unknown"
	}
	button := "none"
	switch {
	case shown.InProgress != "":
		button = "WAKING…"
	case !some:
		button = "SUMMON"
	case asleep:
		button = "WAKE"
	}
	hatches := slices.ContainsFunc(shown.Agents, func(a view.DocumentView) bool { return a.Status == "hatching" })
	w.check(replayIsLive, shown.Button == button || hatches && !asleep, "engine %d shows the button %s, and it should be %s: %+v", l.n, shown.Button, button, shown)
}
