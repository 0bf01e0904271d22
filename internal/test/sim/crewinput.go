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

// ofLead returns the kind of a lead's action. It returns "" for the key of a channel's action and
// for an empty key.
func ofLead(key string) crew.ActionKind {
	do, rest, _ := strings.Cut(key, "/")
	if !strings.HasPrefix(rest, "/") {
		return ""
	}
	return crew.ActionKind(do)
}

// payload is one member in a prompt to the lead.
type payload struct {
	Name       string `xml:"name,attr"`
	Seat       string `xml:"position,attr"`
	Soul       string `xml:"soul"`
	Transcript string `xml:"transcript"`
}

// payloadsIn parses the members in a prompt.
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

// checkLeadInput checks a prompt to the lead when it is written.
func (w *world) checkLeadInput(s *hostSession, key, input string) {
	do := ofLead(key)
	if do == "" || w.lead() == "" {
		return
	}
	b := w.crew
	var order script.Order
	if err := json.Unmarshal([]byte(input), &order); err != nil {
		w.broken(inputOnce, "%s was written to %s as an invalid order: %v", key, s.id, err)
		return
	}
	first, _, _ := strings.Cut(order.Text, "\n")
	b.lastHeard = w.now()
	switch do {
	case crew.TellStatus:
		b.statusRequests[s.id]++
		w.check(statusAsked, b.statusRequests[s.id] <= max(b.statusRequestsMax[s.id], 1), "%s was asked for a status %d times, but there were only %d reasons", s.id, b.statusRequests[s.id], b.statusRequestsMax[s.id])
	case crew.TellSummon:
		w.check(payloadRight, first == "[SUMMON AGENTS]", "the summon prompt of %s begins with %q", s.id, first)
	case crew.TellWake:
		w.check(payloadRight, first == "[WAKE AGENTS]", "the wake prompt of %s begins with %q", s.id, first)
		w.checkPayloads(s, order.Text)
	case crew.TellRegister:
	}
}

// checkPayloads checks the members in a wake prompt: each one is not awake, and comes with its own
// soul and messages.
func (w *world) checkPayloads(s *hostSession, prompt string) {
	all, err := payloadsIn(prompt)
	w.check(payloadRight, err == nil && len(all) > 0, "the wake prompt of %s has no readable members (%v): %s", s.id, err, prompt)
	for _, p := range all {
		seat, err := strconv.Atoi(p.Seat)
		is := w.crew.on(seat)
		if err != nil || is == nil || is.name != p.Name {
			w.broken(payloadRight, "%s is asked to wake %q on seat %s, which belongs to %v", s.id, p.Name, p.Seat, is)
			return
		}
		w.check(payloadRight, is.status != "alive" && is.status != "hatching", "%s is asked to wake %s, which is %s", s.id, is, is.status)
		w.check(payloadRight, strings.TrimSpace(p.Soul) == strings.TrimSpace(is.soul), "%s receives the soul %q, want %q", is, p.Soul, is.soul)
		w.checkMemory(is, p.Transcript)
	}
}

// checkMemory checks that a waking member receives everything that it said in the session in which
// it was last alive. On a simulated day that is always less than the limit.
func (w *world) checkMemory(is *memberDocument, transcript string) {
	has := map[string]bool{}
	for _, name := range isWord.FindAllString(transcript, -1) {
		word, at := w.record.words[name], w.crew.inTranscripts[name]
		has[name] = true
		fine := word != nil && at.session == is.session && (at.speaker == is.name || at.speaker == "" && (word.speaker == is.name || word.speaker == ""))
		w.check(payloadRight, fine, "%s was last alive in %s, but receives %s as its message: %+v", is, is.session, name, at)
	}
	for name, at := range w.crew.inTranscripts {
		mine := at.speaker == is.name || at.speaker == "" && w.record.words[name].speaker == is.name
		w.check(payloadRight, !mine || at.session != is.session || has[name], "%s said %s in the session in which it was last alive, but does not receive it: %q", is, name, transcript)
	}
}

// checkCrewCalm runs when nothing is left to do.
func (w *world) checkCrewCalm(l *engineRun, view view.CrewView) {
	b, lead := w.crew, &w.truth.Crew.Lead
	if w.lead() == "" {
		return
	}
	now := w.now()
	w.checkView(l, view)
	for _, is := range b.inOrder() {
		w.check(summonEnds, is.status != "hatching" || now.Before(is.made.Add(hatchMax+calmFor)), "%s has been a placeholder since %v", is, is.made)
	}
	s := w.truth.Agents[w.lead()].Session
	told := s.IsLead() && s.ID == b.lead && len(lead.Actions) == 0 && !s.AnswerPending()
	if lead.InProgress() {
		w.check(summonEnds, now.Before(b.stageBegan.Add(hatchMax+calmFor)), "the crew has been %s since %v", lead.Stage, b.stageBegan)
		w.check(summonEnds, !told || now.Before(b.lastHeard.Add(statusMax+calmFor+2*time.Second)), "the crew is %s and the lead has no action left, but was silent since %v without an effect", lead.Stage, b.lastHeard)
	}
	if told && s.Ending == "" {
		w.check(statusAsked, !b.adopted, "%s outlived an engine and is idle, but was not asked for a status", s.ID)
	}
	for _, ask := range lead.Actions {
		idle := s.IsLead() && s.ID == b.lead && !s.AnswerPending() && s.Ending == "" && !w.truth.Hold.On && !w.truth.Stopping
		w.check(inputOnce, !idle, "%s is idle, but does not receive the action %+v", w.lead(), ask)
	}
}

// checkView compares the view of the crew with the journal. Its button must be the one that seed
// 001 requires.
func (w *world) checkView(l *engineRun, shown view.CrewView) {
	w.check(replayIsLive, len(shown.Agents) == len(w.crew.docs), "engine %d shows %d members, want %d", l.n, len(shown.Agents), len(w.crew.docs))
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
	w.check(replayIsLive, shown.Button == button || hatches && !asleep, "engine %d shows the button %s, want %s: %+v", l.n, shown.Button, button, shown)
}
