package crew

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/prompts"
)

// Message is consecutive text from one speaker.
type Message struct {
	Seq     uint64    `json:"seq" doc:"Of the change in the journal; several messages may share it"`
	At      time.Time `json:"at"`
	Session string    `json:"session" doc:"In which it was said: of the lead its name on every machine; empty: by a person"`
	Speaker string    `json:"speaker" doc:"Who said it"`
	Kind    string    `json:"kind" doc:"lead, agent or human"`
	Channel string    `json:"channel" doc:"The channel of the message; empty: only the listening person heard it"`
	Text    string    `json:"text"`
}

// TranscriptQuery selects a part of the transcript. Without Before and After it selects the newest
// messages.
type TranscriptQuery struct {
	Speaker string `query:"speaker" maxLength:"64" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]+$" example:"Lyra" doc:"Only messages of this speaker"`
	Session string `query:"session" maxLength:"134" pattern:"^[A-Za-z0-9_][A-Za-z0-9._@-]*$" doc:"Only in this session: lastSessionId of a document, or AGENT-NUMBER"`
	Text    string `query:"text" maxLength:"256" doc:"Only messages that contain this text; upper and lower case are equal"`
	Before  uint64 `query:"before" maximum:"9007199254740991" doc:"The newest before this sequence; 0: no limit"`
	After   uint64 `query:"after" maximum:"9007199254740991" doc:"The oldest after this sequence; 0: no limit. Without before and after: the newest"`
	Limit   int    `query:"limit" default:"100" minimum:"1" maximum:"500" doc:"The maximum number of messages"`
}

// TranscriptPage is a part of the transcript, oldest message first. A page never splits messages of
// one Seq.
type TranscriptPage struct {
	Messages []Message `json:"messages" doc:"Oldest first; messages with the same seq are never split between pages"`
	More     bool      `json:"more" doc:"There may be more, in the direction that was asked for"`
	Next     uint64    `json:"next" doc:"What to hand back to go on in that direction: as after, where after was asked for, else as before"`
	Head     uint64    `json:"head" doc:"The answer is the state at this sequence"`
}

const (
	transcriptPageBytes = 4 << 20 // per page
	transcriptScanBytes = 8 << 20 // text searched per request; the caller continues with another request
	transcriptScanMax   = 8192    // messages searched per request
	transcriptChunk     = 256     // messages read at a time during a search
	transcriptTextMax   = 1000    // bytes of the search text

	KindOfLead, KindOfAgent, kindOfHuman = "lead", "agent", "human"
)

// Transcript returns a part of the messages from lead sessions and channels.
func (c *Controller) Transcript(ctx context.Context, q TranscriptQuery) (TranscriptPage, error) {
	q.Limit = min(cmp.Or(max(q.Limit, 0), journal.PageDefault), journal.PageMax)
	page := TranscriptPage{Messages: []Message{}}
	if len(q.Text) > transcriptTextMax {
		return page, fmt.Errorf("%d bytes are too many to look for: name fewer than %d", len(q.Text), transcriptTextMax)
	}
	s := search{e: c, q: q, text: strings.ToLower(q.Text)}
	if err := c.loop.View(ctx, func(t *team.Team) {
		page.Head = c.loop.Head()
		s.whom, s.q.Session = whomOf(t), InTranscripts(t, q.Session)
		c.makeTranscriptBeside()
	}); err != nil {
		return page, err
	}
	more, err := s.begin(ctx, page.Head)
	if err != nil {
		return page, err
	}
	if page.More = more; more {
		page.Next = s.until + 1
		if q.After != 0 {
			page.Next = s.after
		}
	}
	if q.After == 0 {
		slices.Reverse(s.found)
	}
	for _, one := range s.found {
		page.Messages = append(page.Messages, one...)
	}
	return page, nil
}

// InTranscripts is the session name that messages use. A lead's session has a global name there,
// while people see the local name in every list.
func InTranscripts(t *team.Team, session string) string {
	for _, a := range t.Agents {
		if s := a.Open(session); s != nil {
			return cmp.Or(s.UUID, session)
		}
		for i := range a.Past {
			if a.Past[i].ID == session {
				return cmp.Or(a.Past[i].UUID, session)
			}
		}
	}
	return session
}

