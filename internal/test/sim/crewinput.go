package sim

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
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
func (w crewWorld) checkLeadInput(s *hostSession, key, input string) {
	do := ofLead(key)
	if do == "" || w.lead() == "" {
		return
	}
	b := w.crew
	var order speech.Order
	if err := json.Unmarshal([]byte(input), &order); err != nil {
		checks(w).broken(inputOnce, "%s was written to %s as an invalid order: %v", key, s.id, err)
		return
	}
	first, _, _ := strings.Cut(order.Text, "\n")
	b.lastHeard = w.now()
	switch do {
	case crew.TellStatus:
		b.statusRequests[s.id]++
		checks(w).check(statusAsked, b.statusRequests[s.id] <= max(b.statusRequestsMax[s.id], 1),
			"%s was asked for a status %d times, but there were only %d reasons", s.id, b.statusRequests[s.id], b.statusRequestsMax[s.id])
	case crew.TellSummon:
		checks(w).check(payloadRight, first == "[SUMMON AGENTS]", "the summon prompt of %s begins with %q", s.id, first)
	case crew.TellWake:
		checks(w).check(payloadRight, first == "[WAKE AGENTS]", "the wake prompt of %s begins with %q", s.id, first)
		w.checkPayloads(s, order.Text)
	case crew.TellRegister:
	}
}

// checkPayloads checks the members in a wake prompt: each one is not awake, and comes with its own
// soul and messages.
func (w crewWorld) checkPayloads(s *hostSession, prompt string) {
	all, err := payloadsIn(prompt)
	checks(w).check(payloadRight, err == nil && len(all) > 0, "the wake prompt of %s has no readable members (%v): %s", s.id, err, prompt)
	for _, p := range all {
		seat, err := strconv.Atoi(p.Seat)
		is := w.crew.on(seat)
		if err != nil || is == nil || is.name != p.Name {
			checks(w).broken(payloadRight, "%s is asked to wake %q on seat %s, which belongs to %v", s.id, p.Name, p.Seat, is)
			return
		}
		checks(w).check(payloadRight, is.status != "alive" && is.status != "hatching", "%s is asked to wake %s, which is %s", s.id, is,
			is.status)
		checks(w).check(payloadRight, strings.TrimSpace(p.Soul) == strings.TrimSpace(is.soul), "%s receives the soul %q, want %q", is,
			p.Soul, is.soul)
		w.checkMemory(is, p.Transcript)
	}
}

// checkMemory checks that a waking member receives everything that it said in the session in which
// it was last alive. On a simulated day that is always less than the limit.
func (w crewWorld) checkMemory(is *memberDocument, transcript string) {
	has := map[string]bool{}
	for _, name := range isWord.FindAllString(transcript, -1) {
		word, at := w.record.words[name], w.crew.inTranscripts[name]
		has[name] = true
		fine := word != nil && at.session == is.session &&
			(at.speaker == is.name || at.speaker == "" && (word.speaker == is.name || word.speaker == ""))
		checks(w).check(payloadRight, fine, "%s was last alive in %s, but receives %s as its message: %+v", is, is.session, name, at)
	}
	for name, at := range w.crew.inTranscripts {
		mine := at.speaker == is.name || at.speaker == "" && w.record.words[name].speaker == is.name
		checks(w).check(payloadRight, !mine || at.session != is.session || has[name],
			"%s said %s in the session in which it was last alive, but does not receive it: %q", is, name, transcript)
	}
}

// checkCrewCalm runs when nothing is left to do.
func (w crewWorld) checkCrewCalm(l *engineRun, view view.CrewView) {
	b, lead := w.crew, &w.truth.Crew.Lead
	if w.lead() == "" {
		return
	}
	now := w.now()
	w.checkView(l, view)
	for _, is := range b.inOrder() {
		checks(w).check(summonEnds, is.status != "hatching" || now.Before(is.made.Add(hatchMax+calmFor)),
			"%s has been a placeholder since %v", is, is.made)
	}
	s := w.truth.Agents[w.lead()].Session
	told := s.IsLead() && s.ID == b.lead && len(lead.Actions) == 0 && !s.AnswerPending()
	if lead.InProgress() {
		checks(w).check(summonEnds, now.Before(b.stageBegan.Add(hatchMax+calmFor)), "the crew has been %s since %v", lead.Stage,
			b.stageBegan)
		checks(w).check(summonEnds, !told || now.Before(b.lastHeard.Add(statusMax+calmFor+2*time.Second)),
			"the crew is %s and the lead has no action left, but was silent since %v without an effect", lead.Stage, b.lastHeard)
	}
	if told && s.Ending == "" {
		checks(w).check(statusAsked, !b.adopted, "%s outlived an engine and is idle, but was not asked for a status", s.ID)
	}
	for _, ask := range lead.Actions {
		idle := s.IsLead() && s.ID == b.lead && !s.AnswerPending() && s.Ending == "" && !w.truth.Hold.On && !w.truth.Stopping
		checks(w).check(inputOnce, !idle, "%s is idle, but does not receive the action %+v", w.lead(), ask)
	}
}

