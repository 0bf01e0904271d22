package listen

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/marker"
	"github.com/fairlead-dev/fairlead/team"
)

// talkEar makes of what a session says what counts in a channel, or, where it is the lead's, for
// the team. Nil hears nothing.
type talkEar struct {
	v       *channels.SessionWriter
	agent   string
	leads   bool // the team: its markers count
	session string
	events  []team.Event    // of the report that is being made
	text    []byte          // said since the last of them
	part    bool            // and goes on in the same line
	glued   bool            // what was said before text ended in the middle of a word
	asks    bool            // a question for permission is open
	waits   bool            // it said itself that it waits
	over    bool            // in this report its answer ended
	resume  []channel.Token // turns whose wait is over with this report
	tally   tally           // markers of the team
	rested  string          // the errand whose answer is over
	uttered utterance
}

// utterance is how far an agent went in what it says to one errand. Output without end must not
// become a journal without end.
type utterance struct {
	key    string    // of the errand
	since  time.Time // counted from here
	posted int       // bytes
	cut    bool      // more than may be posted, and that was said
	done   bool      // it has given its turn up; what it says after that is late, and hurries nobody
	waits  int
}

// answering is the answer that is under way.
func (t *talkEar) answering() *utterance {
	so := &t.uttered
	if key := t.v.Answers().Key; key != so.key {
		*so = utterance{key: key, since: time.Now()}
	}
	if t.leads && so.key == t.rested && time.Since(so.since) >= channels.AgainAfter {
		so.since, so.posted, so.cut = time.Now(), 0, false
	}
	return so
}

// room cuts what is posted to what an answer may have, and says so once.
func (u *utterance) room(text string) string {
	if u.posted += len(text); u.posted <= channels.AnswerBytesMax {
		return text
	}
	if u.cut {
		return ""
	}
	u.cut = true
	left := max(0, len(text)-(u.posted-channels.AnswerBytesMax))
	return loop.CutText(text, left) + fmt.Sprintf("\n[more than %d bytes in one answer: the rest is not shown here; the output of the session has it]", channels.AnswerBytesMax)
}

// talksFrom begins to listen to a session for channels: what was written to it and is not known
// to the journal is acknowledged first. Nil: we stop, or it is over.
func (e *Listener) talksFrom(ctx context.Context, m *sessions.Slot, s team.Session, proc seam.Process) *talkEar {
	v := channels.NewSessionWriter()
	t := &talkEar{v: v, agent: m.Conf.Name, session: s.ID}
	typist, types := proc.(seam.InputWriter)
	var written channel.Action
	find := func(tm *team.Team, label string) bool {
		now := m.Open(tm)
		if now == nil || now.ID != s.ID || now.Delivery == nil {
			return false
		}
		v.Set(*now.Delivery)
		if !now.AnswerPending() {
			t.rested = now.Delivery.Key
		}
		if lease := leaseOf(tm, now.Delivery.Token); lease != nil && now.AnswerPending() && !lease.Stopped {
			t.asks = lease.WaitReason == channel.WaitPermission
			t.waits = !t.asks
		}
		if label == "" || label == now.Delivery.Key {
			return true
		}
		written, _ = team.ActionOf(label)
		for _, todo := range tm.AgentChannelActions(m.Conf.Name, e.Now()) {
			if todo.Key == label {
				written = todo
			}
		}
		if is := now.Delivery; written.Do == channel.TellMessage && written.Token.Turn == 0 && now.AnswerPending() && is.Re == 0 && is.Token.Channel == written.Token.Channel {
			written.Token = is.Token // only what belongs to a turn goes into the middle of its answer
		}
		return true
	}
	input, label := int64(0), ""
	if types {
		input, label = typist.Input()
		v.NoteInput(input)
	}
	is := false
	if err := e.View(ctx, func(tm *team.Team) { is = find(tm, label) }); err != nil || !is {
		return nil
	}
	if written.Key != "" {
		if _, err := e.sessions.SubmitOf(ctx, sessions.ByShim, m, team.Delivered{Session: s.ID, Action: written, Input: input}); err != nil {
			return nil
		}
		if err := e.View(ctx, func(tm *team.Team) { is = find(tm, "") }); err != nil || !is {
			return nil
		}
	}
	e.channels.SetSessionWriter(s.ID, v)
	if _, err := e.Do(ctx, loop.Request{Agent: m.Conf.Name}); err != nil { // it can be told more from now on
		return nil
	}
	return t
}