// begin chooses the faster place to start.
func (s *search) begin(ctx context.Context, head uint64) (more bool, err error) {
	s.after, s.until = s.q.After, head
	if s.q.Before != 0 {
		s.until = min(s.until, s.q.Before-1)
	}
	newest := s.q.Before == 0 && s.q.After == 0 && s.q.Speaker == "" && s.q.Session == "" && s.text == ""
	if newest && !s.e.CrewState.Said.isMade() {
		again := *s
		enough, more, err := again.recent(ctx)
		if err == nil && enough {
			*s = again
		}
		if err != nil || enough {
			return more, err
		}
	}
	if err := s.e.MakeTranscript(ctx); err != nil {
		return false, err
	}
	return s.run(ctx)
}

// Whom lists the members of the crew. It tells a lead's quotation of a member from the lead's own
// text.
type Whom struct {
	Lead  string
	Names map[string]bool
}

func whomOf(t *team.Team) Whom {
	w := Whom{Lead: t.Crew.Lead.Agent, Names: map[string]bool{}}
	for _, doc := range t.Crew.Docs {
		if doc.Name != "" {
			w.Names[doc.Name] = true
		}
	}
	return w
}

// Messages splits the text of one change into messages.
func (w *Whom) Messages(s *Spoken) []Message {
	is := Message{Seq: s.Seq, At: s.at, Session: s.Session, Speaker: s.By, Kind: KindOfAgent, Channel: s.channel, Text: s.text}
	switch {
	case s.kind == channel.OfHuman:
		is.Kind = kindOfHuman
	case s.quotes():
		var all []Message
		for _, passage := range crew.Speakers(s.text, s.By, func(name string) bool { return w.Names[name] }) {
			one := is
			one.Speaker, one.Text = passage.Speaker, passage.Text
			if one.Speaker == s.By {
				one.Kind = KindOfLead
			}
			all = append(all, one)
		}
		return all
	case s.kind == "" && s.By == w.Lead:
		is.Kind = KindOfLead
	}
	return []Message{is}
}

// search reads the transcript in the requested direction.
type search struct {
	e            *Controller
	q            TranscriptQuery
	text         string // in lower case
	whom         Whom
	after, until uint64      // still to be searched: greater than after, up to and including until
	found        [][]Message // by change, in the order of the search
	messages     int
	bytes        int // found
	read         int // bytes searched
	seen         int // messages searched
}

// run searches until the page is full or the limit of a request is reached. It reports whether there
// is more.
func (s *search) run(ctx context.Context) (more bool, err error) {
	for s.after < s.until {
		if s.q.After != 0 && s.e.CrewState.Said.misses(s.after) {
			return s.older(ctx)
		}
		chunk := transcriptChunk
		if s.text == "" {
			chunk = min(chunk, s.q.Limit-s.messages+1)
		}
		seqs, more := s.e.CrewState.Said.wanted(&s.q, s.after, s.until, chunk)
		if len(seqs) == 0 {
			return s.older(ctx)
		}
		said, err := s.e.spokenAt(ctx, seqs)
		if err != nil {
			return false, err
		}
		if s.q.After == 0 {
			slices.Reverse(said)
		}
		for i := range said {
			if full := s.take(&said[i]); full {
				return more || i < len(said)-1 || s.q.After == 0 && s.e.CrewState.Said.misses(0), nil
			}
		}
		s.passed(seqs[len(seqs)-1])
	}
	return false, nil
}

// take adds what a change says to the page, and says whether that is full now.
func (s *search) take(said *Spoken) (full bool) {
	var fits []Message
	for _, one := range s.whom.Messages(said) {
		if (s.q.Speaker == "" || one.Speaker == s.q.Speaker) && (s.q.Session == "" || one.Session == s.q.Session) &&
			(s.text == "" || strings.Contains(strings.ToLower(one.Text), s.text)) {
			fits = append(fits, one)
			s.bytes += len(one.Text)
		}
	}
	if len(fits) > 0 {
		s.found = append(s.found, fits)
		s.messages += len(fits)
	}
	s.read += len(said.text)
	s.seen++
	s.passed(said.Seq)
	return s.messages >= s.q.Limit || s.bytes >= transcriptPageBytes || s.read >= transcriptScanBytes || s.seen >= transcriptScanMax
}

