package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/team"
)

// book is kept by hand of all that is said in channels and told to agents. It knows the words
// of the journal and none of the rules. The world's lock guards it.
type book struct {
	words  map[string]*word             // by what is like nothing else in a text
	posts  map[string][]string          // channel → the texts by number, from 1
	states map[string]map[string]string // channel → agent → its state
	people map[string]map[uint64]string // channel → number → how far a person's message is
	errand map[string]errand            // key → what it was when it was told
	inputs map[string]string            // key → session in whose input it is
	typed  map[string]string            // key → the words that went there
	given  map[string]map[string]string // agent in channel → word → session in which it was given it
	gaveUp map[string]bool              // turn in channel → its agent has given it up
	turns  map[string]int               // agent in channel → turns that it was given
	last   map[string]int               // session → the last of its words that is in the journal
	n      int
}

// word is one thing that a person or an agent says.
type word struct {
	n       int
	by      string
	session string // of an agent of this team; else empty
	speaker string // of a lead: for whom of its team it was said, or for itself; else empty
	key     string // of the action that it answers; empty: of none
	must    bool   // it is to be in the journal in the end; else it may be
	times   int    // it is in the journal
	at      string // there: channel and number
}

// An action that an agent was told.
type errand struct {
	channel  string
	turn, re uint64
	known    bool // it was required when it was told; else its content is unknown
	lead     bool // in no channel: it is the lead's
}

func newBook() *book {
	return &book{
		words: map[string]*word{}, posts: map[string][]string{}, states: map[string]map[string]string{}, people: map[string]map[uint64]string{},
		errand: map[string]errand{}, inputs: map[string]string{}, typed: map[string]string{}, given: map[string]map[string]string{}, gaveUp: map[string]bool{}, turns: map[string]int{}, last: map[string]int{},
	}
}

var isWord = regexp.MustCompile(`\bw[0-9]+w\b`)

// word makes one that was never said.
func (b *book) word(by string, s *hostSession, key string) string {
	b.n++
	w := &word{n: b.n, by: by, key: key}
	if s != nil {
		w.session = s.id
	}
	name := fmt.Sprintf("w%dw", b.n)
	b.words[name] = w
	return name
}

// givesUp records that the agent that has the turn of an action gives it up.
func (b *book) givesUp(key string) {
	if e, ok := b.errand[key]; ok {
		b.gaveUp[fmt.Sprintf("%d in %s", e.turn, e.channel)] = true
	}
}

// named finds an action by its key, as it is required now.
func (w *world) named(agent, key string) errand {
	for _, todo := range w.truth.AgentChannelActions(agent, w.now()) {
		if todo.Key == key {
			e := errand{channel: string(todo.Token.Channel), turn: todo.Token.Turn, known: true, lead: ofLead(key) != ""}
			if e.turn == 0 && !e.lead {
				e.re = todo.N
			}
			return e
		}
	}
	part := strings.Split(key, "/")
	if len(part) != 4 {
		return errand{}
	}
	e := errand{channel: part[1]}
	if c := w.truth.Channels.ByID[channel.ChannelID(e.channel)]; c != nil && part[0] == string(channel.TellTurn) && string(c.Head.Holder) == agent && fmt.Sprint(c.Head.Turn) == part[3] {
		e.turn, e.known = c.Head.Turn, true // its turn does not move, and it has it
	}
	return e
}

// checkTyped is asked when an engine writes into a session's input.
func (w *world) checkTyped(l *life, s *hostSession, key string, b []byte) {
	if l.dead || w.truth.Epoch != l.epoch {
		return // no session could be told yet; the host refuses it, or its next append is
	}
	e := w.named(agentIn(s.id), key)
	w.check(durableFirst, e.known, "%s is written to: %s, but no pending action requires that", s.id, key)
	if before, some := w.book.inputs[key]; some {
		w.check(toldOnce, before != s.id, "%s is written to: %s, for the second time", s.id, key)
	}
}

// told notes what has come into a session's input: once, and into another one's only where the
// first is no more.
func (w *world) told(s *hostSession, key, text string) {
	b, name := w.book, agentIn(s.id)
	e := w.named(name, key)
	if before, some := b.inputs[key]; some {
		w.check(toldOnce, before != s.id && w.sessions[before].isOver(), "%s is told to %s, and was told to %s", key, s.id, before)
	}
	b.inputs[key] = s.id
	if _, some := b.errand[key]; !some || e.known {
		b.errand[key] = e
	}
	b.typed[key] = text
	w.checkTold(s, key, text)
}

// givenMost is how much may be said in a channel until an agent need not be given all of it.
const givenMost = 150

