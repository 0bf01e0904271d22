package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
)

// channelRecord records everything that is said in channels and delivered to agents. It is kept
// independently of the machines under test. The world's lock guards it.
type channelRecord struct {
	words           map[string]*word             // every word by its text, which is unique
	posts           map[string][]string          // channel → texts of its messages; message 1 is the first
	states          map[string]map[string]string // channel → agent → state of the participant
	people          map[string]map[uint64]string // channel → number → state of a person's message
	deliveredAction map[string]deliveredAction   // action key → the action when it was delivered
	inputs          map[string]string            // action key → session whose input contains it
	typed           map[string]string            // action key → the input that was written for it
	delivered       map[string]map[string]string // agent in channel → word → session in which the agent received it
	endedTurns      map[string]bool              // turn in channel → its agent has ended it
	turns           map[string]int               // agent in channel → number of its turns
	last            map[string]int               // session → number of its newest word in the journal
	n               int
}

// word is a unique piece of text in a message of a person or an agent. Checks find it again in the
// journal and in prompts.
type word struct {
	n       int
	by      string
	session string // the session that said it; empty for a person or a foreign agent
	speaker string // in a lead's session, the crew member in whose name it was said
	key     string // key of the action that it answers; empty: of none
	must    bool   // it must be in the journal at the end of the day; otherwise it may be
	times   int    // number of times that it is in the journal
	at      string // where it is in the journal: the message number and the channel
}

// deliveredAction is an action as it was when its prompt was written to an agent.
type deliveredAction struct {
	channel  string
	turn, re uint64
	known    bool // it was pending when it was delivered; otherwise the other fields are not set
	lead     bool // it is an action of the lead and belongs to no channel
}

func newChannelRecord() *channelRecord {
	return &channelRecord{
		words: map[string]*word{}, posts: map[string][]string{}, states: map[string]map[string]string{},
		people:          map[string]map[uint64]string{},
		deliveredAction: map[string]deliveredAction{}, inputs: map[string]string{}, typed: map[string]string{},
		delivered: map[string]map[string]string{}, endedTurns: map[string]bool{}, turns: map[string]int{}, last: map[string]int{},
	}
}

var isWord = regexp.MustCompile(`\bw[0-9]+w\b`)

// word creates a new unique word.
func (b *channelRecord) word(by string, s *hostSession, key string) string {
	b.n++
	w := &word{n: b.n, by: by, key: key}
	if s != nil {
		w.session = s.id
	}
	name := fmt.Sprintf("w%dw", b.n)
	b.words[name] = w
	return name
}

// endsTurn records that the agent which answers this action has ended its turn.
func (b *channelRecord) endsTurn(key string) {
	if e, ok := b.deliveredAction[key]; ok {
		b.endedTurns[fmt.Sprintf("%d in %s", e.turn, e.channel)] = true
	}
}

func (w channelWorld) actionByKey(agent, key string) deliveredAction {
	for _, todo := range w.truth.AgentChannelActions(agent, w.now()) {
		if todo.Key == key {
			e := deliveredAction{channel: string(todo.Token.Channel), turn: todo.Token.Turn, known: true, lead: ofLead(key) != ""}
			if e.turn == 0 && !e.lead {
				e.re = todo.N
			}
			return e
		}
	}
	part := strings.Split(key, "/")
	if len(part) != 4 {
		return deliveredAction{}
	}
	e := deliveredAction{channel: part[1]}
	if c := w.truth.Channels.ByID[channel.ChannelID(e.channel)]; c != nil && part[0] == string(channel.TellTurn) &&
		string(c.Head.Holder) == agent && fmt.Sprint(c.Head.Turn) == part[3] {
		e.turn, e.known = c.Head.Turn, true // the agent has had this turn since before the delivery, so the key alone identifies it
	}
	return e
}

