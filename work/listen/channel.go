package listen

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// channelListener turns the output of a session into posts and turn events of a channel, or into events of
// the crew for a lead. A nil channelListener ignores everything.
type channelListener struct {
	v       *turns.SessionWriter
	agent   string
	leads   bool          // it is a lead session: what it says outside of an answer goes to the crew
	crew    *crewListener // nil: markers of the crew do not count
	session string
	events  []team.Event    // of the current report
	text    []byte          // text since the last of the events
	part    bool            // the text continues in the same line
	glued   bool            // the output before text ended in the middle of a word
	asks    bool            // a permission request is open
	waits   bool            // the agent reported that it waits
	over    bool            // its answer ended in this report
	resume  []channel.Token // turns whose wait ends with this report
	rested  string          // key of the message whose answer is complete
	ends    driver.Capabilities
	tail    []byte    // a word at the end of the text, and what follows it; it counts if the message ends here
	tailOf  string    // key of the message that the tail answers
	heardAt time.Time // when the last text came
	fenced  bool      // the text so far ends within a code fence
	final   bool      // the process has ended: nothing more comes
	uttered utterance
}

// utterance counts what an agent has posted in answer to one message. It keeps endless output from
// filling the journal.
type utterance struct {
	key    string    // of the message
	since  time.Time // start of the count
	posted int       // bytes
	cut    bool      // the limit was exceeded and reported
	done   bool      // the agent gave up its turn; later output is not urgent
	waits  int
}

// answering is the current answer.
func (t *channelListener) answering() *utterance {
	so := &t.uttered
	if key := t.v.Answers().Key; key != so.key {
		*so = utterance{key: key, since: time.Now()}
	}
	if t.leads && so.key == t.rested && time.Since(so.since) >= turns.AgainAfter {
		so.since, so.posted, so.cut = time.Now(), 0, false
	}
	return so
}

// room cuts text to the limit of an answer and reports the cut once.
func (u *utterance) room(text string) string {
	if u.posted += len(text); u.posted <= turns.AnswerBytesMax {
		return text
	}
	if u.cut {
		return ""
	}
	u.cut = true
	left := max(0, len(text)-(u.posted-turns.AnswerBytesMax))
	return clip.Text(text, left) +
		fmt.Sprintf("\n[more than %d bytes in one answer: the rest is not shown here; the output of the session has it]",
			turns.AnswerBytesMax)
}

// channelListenerOf starts a listener for channels. It first acknowledges input that was written to the
// session but is not in the journal. It returns nil if Fairlead is stopping or if the session has
// ended.
func (e *Listener) channelListenerOf(ctx context.Context, m *sessions.Slot, s team.Session, proc sessionhost.Process) *channelListener {
	v := turns.NewSessionWriter()
	t := &channelListener{
		v: v, agent: m.Conf.Name, session: s.ID,
		ends: m.Driver.Capabilities(sessions.Known(*m.Conf), sessions.SessionFor(m, s).Kind),
	}
	typist, types := proc.(sessionhost.InputWriter)
	var written channel.Action
	find := func(tm *team.Team, label string) bool {
		now := m.Open(tm)
		if now == nil || now.ID != s.ID || now.Delivery == nil {
			return false
		}
		v.Set(*now.Delivery)
		t.tail, t.tailOf = []byte(now.Delivery.Held), now.Delivery.Key
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
		for _, todo := range tm.AgentChannelActions(m.Conf.Name, e.loop.Now()) {
			if todo.Key == label {
				written = todo
			}
		}
		if is := now.Delivery; written.Do == channel.TellMessage && written.Token.Turn == 0 && now.AnswerPending() && is.Re == 0 &&
			is.Token.Channel == written.Token.Channel {
			written.Token = is.Token // only messages of a turn may be inserted into its answer
		}
		return true
	}
	input, label := int64(0), ""
	if types {
		input, label = typist.Input()
		v.NoteInput(input)
	}
	is := false
	if err := e.loop.View(ctx, func(tm *team.Team) { is = find(tm, label) }); err != nil || !is {
		return nil
	}
	if written.Key != "" {
		if _, err := e.sessions.SubmitOf(ctx, sessions.ByShim, m,
			team.Delivered{Session: s.ID, Action: written, Input: input}); err != nil {
			return nil
		}
		if err := e.loop.View(ctx, func(tm *team.Team) { is = find(tm, "") }); err != nil || !is {
			return nil
		}
	}
	e.channels.SetSessionWriter(s.ID, v)
	if _, err := e.loop.Do(ctx, loop.Request{Agent: m.Conf.Name}); err != nil { // it can be told more from now on
		return nil
	}
	return t
}

// leaseOf is the turn of a token whose holder waits, or nil.
func leaseOf(t *team.Team, token channel.Token) *channel.Lease {
	c := t.Channels.ByID[token.Channel]
	if c == nil || token.Turn == 0 || c.Head.Turn != token.Turn || c.Head.Holder != token.Agent ||
		t.Channels.StateOf(token.Agent, token.Channel) != channel.Waiting {
		return nil
	}
	return &c.Head.Lease
}

func (t *channelListener) fresh() {
	if t != nil {
		t.events, t.text, t.part, t.over, t.resume = nil, nil, false, false, nil
		t.crew.fresh()
	}
}

// urgent reports whether to report as soon as the driver has emitted all of its facts.
func (t *channelListener) urgent() bool {
	if t == nil {
		return false
	}
	return t.over || len(t.events) > 0 && (t.crew == nil || !t.crew.tally.crowded()) || len(t.text) >= turns.PostBytesMax ||
		!t.part && turns.WordAtEnd(t.text) == waitWord && !t.answering().done
}