// gives looks at what an agent is given: with its turn all that it has not, and nothing twice.
func (w *world) gives(agent string, e errand, session string, whole bool, text string) {
	b := w.book
	seat := agent + " in " + e.channel
	if b.given[seat] == nil {
		b.given[seat] = map[string]string{}
	}
	for _, name := range isWord.FindAllString(text, -1) {
		word := b.words[name]
		w.check(givenAll, word != nil && word.times > 0, "%s is given %s in #%s, but no one has said it there", agent, name, e.channel)
		w.check(givenAll, word == nil || word.by != agent, "%s is given its own words %s in #%s", agent, name, e.channel)
		before, some := b.given[seat][name]
		w.check(givenAll, !some || before != session || session == "", "%s is given %s in #%s for the second time (%s)", agent, name, e.channel, session)
		b.given[seat][name] = session
	}
	c := w.truth.Channels.ByID[channel.ChannelID(e.channel)]
	if !whole || c == nil || len(b.posts[e.channel]) > givenMost {
		return
	}
	for _, said := range b.posts[e.channel][:min(c.Head.Lease.Upto, uint64(len(b.posts[e.channel])))] {
		for _, name := range isWord.FindAllString(said, -1) {
			_, some := b.given[seat][name]
			w.check(givenAll, some || b.words[name].by == agent, "%s has turn %d in #%s, and was never given %s", agent, e.turn, e.channel, name)
		}
	}
}

// givenAgain forgets what an agent was given and does not have any more: its turn timed out, and a
// person's message still has no answer.
func givenAgain(w *world, channelName string, set *team.TurnSet) {
	given := w.book.given[set.Agent+" in "+channelName]
	for _, p := range set.Body.Participants {
		if string(p.Agent) != set.Agent {
			continue
		}
		for i, said := range w.book.posts[channelName] {
			if n := uint64(i) + 1; n > p.Heard && !slices.Contains(p.Ahead, n) {
				for _, name := range isWord.FindAllString(said, -1) {
					delete(given, name)
				}
			}
		}
	}
}

// checkFloor looks at a change of a channel on its way into our team.
func (w *world) checkFloor(ch team.Change) {
	channelName, is := strings.CutPrefix(ch.Entity, "channel/")
	set := ch.Body.Turn
	if !is || set == nil {
		return
	}
	w.checkMoves(channelName, ch)
	if post := set.Body.Post; post != nil {
		w.checkPost(channelName, ch, post)
	}
	if ch.Trigger == string(channel.TimedOut) {
		givenAgain(w, channelName, set)
	}
	b := w.book
	if a := w.truth.Agents[set.Agent]; strings.HasPrefix(ch.Trigger, "tell_") && a != nil && a.Session.ServesChannels() {
		// What was overtaken on its way counts for nothing, and comes again: so it is looked at
		// when the channel takes it for told.
		if key := a.Session.Delivery.Key; strings.HasPrefix(key, ch.Trigger) {
			w.gives(set.Agent, b.errand[key], a.Session.ID, ch.Trigger == string(channel.TellTurn), b.typed[key])
		}
	}
	for _, m := range set.Body.Messages {
		if b.people[channelName] == nil {
			b.people[channelName] = map[uint64]string{}
		}
		was, known := b.people[channelName][m.N]
		fine := was != "lapsed" && (was != "answered" || m.State == channel.Answered) && known != (m.Row == "M1")
		w.check(messageKept, fine, "message %d in #%s was %q, and is %s (%s)", m.N, channelName, was, m.State, m.Row)
		b.people[channelName][m.N] = string(m.State)
	}
	for i := range set.Body.Participants { // who is new, or comes again, is told everything
		c, name := w.truth.Channels.ByID[channel.ChannelID(channelName)], set.Body.Participants[i].Agent
		if c == nil || c.Participants[name] == nil || c.Participants[name].Gone {
			delete(b.given, string(name)+" in "+channelName)
		}
	}
}

// checkMoves: at most one agent has the turn, and a turn never ends by the word of another agent.
func (w *world) checkMoves(channelName string, ch team.Change) {
	b, set := w.book, ch.Body.Turn
	c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
	if ch.From == ch.To || c == nil {
		return
	}
	if b.states[channelName] == nil {
		b.states[channelName] = map[string]string{}
	}
	b.states[channelName][set.Agent] = ch.To
	var hold []string
	for name, state := range b.states[channelName] {
		if state == "ACTIVE" || state == "WAITING" {
			hold = append(hold, name)
		}
	}
	slices.Sort(hold)
	w.check(oneSpeaker, len(hold) < 2, "%v have the turn in #%s", hold, channelName)
	switch ch.Trigger {
	case "granted":
		b.turns[set.Agent+" in "+channelName]++
	case string(channel.Completed), string(channel.CompletedAlone), string(channel.PassedOn):
		w.check(fenceOfTurns, b.gaveUp[fmt.Sprintf("%d in %s", c.Head.Turn, channelName)],
			"turn %d of %s in #%s ends (%s), and %s has not said so in it", c.Head.Turn, set.Agent, channelName, ch.Trigger, set.Agent)
	}
}