// checkInputWrite runs before an engine writes to a session's input.
func (w channelWorld) checkInputWrite(l *engineRun, s *hostSession, key string, b []byte) {
	if l.dead || w.truth.Epoch != l.epoch {
		return // the engine was overtaken; the host or its next append will refuse it
	}
	e := w.actionByKey(agentIn(s.id), key)
	checks(w).check(durableFirst, e.known, "%s receives input for %s, which is no pending action", s.id, key)
	if before, some := w.record.inputs[key]; some {
		checks(w).check(inputOnce, before != s.id, "%s receives input for %s a second time", s.id, key)
	}
}

// delivered records input that a session received. One action goes into one session, unless that
// session has ended.
func (w channelWorld) delivered(s *hostSession, key, text string) {
	b, name := w.record, agentIn(s.id)
	e := w.actionByKey(name, key)
	if before, some := b.inputs[key]; some {
		checks(w).check(inputOnce, before != s.id && w.sessions[before].isOver(), "%s was written to %s, and to %s before", key, s.id,
			before)
	}
	b.inputs[key] = s.id
	if _, some := b.deliveredAction[key]; !some || e.known {
		b.deliveredAction[key] = e
	}
	b.typed[key] = text
	crewWorld(w).checkLeadInput(s, key, text)
}

// deliveredAllMax is the number of messages in a channel up to which a turn must deliver every one
// of them.
const deliveredAllMax = 150

// checkDelivered checks the messages in a prompt. A turn delivers all messages that the agent has
// not received, and none twice.
func (w channelWorld) checkDelivered(agent string, e deliveredAction, session string, whole bool, text string) {
	b := w.record
	seat := agent + " in " + e.channel
	if b.delivered[seat] == nil {
		b.delivered[seat] = map[string]string{}
	}
	for _, name := range isWord.FindAllString(text, -1) {
		word := b.words[name]
		checks(w).check(deliveredAll, word != nil && word.times > 0, "%s received %s in #%s, where no message contains it", agent, name,
			e.channel)
		checks(w).check(deliveredAll, word == nil || word.by != agent, "%s received its own message %s in #%s", agent, name, e.channel)
		before, some := b.delivered[seat][name]
		checks(w).check(deliveredAll, !some || before != session || session == "", "%s received %s in #%s a second time (%s)", agent, name,
			e.channel, session)
		b.delivered[seat][name] = session
	}
	c := w.truth.Channels.ByID[channel.ChannelID(e.channel)]
	if !whole || c == nil || len(b.posts[e.channel]) > deliveredAllMax {
		return
	}
	for _, said := range b.posts[e.channel][:min(c.Head.Lease.Upto, uint64(len(b.posts[e.channel])))] {
		for _, name := range isWord.FindAllString(said, -1) {
			_, some := b.delivered[seat][name]
			checks(w).check(deliveredAll, some || b.words[name].by == agent, "%s has turn %d in #%s and never received %s", agent, e.turn,
				e.channel, name)
		}
	}
}

// forgetUndelivered forgets messages that an agent must receive again, because its turn timed out
// while a person's message had no answer.
func forgetUndelivered(w *world, channelName string, set *channel.Set) {
	deliveredWords := w.record.delivered[string(set.Agent)+" in "+channelName]
	for _, p := range set.Body.Participants {
		if p.Agent != set.Agent {
			continue
		}
		for i, said := range w.record.posts[channelName] {
			if n := uint64(i) + 1; n > p.Heard && !slices.Contains(p.Ahead, n) {
				for _, name := range isWord.FindAllString(said, -1) {
					delete(deliveredWords, name)
				}
			}
		}
	}
}