// checkView compares the view of the crew with the journal. Its button must be the one that seed
// 001 requires.
func (w crewWorld) checkView(l *engineRun, shown view.CrewView) {
	checks(w).check(replayIsLive, len(shown.Agents) == len(w.crew.docs), "engine %d shows %d members, want %d", l.n, len(shown.Agents),
		len(w.crew.docs))
	some, asleep := false, false
	for _, seen := range shown.Agents {
		is := w.crew.docs[seen.ID]
		fine := is != nil && seen.Status == is.status && seen.Seat == is.seat && seen.Soul == is.soul &&
			(seen.Name == nil) == (is.name == "")
		checks(w).check(replayIsLive, fine, "engine %d shows %s as %s on seat %d, but the journal has %v %s", l.n, seen.ID, seen.Status,
			seen.Seat, is, is.state())
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
	checks(w).check(replayIsLive, shown.Button == button || hatches && !asleep, "engine %d shows the button %s, want %s: %+v", l.n,
		shown.Button, button, shown)
}

// checkSpoken checks text that was said in a lead session outside of channels: it is in the journal
// once, in its order, under its speaker's name.
func (w crewWorld) checkSpoken(said *crew.Words) {
	b := w.crew
	checks(w).check(saidOnce, !shows(said.Text), "the transcripts contain a marker: %q", said.Text)
	for _, name := range isWord.FindAllString(said.Text, -1) {
		word := w.record.words[name]
		if word == nil {
			checks(w).broken(saidOnce, "the transcripts contain %q, but %s was never said", said.Text, name)
			return
		}
		word.times++
		word.at = "the transcripts"
		checks(w).check(saidOnce, word.times == 1, "%s is in the journal %d times", name, word.times)
		checks(w).check(saidOnce, word.n > w.record.last[word.session], "%s comes after a later message of %s in the transcripts", name,
			word.session)
		w.record.last[word.session] = word.n
		checks(w).check(saidOnce, said.Session == b.uuid[word.session] || said.Session == word.session,
			"%s was said in %s (%s), but is in %s in the transcripts", name, word.session, b.uuid[word.session], said.Session)
		checks(w).check(saidOnce, strings.HasPrefix(word.key, "tell_") && strings.Contains(word.key, "//"),
			"%s answers %q and should be in a channel", name, word.key)
		w.checkSpeaker(word, name, said)
		b.inTranscripts[name] = transcriptSource{said.Session, said.Speaker}
	}
}

// shows reports whether a text contains a marker with its JSON. The marker's name alone is ordinary
// text.
func shows(text string) bool { return isMarker.MatchString(text) }

var isMarker = regexp.MustCompile(`\[AGENT_(STATUS|REGISTERED)\]\s*\{`)

// checkSpeaker: a line that names a known speaker counts as the speaker's. A line without a name may
// continue the previous speaker's text.
func (w crewWorld) checkSpeaker(word *word, name string, said *crew.Words) {
	b, lead := w.crew, w.lead()
	switch who := word.speaker; {
	case who != "" && (who == lead || b.knows(who)):
		b.lastSpeaker[word.session] = who
		checks(w).check(saidOnce, said.Speaker == who, "%s was said for %s, but the transcripts say %s", name, who, said.Speaker)
	default:
		checks(w).check(saidOnce, said.Speaker == lead || said.Speaker == b.lastSpeaker[word.session],
			"%s was said by %s, but the transcripts say %s", name, lead, said.Speaker)
	}
}

// checkReportsStored runs at the end of a day. Reports that a lead made while an engine read its
// output must be in the journal.
func (w crewWorld) checkReportsStored() {
	for id, marks := range w.crew.markers {
		s := w.sessions[id]
		if w.crew.uuid[id] == "" || !s.isOver() || s.ending.Lost || s.exitUnread {
			continue
		}
		for _, m := range marks {
			checks(w).check(reportApplied, m.processed || m.end > s.ending.SpoolBytes,
				"%s made a report that ends at byte %d and is not in the journal: %+v", id, m.end, m)
		}
	}
}

// readTranscripts reads all transcripts from the end to the beginning. Each word must occur once,
// in its session and under its speaker's name.
func (w crewWorld) readTranscripts() {
	l := w.alive()
	if l == nil || w.lead() == "" || w.failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	times := map[string]int{}
	for q := (crewctl.TranscriptQuery{Limit: 40}); ; {
		page, err := l.engine.Crew.Transcript(ctx, q)
		w.mu.Lock()
		if err != nil {
			checks(w).broken(saidOnce, "cannot read the transcripts before %d: %v", q.Before, err)
			w.mu.Unlock()
			return
		}
		for _, m := range page.Messages {
			for _, name := range isWord.FindAllString(m.Text, -1) {
				times[name]++
				w.checkTranscriptMessage(name, &m)
			}
		}
		w.mu.Unlock()
		if !page.More {
			break
		}
		q.Before = page.Next
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, word := range w.record.words {
		checks(w).check(saidOnce, times[name] == word.times, "%s is in the journal %d times, but %d times in the transcripts", name,
			word.times, times[name])
	}
}

func (w crewWorld) checkTranscriptMessage(name string, m *crewctl.Message) {
	at, word := w.crew.inTranscripts[name], w.record.words[name]
	if word == nil {
		checks(w).broken(saidOnce, "the transcripts contain %q, which was never said", m.Text)
		return
	}
	speaker := at.speaker
	if speaker == "" && (word.speaker == w.lead() || w.crew.knows(word.speaker)) {
		speaker = word.speaker // a message in a channel that names its speaker
	}
	checks(w).check(saidOnce, m.Session == at.session, "%s was said in %q, but is in %q in the transcripts", name, at.session, m.Session)
	checks(w).check(saidOnce, speaker == "" || m.Speaker == speaker, "%s was said by %s, but the transcripts say %s", name, speaker,
		m.Speaker)
}