// checkPost: what is said has the next number, was said, is there once, in its speaker's order,
// and counts for the turn in which it was said, or for none.
func (w *world) checkPost(channelName string, ch team.Change, post *channel.Post) {
	b, set := w.book, ch.Body.Turn
	c := w.truth.Channels.ByID[channel.ChannelID(channelName)]
	b.posts[channelName] = append(b.posts[channelName], set.Text)
	n := uint64(len(b.posts[channelName]))
	w.check(saidOnce, post.N == n, "#%s: message %d comes after %d", channelName, post.N, n-1)
	w.check(saidOnce, post.Kind == channel.OfLate || !strings.HasSuffix(strings.TrimSpace(set.Text), "TURN_COMPLETE"), "#%s: message %d shows the marker: %q", channelName, n, set.Text)
	w.check(saidOnce, post.By != w.lead() || !shows(set.Text) || w.crew.uuid[w.crew.lead] != set.Session, "#%s: message %d shows what the lead says of its team: %q", channelName, n, set.Text)
	if post.Kind == channel.OfTurn {
		w.check(fenceOfTurns, string(c.Head.Holder) == post.By && c.Head.Turn == post.Turn, "#%s: message %d is said by %s in turn %d, and %s has turn %d", channelName, n, post.By, post.Turn, c.Head.Holder, c.Head.Turn)
	}
	if head := set.Body.Head; post.Kind == channel.OfLate && head != nil {
		w.check(fenceOfTurns, ch.From == ch.To && head.Holder == c.Head.Holder && head.Turn == c.Head.Turn && head.Lease.Ends.Equal(c.Head.Lease.Ends),
			"#%s: message %d of %s is late, and moves something: %+v -> %+v", channelName, n, post.By, c.Head, *head)
	}
	for _, name := range isWord.FindAllString(set.Text, -1) {
		word := b.words[name]
		if word == nil {
			w.broken(saidOnce, "#%s: message %d has %s, but no one has said it", channelName, n, name)
			return
		}
		word.times++
		w.check(saidOnce, word.times == 1, "%s is in the journal twice: %s, and message %d in #%s", name, word.at, n, channelName)
		if from := word.session; from != "" { // what one agent says is there in the order in which it said it
			w.check(saidOnce, word.n > b.last[from], "#%s: message %d has %s, and something that %s said after it is there already", channelName, n, name, from)
			b.last[from] = word.n
		}
		word.at = fmt.Sprintf("message %d in #%s", n, channelName)
		w.crew.spoken[name] = heardAs{session: set.Session}
		w.check(saidOnce, word.by == post.By, "%s was said by %s, and the journal says %s", name, word.by, post.By)
		if e := b.errand[word.key]; e.known && word.must {
			own := e.re == 0 && post.Kind == channel.OfAside      // the agent that has the turn, if it was asked itself, answers under its turn
			none := post.Kind == channel.OfLate && post.Turn == 0 // its turn was over when we came back, and it moves nothing
			w.check(fenceOfTurns, e.channel == channelName && (e.turn == post.Turn || none) && (e.re == post.Re || own),
				"%s answers %s (turn %d, message %d), and the journal has it in #%s of turn %d, message %d", name, word.key, e.turn, e.re, channelName, post.Turn, post.Re)
		}
	}
}

// checkTalks runs when everything is done: no deadline has passed, and no session waits for text
// that will not come.
func (w *world) checkTalks() {
	for _, id := range w.truth.ChannelIDs() {
		about := w.truth.Channels.Deadline(channel.ChannelID(id))
		w.check(turnComes, about.At.IsZero() || w.now().Before(about.At.Add(calmFor)), "#%s: its %s (%d) ran out at %v without an effect", id, about.What, about.N, about.At)
	}
	for name, a := range w.truth.Agents {
		if s := a.Session; s.ServesChannels() && s.Delivery == nil {
			w.broken(toldOnce, "%s has a session for channels, %s, and nothing to say in it", name, s.ID)
		}
	}
}

// checkWords runs at the end of a day: what the agents have said while an engine listened is in the
// journal.
func (w *world) checkWords() {
	for name, word := range w.book.words {
		s := w.sessions[word.session]
		switch {
		case !word.must || word.times == 1:
		case s == nil:
			w.broken(saidOnce, "%s of %s was taken, and is not in the journal", name, word.by)
		case s.isOver() && !s.ending.Lost && !s.unread:
			w.broken(saidOnce, "%s said %s to %s, and it is not in the journal", s.id, name, word.key)
		}
	}
}

// openFor lists people's messages that no agent has answered, in a channel.
func (b *book) openFor(channel string) (open []uint64) {
	for n, state := range b.people[channel] {
		if state != "answered" && state != "lapsed" {
			open = append(open, n)
		}
	}
	slices.Sort(open)
	return open
}