// checkChannelChange checks a change of a channel before it is applied.
func (w channelWorld) checkChannelChange(ch change.Change) {
	channelName, is := strings.CutPrefix(ch.Entity, "channel/")
	set := change.As[channel.Set](ch.Body)
	if !is || set == nil {
		return
	}
	w.checkTurnChange(channelName, ch)
	if post := set.Body.Post; post != nil {
		w.checkPost(channelName, ch, post)
	}
	if ch.Trigger == string(channel.TimedOut) {
		forgetUndelivered(w.world, channelName, set)
	}
	b := w.record
	if a := w.truth.Agents[string(set.Agent)]; strings.HasPrefix(ch.Trigger, "tell_") && a != nil && a.Session.ServesChannels() {
		// A prompt that is outdated before it is delivered does not count and is sent again. So it
		// is checked when the channel records its delivery.
		if key := a.Session.Delivery.Key; strings.HasPrefix(key, ch.Trigger) {
			w.checkDelivered(string(set.Agent), b.deliveredAction[key], a.Session.ID, ch.Trigger == string(channel.TellTurn), b.typed[key])
		}
	}
	for _, m := range set.Body.Messages {
		if b.people[channelName] == nil {
			b.people[channelName] = map[uint64]string{}
		}
		was, known := b.people[channelName][m.N]
		fine := was != "lapsed" && (was != "answered" || m.State == channel.Answered) && known != (m.Row == "M1")
		checks(w).check(messageKept, fine, "message %d in #%s was %q, and is %s (%s)", m.N, channelName, was, m.State, m.Row)
		b.people[channelName][m.N] = string(m.State)
	}
	for i := range set.Body.Participants { // a participant that is new or has returned receives all messages again
		c, name := w.truth.Channels.ByID[channel.ChannelID(channelName)], set.Body.Participants[i].Agent
		if c == nil || c.Participants[name] == nil || c.Participants[name].Gone {
			delete(b.delivered, string(name)+" in "+channelName)
		}
	}
}

// checkTurnChange checks that at most one agent has the turn, and that no agent ends another
// agent's turn.
func (w channelWorld) checkTurnChange(channelName string, ch change.Change) {
	b, set := w.record, change.As[channel.Set](ch.Body)
	c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
	if ch.From == ch.To || c == nil {
		return
	}
	if b.states[channelName] == nil {
		b.states[channelName] = map[string]string{}
	}
	b.states[channelName][string(set.Agent)] = ch.To
	var hold []string
	for name, state := range b.states[channelName] {
		if state == "ACTIVE" || state == "WAITING" {
			hold = append(hold, name)
		}
	}
	slices.Sort(hold)
	checks(w).check(oneSpeaker, len(hold) < 2, "%v have the turn in #%s", hold, channelName)
	switch ch.Trigger {
	case "granted":
		b.turns[string(set.Agent)+" in "+channelName]++
	case string(channel.Completed), string(channel.CompletedAlone), string(channel.CompletedEmpty), string(channel.CompletedEmptyAlone),
		string(channel.PassedOn):
		checks(w).check(fenceOfTurns, b.endedTurns[fmt.Sprintf("%d in %s", c.Head.Turn, channelName)],
			"turn %d of %s in #%s ends (%s), but %s did not end it", c.Head.Turn, set.Agent, channelName, ch.Trigger, set.Agent)
	}
}