// passed notes how far the search is.
func (s *search) passed(seq uint64) {
	if s.q.After != 0 {
		s.after = max(s.after, seq)
		return
	}
	s.until = min(s.until, seq-1)
}

// misses says whether something that was said after a Seq may not be in the book any more.
func (t *Transcript) misses(after uint64) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.Below > after
}

// older goes on where the book has nothing more: in the journal itself, one stretch a request.
func (s *search) older(ctx context.Context) (more bool, err error) {
	t := &s.e.CrewState.Said
	t.Mu.Lock()
	below := t.Below
	t.Mu.Unlock()
	until := min(s.until, below)
	if s.after >= until {
		return false, nil
	}
	from := s.after
	if s.q.After == 0 {
		from = max(from, until-min(until, transcriptStretch))
	} else {
		until = min(until, from+transcriptStretch)
	}
	said, err := s.stretch(ctx, from, until)
	if err != nil {
		return false, err
	}
	for i := range said {
		if s.take(&said[i]) {
			return true, nil
		}
	}
	if s.q.After != 0 {
		s.after = until
		return true, nil
	}
	s.until = from
	return from > 0, nil
}

// stretch reads what was said between two places of the journal, in the direction of the search.
func (s *search) stretch(ctx context.Context, from, until uint64) (said []Spoken, err error) {
	for rec, err := range s.e.loop.Journal().Read(ctx, journal.Query{After: from, Until: until}) {
		if err != nil {
			return nil, fmt.Errorf("read what was said: %w", err)
		}
		if rec.Entity != crew.WordsEntity && !strings.HasPrefix(rec.Entity, channel.EntityPrefix) {
			continue
		}
		one, is, err := spokenOf(rec)
		if err != nil {
			return nil, err
		}
		if is {
			said = append(said, one)
		}
	}
	if s.q.After == 0 {
		slices.Reverse(said)
	}
	return said, nil
}

// recent answers from the newest changes alone, if they are enough. So a reader of the latest
// messages does not wait for the whole history to be read after a start.
func (s *search) recent(ctx context.Context) (enough, more bool, err error) {
	head, until := s.until, s.until
	for _, far := range []uint64{journal.RecentFew, journal.RecentMax} {
		from := head - min(head, far)
		said, err := s.stretch(ctx, from, until)
		if err != nil {
			return false, false, err
		}
		for i := range said {
			if s.take(&said[i]) {
				return true, from > 0 || i < len(said)-1, nil
			}
		}
		if until = from; from == 0 {
			return true, false, nil
		}
	}
	return false, false, nil
}

const transcriptStretch = 20_000 // changes of the journal that one request reads, beyond what the book holds

// MessagesFor returns what one speaker said in one session, oldest first: slightly more of the
// newest messages than a waking member receives. leftOut counts the messages before them.
func (c *Controller) MessagesFor(ctx context.Context, session, speaker string) (messages []prompts.Message, leftOut int, err error) {
	if session == "" || speaker == "" {
		return nil, 0, nil
	}
	if err := c.MakeTranscript(ctx); err != nil {
		return nil, 0, err
	}
	s := search{e: c, q: TranscriptQuery{Session: session, Speaker: speaker, Limit: journal.PageMax}}
	if err := c.loop.View(ctx, func(t *team.Team) { s.whom, s.until = whomOf(t), c.loop.Head() }); err != nil {
		return nil, 0, err
	}
	for s.until > 0 && s.bytes <= transcriptTailMax {
		seqs, _ := c.CrewState.Said.wanted(&s.q, 0, s.until, wakeChunk)
		if len(seqs) == 0 {
			break
		}
		said, err := c.spokenAt(ctx, seqs)
		if err != nil {
			return nil, 0, err
		}
		for i := range said {
			_ = s.take(&said[len(said)-1-i])
		}
		s.passed(seqs[len(seqs)-1])
	}
	slices.Reverse(s.found)
	for _, one := range s.found {
		for _, m := range one {
			messages = append(messages, prompts.Message{Speaker: m.Speaker, Text: m.Text})
		}
	}
	rest, _ := c.CrewState.Said.wanted(&s.q, 0, s.until, TranscriptMax)
	return messages, len(rest), nil
}

const wakeChunk = 32 // messages that are read at a time for a waking member

// transcriptTailMax is the size limit of the messages that a waking member receives (SPEC P8), in
// bytes.
const transcriptTailMax = 32 << 10