// leaseOf is the turn that a token names, where its holder waits; else nil.
func leaseOf(t *team.Team, token channel.Token) *channel.Lease {
	c := t.Channels.ByID[token.Channel]
	if c == nil || token.Turn == 0 || c.Head.Turn != token.Turn || c.Head.Holder != token.Agent || t.Channels.StateOf(token.Agent, token.Channel) != channel.Waiting {
		return nil
	}
	return &c.Head.Lease
}

func (t *talkEar) fresh() {
	if t != nil {
		t.events, t.text, t.part, t.over, t.resume = nil, nil, false, false, nil
		t.tally.atOnce, t.tally.last = 0, 0
	}
}

// urgent says whether what was heard is to be reported as soon as the driver has told all it has.
func (t *talkEar) urgent() bool {
	if t == nil {
		return false
	}
	return t.over || len(t.events) > 0 && !t.tally.crowded() || len(t.text) >= channels.PostBytesMax || !t.part && channels.WordAtEnd(t.text) != "" && !t.answering().done
}

// midWord says whether the last thing that was said may be the beginning of a marker.
func (t *talkEar) midWord() bool {
	if t == nil || !t.part {
		return false
	}
	last := t.text[bytes.LastIndexAny(t.text, " \t\r\n")+1:]
	if len(last) == 0 {
		return false
	}
	for _, word := range channels.TurnWords {
		if len(last) < len(word) && strings.HasPrefix(word, string(last)) {
			return true
		}
	}
	return false
}

// note takes a fact in, and says whether anything is to be reported of it.
func (t *talkEar) note(fact HeldFact, pending *team.SessionReported) bool {
	if t == nil {
		return false
	}
	if t.leads && (fact.Kind != driver.Said || fact.Tool != "") {
		t.said(fact.pieces) // a marker that was not whole is broken now
	}
	switch fact.Kind {
	case driver.Said:
		if fact.Tool != "" {
			t.goesOn(false)
			return len(t.events) > 0
		}
		t.goesOn(strings.TrimSpace(fact.Text) != "")
		if t.leads {
			t.said(fact.pieces)
			t.part = fact.Part
			break
		}
		t.text = append(t.text, fact.Text...)
		if t.part = fact.Part; !t.part {
			t.text = append(t.text, '\n')
		}
	case driver.PermissionAsked:
		t.flush(false)
		if fact.ruled {
			return true
		}
		if t.toTeam() {
			t.tell(crew.Faulty{Agent: t.agent, Session: t.session, Fault: channels.AskWords + loop.CutText(loop.FirstLine(fact.Text), channels.WhyShownMax)}, "")
			break
		}
		t.add(channel.WaitAskedFor{Token: t.v.Answers().Token, Reason: channel.WaitPermission, Why: channels.AskWords + loop.CutText(loop.FirstLine(fact.Text), channels.WhyShownMax)}, "")
		t.asks = true
	case driver.Listening, driver.Stopped:
		if fact.Kind == driver.Listening && fact.Input != 0 && fact.Input < t.v.Written() {
			t.flush(false) // what was written meanwhile it has not heard; but this message is at its end
			return len(t.events) > 0
		}
		t.goesOn(false)
		if fact.Kind == driver.Stopped && !fact.Stop.OK {
			t.flush(false) // it failed in the midst of its answer: the end of the session says what that means
			return true
		}
		t.flush(true)
		t.over, t.waits, t.rested = true, false, t.v.Answers().Key
		pending.Over, pending.Heard = true, fact.Input
	case driver.Thought, driver.ToolCalled, driver.PermissionAnswered, driver.PermissionWithdrawn:
		t.goesOn(false)
		return len(t.events) > 0
	default: // what it used, and what could not be understood, is no sign that it goes on
		return t.leads && len(t.events) > 0 // of a marker that never became whole
	}
	return true
}