// checkPost checks a message in the journal: it has the next number, was really said, occurs once
// and in its speaker's order, and counts for the turn in which it was said or for none.
func (w channelWorld) checkPost(channelName string, ch change.Change, post *channel.Post) {
	b, set := w.record, change.As[channel.Set](ch.Body)
	c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
	b.posts[channelName] = append(b.posts[channelName], set.Text)
	n := uint64(len(b.posts[channelName]))
	checks(w).check(saidOnce, post.N == n, "#%s: message %d comes after %d", channelName, post.N, n-1)
	checks(w).check(saidOnce, post.Kind == channel.OfLate || !strings.HasSuffix(strings.TrimSpace(set.Text), "TURN_COMPLETE"),
		"#%s: message %d contains the end-of-turn marker: %q", channelName, n, set.Text)
	checks(w).check(saidOnce, post.By != crewWorld(w).lead() || !shows(set.Text) || w.crew.uuid[w.crew.lead] != set.Session,
		"#%s: message %d contains a report of the lead about its crew: %q", channelName, n, set.Text)
	if post.Kind == channel.OfTurn {
		checks(w).check(fenceOfTurns, string(c.Head.Holder) == post.By && c.Head.Turn == post.Turn,
			"#%s: message %d of %s belongs to turn %d, but %s has turn %d", channelName, n, post.By, post.Turn, c.Head.Holder, c.Head.Turn)
	}
	if head := set.Body.Head; post.Kind == channel.OfLate && head != nil {
		checks(w).check(fenceOfTurns,
			ch.From == ch.To && head.Holder == c.Head.Holder && head.Turn == c.Head.Turn && head.Lease.Ends.Equal(c.Head.Lease.Ends),
			"#%s: message %d of %s is late and changes the turn: %+v -> %+v", channelName, n, post.By, c.Head, *head)
	}
	for _, name := range isWord.FindAllString(set.Text, -1) {
		word := b.words[name]
		if word == nil {
			checks(w).broken(saidOnce, "#%s: message %d contains %s, which was never said", channelName, n, name)
			return
		}
		word.times++
		checks(w).check(saidOnce, word.times == 1, "%s is in the journal twice: %s, and message %d in #%s", name, word.at, n, channelName)
		if from := word.session; from != "" { // the messages of one session keep their order
			checks(w).check(saidOnce, word.n > b.last[from], "#%s: message %d contains %s, but a later message of %s came before it",
				channelName, n, name, from)
			b.last[from] = word.n
		}
		word.at = fmt.Sprintf("message %d in #%s", n, channelName)
		w.crew.inTranscripts[name] = transcriptSource{session: set.Session}
		checks(w).check(saidOnce, word.by == post.By, "%s was said by %s, but %s in the journal", name, word.by, post.By)
		if e := b.deliveredAction[word.key]; e.known && word.must {
			// the turn ended before the answer was read, so the answer is stored without one
			turnOver := post.Kind == channel.OfLate && post.Turn == 0
			// An agent answers a question to it as part of its turn, or the question came after the turn and before the answer was read.
			own := e.re == 0 && (post.Kind == channel.OfAside || turnOver)
			checks(w).check(fenceOfTurns, e.channel == channelName && (e.turn == post.Turn || turnOver) && (e.re == post.Re || own),
				"%s answers %s (turn %d, message %d), but the journal stores it in #%s as turn %d, message %d", name, word.key, e.turn,
				e.re, channelName, post.Turn, post.Re)
		}
	}
}

// checkChannelsSettled runs when nothing is left to do. No deadline has passed without effect, and
// every session for channels has an action.
func (w channelWorld) checkChannelsSettled() {
	for _, id := range w.truth.ChannelIDs() {
		about := w.truth.Channels.Deadline(channel.ChannelID(id))
		checks(w).check(turnComes, about.At.IsZero() || w.now().Before(about.At.Add(calmFor)),
			"#%s: its %s (%d) ran out at %v without an effect", id, about.What, about.N, about.At)
	}
	for name, a := range w.truth.Agents {
		if s := a.Session; s.ServesChannels() && s.Delivery == nil {
			checks(w).broken(inputOnce, "%s has the session %s for channels without an action", name, s.ID)
		}
	}
}

// checkMessagesStored runs at the end of a day. Everything that an agent said while an engine read
// its output must be in the journal.
func (w channelWorld) checkMessagesStored() {
	for name, word := range w.record.words {
		s := w.sessions[word.session]
		switch {
		case !word.must || word.times == 1:
		case s == nil:
			checks(w).broken(saidOnce, "%s of %s was confirmed and is not in the journal", name, word.by)
		case s.isOver() && !s.ending.Lost && !s.exitUnread:
			checks(w).broken(saidOnce, "%s said %s in answer to %s, and it is not in the journal", s.id, name, word.key)
		}
	}
}

// openFor lists the messages of people in a channel that no agent has answered.
func (b *channelRecord) openFor(channel string) (open []uint64) {
	for n, state := range b.people[channel] {
		if state != "answered" && state != "lapsed" {
			open = append(open, n)
		}
	}
	slices.Sort(open)
	return open
}