// midWord reports whether the text ends with what may be the start of a marker.
func (t *channelListener) midWord() bool {
	if t == nil || !t.part {
		return false
	}
	return slices.ContainsFunc(turns.TurnWords, func(word string) bool {
		for n := 1; n < len(word); n++ {
			if front, begins := bytes.CutSuffix(t.text, []byte(word[:n])); begins && !marker.EndsInWord(front) {
				return true
			}
		}
		return false
	})
}

// note handles a fact and reports whether there is something to append.
func (t *channelListener) note(fact HeldFact, pending *team.SessionReported) bool {
	if t == nil {
		return false
	}
	if t.crew != nil && (fact.Kind != driver.Said || fact.Tool != "") {
		t.said(fact.pieces) // an incomplete marker is broken now
	}
	if t.ends.Messages && fact.Kind != driver.Said && fact.Kind != driver.PermissionAsked {
		t.messageOver()
	}
	switch fact.Kind {
	case driver.Said:
		if fact.Tool != "" {
			t.goesOn(false)
			return len(t.events) > 0
		}
		t.heardAt = time.Now()
		t.goesOn(strings.TrimSpace(fact.Text) != "")
		if t.crew != nil {
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
			t.tell(crew.Faulty{
				Agent: t.agent, Session: t.session,
				Fault: turns.AskWords + clip.Text(loop.FirstLine(fact.Text), turns.WhyShownMax),
			}, "")
			break
		}
		t.add(channel.WaitAskedFor{
			Token: t.v.Answers().Token, Reason: channel.WaitPermission,
			Why: turns.AskWords + clip.Text(loop.FirstLine(fact.Text), turns.WhyShownMax),
		}, "")
		t.asks = true
	case driver.Listening, driver.Stopped:
		if fact.Kind == driver.Listening && fact.Input != 0 && fact.Input < t.v.Written() {
			t.messageOver() // the agent has not read messages from the meantime, but this message is complete
			t.flush(false)
			return len(t.events) > 0
		}
		t.goesOn(false)
		if fact.Kind == driver.Stopped && !fact.Stop.OK {
			t.flush(false) // it failed during its answer; the end of the session decides the result
			return true
		}
		t.flush(true)
		t.over, t.waits, t.rested = true, false, t.v.Answers().Key
		pending.Over, pending.Heard = true, fact.Input
	case driver.Thought, driver.ToolCalled, driver.PermissionAnswered, driver.PermissionWithdrawn:
		t.goesOn(false)
		return len(t.events) > 0
	default: // usage and unparsed output do not show that the agent continues
		return t.crew != nil && len(t.events) > 0 // from a marker that was never completed
	}
	return true
}

// toTeam reports whether the output belongs to no channel: a lead answers the crew or speaks on its
// own.
func (t *channelListener) toTeam() bool {
	is := t.v.Answers()
	return team.IsLeadToken(is.Token) || t.leads && is.Key == t.rested
}

// goesOn ends a wait: a question was answered, or the agent speaks again.
func (t *channelListener) goesOn(speaks bool) {
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

func (t *channelListener) add(what channel.Input, text string) {
	agent := string(t.v.Answers().Token.Agent)
	ev := loop.EventBy(turns.ByAgent(agent), "", what)
	ev.Text = text
	t.events = append(t.events, *ev)
}

// flush turns the text into posts and applies the marker at its end. ended means that the answer is
// complete.
func (t *channelListener) flush(ended bool) {
	is := t.v.Answers()
	held := t.takeTail(ended)
	text, word := turns.Ending(t.text, t.glued)
	if held != nil && word != marker.TurnWait { // a word follows, so this one is not at the end
		text, word = turns.Trim(t.text), ""
	}
	toTeam := t.toTeam()
	glued := t.glued
	t.glued = t.part && held == nil && len(t.text) > 0 && word == "" && marker.EndsInWord(t.text)
	if held != nil && len(t.text) == 0 {
		t.glued = glued
	}
	if ended {
		t.glued, t.fenced = false, false
	}
	t.fenced = t.fenced != oddFences(t.text)
	t.text, t.part, t.tail = nil, false, held
	so := t.answering()
	if so.done && word != "" || word == marker.TurnWait && so.waits >= turns.AnswerWaitsMax {
		word = "" // the marker has no effect any more
	}
	posts := parts(so.room(text))
	if toTeam { // no turn: only the text counts
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
		t.add(channel.WaitAskedFor{Token: is.Token, Why: clip.Text(finalLine(text), turns.WhyShownMax)}, "")
		t.waits = true
		so.waits++
	case held == nil && len(posts) == 0 && (ended || word == marker.TurnComplete):
		say("", true)
	}
}

// parts splits a text into posts at character boundaries.
func parts(text string) (posts []string) {
	for len(text) > turns.PostBytesMax {
		end := turns.PostBytesMax
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

func finalLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// reportAnswer appends the posts together with the output offset. One append ensures that a crash
// neither repeats nor loses a post.
func (l *SessionListener) reportAnswer(ctx context.Context) error {
	t := l.channel
	if err := t.v.WriteLock.Lock(ctx); err != nil {
		return err
	}
	defer t.v.WriteLock.Unlock()
	if len(t.text) > 0 || t.final && len(t.tail) > 0 {
		t.flush(false)
	}
	l.Pending.Held = t.heldWord()
	events := append(slices.Concat(t.events, l.also, l.stray), *l.m.Event(turns.ByAgent(l.m.Conf.Name), l.Pending))
	resume := t.resume
	_, err := l.e.loop.Do(ctx, loop.Request{Derive: loop.Report(events...), Look: func(*team.Team) {
		for _, token := range resume {
			l.e.channels.Participant(l.m).Resumed = token
		}
	}})
	return err
}