// toTeam says whether what is said now is said in no channel: a lead answers the team, or nobody,
// since it tells of its team by itself, too.
func (t *talkEar) toTeam() bool {
	is := t.v.Answers()
	return team.IsLeadToken(is.Token) || t.leads && is.Key == t.rested
}

// goesOn ends a wait: an answer to a question was given, or, where it speaks, what it waited for
// itself has come.
func (t *talkEar) goesOn(speaks bool) {
	if !t.asks && (!speaks || !t.waits && !t.v.AskedToWait()) {
		return
	}
	t.asks, t.waits = false, false
	t.v.SetWaits(false)
	is := t.v.Answers()
	if is.Token.Turn == 0 {
		return
	}
	t.add(channel.WaitOver{Token: is.Token}, "")
	t.resume = append(t.resume, is.Token)
}

func (t *talkEar) add(what channel.Input, text string) {
	agent := string(t.v.Answers().Token.Agent)
	ev := loop.EventBy(channels.ByAgent(agent), "", what)
	ev.Text = text
	t.events = append(t.events, *ev)
}

// flush makes posts of what was said, and acts on the marker that it ends with. ended: the answer
// is over.
func (t *talkEar) flush(ended bool) {
	is := t.v.Answers()
	text, word := channels.Ending(t.text, t.glued)
	toTeam := t.toTeam()
	t.glued = t.part && len(t.text) > 0 && word == "" && !isSpaceByte(t.text[len(t.text)-1])
	if ended {
		t.glued = false
	}
	t.text, t.part = nil, false
	so := t.answering()
	if so.done && word != "" || word == marker.TurnWait && so.waits >= channels.AnswerWaitsMax {
		word = "" // it means nothing any more
	}
	posts := parts(so.room(text))
	if toTeam { // no turn, and nobody waits for its end: words are all that counts
		for _, post := range posts {
			t.tell(crew.Spoke{Session: t.session, Text: post}, "")
		}
		return
	}
	say := func(post string, last bool) {
		said := channel.Said{Token: is.Token, Re: is.Re, Bytes: len(post)}
		if last {
			said.Complete, said.Ended = word == marker.TurnComplete, ended
		}
		t.add(said, post)
	}
	turnWord := is.Re == 0 && (word == marker.TurnPass || word == marker.TurnWait)
	for i, post := range posts {
		say(post, i == len(posts)-1 && !turnWord)
	}
	so.done = so.done || word == marker.TurnComplete || turnWord && word == marker.TurnPass
	switch {
	case turnWord && word == marker.TurnPass:
		t.add(channel.PassAsked{Token: is.Token}, "")
	case turnWord:
		t.add(channel.WaitAskedFor{Token: is.Token, Why: loop.CutText(finalLine(text), channels.WhyShownMax)}, "")
		t.waits = true
		so.waits++
	case len(posts) == 0 && (ended || word == marker.TurnComplete):
		say("", true)
	}
}

// parts cuts a text to posts, at whole characters.
func parts(text string) (posts []string) {
	for len(text) > channels.PostBytesMax {
		end := channels.PostBytesMax
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		posts, text = append(posts, text[:end]), text[end:]
	}
	if strings.TrimSpace(text) != "" {
		posts = append(posts, text)
	}
	return posts
}

func isSpaceByte(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func finalLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// reportTalk has what was said put into the journal, with the place in the output up to which it
// was heard: in one append, so that after a crash nothing is posted twice and nothing is lost.
func (l *Ear) reportTalk(ctx context.Context) error {
	t := l.talk
	if err := t.v.WriteLock.Lock(ctx); err != nil {
		return err
	}
	defer t.v.WriteLock.Unlock()
	if len(t.text) > 0 {
		t.flush(false)
	}
	events := append(slices.Concat(t.events, l.also, l.stray), *l.m.Event(channels.ByAgent(l.m.Conf.Name), l.Pending))
	resume := t.resume
	_, err := l.e.Do(ctx, loop.Request{Events: events, Look: func(*team.Team) {
		for _, token := range resume {
			l.e.channels.Participant(l.m).Resumed = token
		}
	}})
	return err
}
