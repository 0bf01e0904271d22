package claude

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

const (
	steersMax = 64 // texts that the program has not read; the daemon queues at most 16

	// steerPatience is how long the program may take to begin with a text that it did not read
	// during the answer. A program begins at once. Without a limit, a program that lost the text
	// would keep the session open.
	steerPatience = 10 * time.Second
)

// steering holds the texts that the program should read during an answer. They are only sent to a
// program that has confirmed a prompt. Otherwise it would be unknown whether a text was read.
type steering struct {
	confirms    bool   // the program reports when it takes a message
	waiting     []text // not sent yet
	sent        []text // sent, not confirmed
	unreadTexts bool   // the answer is over, and the program is to begin with the first text of sent
}

// text is one of these texts.
type text struct {
	message string // ID of the message to the program
	id      string // ID of the order
	text    string
}

// steer takes a text. It is read before the program's next request to its model.
func (g *runningSession) steer(o speech.Order) {
	switch {
	case o.ID == "" || g.part.TakesPrompts():
		return // without an ID nothing waits for its confirmation; see Capabilities
	case len(g.waiting)+len(g.sent) >= steersMax:
		g.Fault(fmt.Sprintf("a text was not passed on to the program: it has not read %d others yet", steersMax), nil)
		return
	}
	g.waiting = append(g.waiting, text{message: g.messageID("steer " + o.ID), id: o.ID, text: o.Text})
	g.pass()
}

// pass sends the waiting texts if an answer is in progress.
func (g *runningSession) pass() {
	if !g.confirms || g.mine == "" || g.cancelled {
		return
	}
	for _, one := range g.waiting {
		g.send(prompt(one.text, nil, one.message))
	}
	g.sent, g.waiting = append(g.sent, g.waiting...), nil
}

// taken handles the program's confirmation that it has taken a message.
func (g *runningSession) taken(message string) {
	if message == g.mine {
		g.confirms = true
	}
	i := slices.IndexFunc(g.sent, func(one text) bool { return one.message == message })
	if i >= 0 {
		one := g.sent[i]
		g.sent = slices.Delete(g.sent, i, i+1)
		g.stage.Out.Tell(speech.Event{Type: driver.TextRead, ID: one.id, Text: one.text})
		if g.unreadTexts {
			g.unreadTexts = false
			g.timer.Stop()
		}
	}
	g.pass()
}

// goOn continues after an answer if the program has not read all texts: it begins a new answer with them itself.
func (g *runningSession) goOn() {
	if len(g.sent) == 0 {
		return
	}
	g.mine, g.unreadTexts, g.waitsForSubagents = g.sent[0].message, true, false
	g.timer.Reset(steerPatience)
}

// messageID returns the ID for a message, a UUID like the program's own. The same message of the same session
// always gets the same ID.
func (g *runningSession) messageID(message string) string {
	b := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", g.part.Name, g.part.Session, g.part.Attempt, message))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
