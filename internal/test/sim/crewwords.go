package sim

import (
	"context"
	"regexp"
	"strings"
	"time"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// checkSpoken: what is said in a lead session apart from channels is in the journal once, in its
// order, under the name of who said it.
func (w *world) checkSpoken(said *crew.Words) {
	b := w.crew
	w.check(saidOnce, !shows(said.Text), "a marker is shown as conversation: %q", said.Text)
	for _, name := range isWord.FindAllString(said.Text, -1) {
		word := w.book.words[name]
		if word == nil {
			w.broken(saidOnce, "%q is in the transcripts, but no speaker has said %s", said.Text, name)
			return
		}
		word.times++
		word.at = "the transcripts"
		w.check(saidOnce, word.times == 1, "%s is in the journal %d times", name, word.times)
		w.check(saidOnce, word.n > w.book.last[word.session], "%s is in the transcripts after something that %s said later", name, word.session)
		w.book.last[word.session] = word.n
		w.check(saidOnce, said.Session == b.uuid[word.session] || said.Session == word.session, "%s was said in %s (%s), and the transcripts have it in %s", name, word.session, b.uuid[word.session], said.Session)
		w.check(saidOnce, strings.HasPrefix(word.key, "tell_") && strings.Contains(word.key, "//"), "%s answers %q, and is in no channel", name, word.key)
		w.checkSpeaker(word, name, said)
		b.spoken[name] = heardAs{said.Session, said.Speaker}
	}
}

// shows says whether a marker is in what people read. Its name alone is a word like another.
func shows(text string) bool { return isMarker.MatchString(text) }

var isMarker = regexp.MustCompile(`\[AGENT_(STATUS|REGISTERED)\]\s*\{`)

// checkSpeaker: a line that names a known speaker counts as the speaker's. A line without a name may
// continue the previous speaker's text.
func (w *world) checkSpeaker(word *word, name string, said *crew.Words) {
	b, lead := w.crew, w.lead()
	switch who := word.speaker; {
	case who != "" && (who == lead || b.knows(who)):
		b.passage[word.session] = who
		w.check(saidOnce, said.Speaker == who, "%s was said for %s, and the transcripts say %s", name, who, said.Speaker)
	default:
		w.check(saidOnce, said.Speaker == lead || said.Speaker == b.passage[word.session], "%s was said by %s, and the transcripts say %s", name, lead, said.Speaker)
	}
}

// checkMarks runs at the end of a day: reports of a lead that were made while an engine listened are
// in the journal.
func (w *world) checkMarks() {
	for id, marks := range w.crew.marks {
		s := w.sessions[id]
		if w.crew.uuid[id] == "" || !s.isOver() || s.ending.Lost || s.unread {
			continue
		}
		for _, m := range marks {
			w.check(reportTaken, m.heard || m.end > s.ending.Bytes, "%s said something of its team up to byte %d, but it is not in the journal: %+v", id, m.end, m)
		}
	}
}

// readTranscripts reads everything that was said, from the end to the beginning: every word occurs
// once, in its session and under its speaker's name.
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
			w.broken(saidOnce, "the transcripts cannot be read before %d: %v", q.Before, err)
			w.mu.Unlock()
			return
		}
		for _, m := range page.Messages {
			for _, name := range isWord.FindAllString(m.Text, -1) {
				times[name]++
				w.checkRead(name, &m)
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
	for name, word := range w.book.words {
		w.check(saidOnce, times[name] == word.times, "%s is in the journal %d times, and %d times in the transcripts", name, word.times, times[name])
	}
}

func (w *world) checkRead(name string, m *crewctl.Message) {
	at, word := w.crew.spoken[name], w.book.words[name]
	if word == nil {
		w.broken(saidOnce, "%q is in the transcripts, but no speaker has said it", m.Text)
		return
	}
	speaker := at.speaker
	if speaker == "" && (word.speaker == w.lead() || w.crew.knows(word.speaker)) {
		speaker = word.speaker // a line of a channel that names who speaks
	}
	w.check(saidOnce, m.Session == at.session, "%s was said in %q, and the transcripts have it in %q", name, at.session, m.Session)
	w.check(saidOnce, speaker == "" || m.Speaker == speaker, "%s was said by %s, and the transcripts say %s", name, speaker, m.Speaker)
}
