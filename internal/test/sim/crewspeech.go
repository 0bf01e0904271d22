package sim

import (
	"context"
	"regexp"
	"strings"
	"time"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// checkSpoken checks text that was said in a lead session outside of channels: it is in the journal
// once, in its order, under its speaker's name.
func (w *world) checkSpoken(said *crew.Words) {
	b := w.crew
	w.check(saidOnce, !shows(said.Text), "the transcripts contain a marker: %q", said.Text)
	for _, name := range isWord.FindAllString(said.Text, -1) {
		word := w.record.words[name]
		if word == nil {
			w.broken(saidOnce, "the transcripts contain %q, but %s was never said", said.Text, name)
			return
		}
		word.times++
		word.at = "the transcripts"
		w.check(saidOnce, word.times == 1, "%s is in the journal %d times", name, word.times)
		w.check(saidOnce, word.n > w.record.last[word.session], "%s comes after a later message of %s in the transcripts", name, word.session)
		w.record.last[word.session] = word.n
		w.check(saidOnce, said.Session == b.uuid[word.session] || said.Session == word.session, "%s was said in %s (%s), but is in %s in the transcripts", name, word.session, b.uuid[word.session], said.Session)
		w.check(saidOnce, strings.HasPrefix(word.key, "tell_") && strings.Contains(word.key, "//"), "%s answers %q and should be in a channel", name, word.key)
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
func (w *world) checkSpeaker(word *word, name string, said *crew.Words) {
	b, lead := w.crew, w.lead()
	switch who := word.speaker; {
	case who != "" && (who == lead || b.knows(who)):
		b.lastSpeaker[word.session] = who
		w.check(saidOnce, said.Speaker == who, "%s was said for %s, but the transcripts say %s", name, who, said.Speaker)
	default:
		w.check(saidOnce, said.Speaker == lead || said.Speaker == b.lastSpeaker[word.session], "%s was said by %s, but the transcripts say %s", name, lead, said.Speaker)
	}
}

// checkReportsStored runs at the end of a day. Reports that a lead made while an engine read its
// output must be in the journal.
func (w *world) checkReportsStored() {
	for id, marks := range w.crew.markers {
		s := w.sessions[id]
		if w.crew.uuid[id] == "" || !s.isOver() || s.ending.Lost || s.exitUnread {
			continue
		}
		for _, m := range marks {
			w.check(reportApplied, m.processed || m.end > s.ending.Bytes, "%s made a report that ends at byte %d and is not in the journal: %+v", id, m.end, m)
		}
	}
}

// readTranscripts reads all transcripts from the end to the beginning. Each word must occur once,
// in its session and under its speaker's name.
func (w *world) readTranscripts() {
	l := w.alive()
	if l == nil || w.lead() == "" || w.failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	times := map[string]int{}
	for q := (crewctl.TranscriptQuery{Limit: 40}); ; {
		page, err := l.engine.Transcript(ctx, q)
		w.mu.Lock()
		if err != nil {
			w.broken(saidOnce, "cannot read the transcripts before %d: %v", q.Before, err)
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
		w.check(saidOnce, times[name] == word.times, "%s is in the journal %d times, but %d times in the transcripts", name, word.times, times[name])
	}
}

func (w *world) checkTranscriptMessage(name string, m *crewctl.Message) {
	at, word := w.crew.inTranscripts[name], w.record.words[name]
	if word == nil {
		w.broken(saidOnce, "the transcripts contain %q, which was never said", m.Text)
		return
	}
	speaker := at.speaker
	if speaker == "" && (word.speaker == w.lead() || w.crew.knows(word.speaker)) {
		speaker = word.speaker // a message in a channel that names its speaker
	}
	w.check(saidOnce, m.Session == at.session, "%s was said in %q, but is in %q in the transcripts", name, at.session, m.Session)
	w.check(saidOnce, speaker == "" || m.Speaker == speaker, "%s was said by %s, but the transcripts say %s", name, speaker, m.Speaker)
}
