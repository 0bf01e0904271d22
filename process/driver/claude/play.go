package claude

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	greetingID  = "fairlead-greeting"
	interruptID = "fairlead-interrupt"
	modeID      = "fairlead-mode"

	// greetingPatience is the time limit for the response to initialize; the program starts its tool
	// servers meanwhile. After it, prompts are sent anyway, because a program may not know initialize.
	greetingPatience = 30 * time.Second

	// cancelPatience is how long a cancelled answer may take to end.
	cancelPatience = 5 * time.Second

	// backgroundPatience is how long the session waits for background subagents after its last answer:
	// as long as the program itself would wait.
	backgroundPatience = 10 * time.Minute

	// afterwordPatience is how long, after they are done, the agent may take to begin its report.
	afterwordPatience = 30 * time.Second
)

// runningSession is a running session.
type runningSession struct {
	part  adapter.Part
	stage *adapter.Stage
	child *adapter.Child
	queue adapter.PromptQueue
	*translator
	steering

	prompts           int // prompts sent so far
	ready             bool
	mine              string // ID of the prompt that is being answered; empty: none
	listened          int64  // value of the last listening event; -1: none since the last answer
	cancelled         bool
	waitsForSubagents bool         // everything is answered; waiting for background subagents
	last              *driver.Stop // end of the last answer
	refused           []string     // calls denied in earlier answers
	timer             *time.Timer  // for the current wait
}

// Play runs a session with a program.
func (Driver) Play(ctx context.Context, part adapter.Part, stage *adapter.Stage) driver.Stop {
	program := known(part.Command)
	child, err := stage.Start(program.command(part))
	if err != nil {
		return driver.Stop{Reason: adapter.ReasonFailed, Detail: err.Error()}
	}
	g := &runningSession{
		part: part, stage: stage, child: child, listened: -1,
		translator: newHearing(stage.Out, program, part),
		timer:      time.NewTimer(greetingPatience),
	}
	defer g.timer.Stop()
	g.send(map[string]any{"type": "control_request", "request_id": greetingID, "request": map[string]any{"subtype": "initialize"}})
	for {
		orders := stage.Orders
		if g.queue.Full() || g.queue.Closed() {
			orders = nil
		}
		var stop *driver.Stop
		select {
		case o, ok := <-orders:
			stop = g.order(o, ok)
		case l, ok := <-child.Lines():
			if !ok {
				return g.died()
			}
			stop = g.handleLine(l)
		case <-g.timer.C:
			stop = g.late()
		case <-stage.Stop:
			return driver.Stop{Reason: adapter.ReasonTerminated}
		case <-ctx.Done():
			return driver.Stop{Reason: adapter.ReasonTerminated}
		}
		if stop == nil {
			stop = g.next()
		}
		if stop != nil {
			return *stop
		}
	}
}

// send sends a message. Errors are ignored here: the program has died or is about to.
func (g *runningSession) send(message any) { _ = g.child.Send(message) }

// order handles one order.
func (g *runningSession) order(o speech.Order, ok bool) *driver.Stop {
	g.queue.Take(o, ok)
	switch {
	case !ok:
		g.refuseAll()
	case o.Type == speech.OrderAnswer:
		g.answered(o)
	case o.Type == speech.OrderSteer:
		g.steer(o)
	case o.Type == speech.OrderCancel:
		if g.mine == "" {
			return &driver.Stop{Reason: adapter.ReasonCancelled}
		}
		g.cancelled = true
		g.interrupt()
		g.timer.Reset(cancelPatience)
	}
	return nil
}

func (g *runningSession) interrupt() {
	g.send(map[string]any{"type": "control_request", "request_id": interruptID, "request": map[string]any{"subtype": "interrupt"}})
}

// answered sends the answer to an open question.
func (g *runningSession) answered(o speech.Order) {
	if response := g.answer(o); response != nil {
		g.send(response)
		g.stage.Out.Tell(driver.Fact{Kind: driver.PermissionAnswered, Ask: driver.Ask{ID: o.ID}, Text: o.Option})
	}
}

// refuseAll refuses all open questions, because no answers will come.
func (g *runningSession) refuseAll() {
	for _, id := range slices.Sorted(maps.Keys(g.open)) {
		g.answered(speech.Order{ID: g.open[id].event.ID, Option: optionDeny})
	}
}

// handleLine handles one line and its consequences.
func (g *runningSession) handleLine(l adapter.Line) *driver.Stop {
	raw := g.child.Heard(l)
	if raw == nil {
		return nil
	}
	h := g.line(raw, g.mine)
	for _, message := range h.send {
		g.send(message)
	}
	if h.ready && !g.ready {
		g.ready = true
		if !g.cancelled {
			g.timer.Stop()
		}
	}
	if h.taken != "" {
		g.taken(h.taken)
	}
	if h.began && g.cancelled {
		g.interrupt() // an interrupt before the answer has begun was seen to be lost
	}
	if g.queue.Closed() {
		g.refuseAll()
	}
	if g.waitsForSubagents && g.background == 0 {
		g.waitsForSubagents = !h.after
		g.timer.Reset(afterwordPatience)
	}
	if !h.ended {
		return nil
	}
	g.mine = ""
	if g.refused = append(g.refused, h.denied...); len(g.refused) > adapter.DeniedMax {
		g.refused = g.refused[:adapter.DeniedMax]
	}
	if stop := g.ended(h.stop); stop != nil {
		stop.Detail = adapter.WithDenied(stop.Detail, g.refused)
		return stop
	}
	g.goOn()
	return nil
}

// ended handles the end of an answer. It returns nil if the session continues.
func (g *runningSession) ended(stop driver.Stop) *driver.Stop {
	switch {
	case g.cancelled:
		return &driver.Stop{Reason: adapter.ReasonCancelled, Detail: stop.Detail}
	case stop.OK:
	case stop.Reason == reasonRefused || stop.Reason == reasonTurns:
		if !g.part.TakesPrompts() {
			return &stop
		}
		g.Notice(stop.Detail) // the next prompt may succeed
		stop = driver.Stop{OK: true, Reason: adapter.ReasonCompleted}
	default:
		return &stop
	}
	g.last = &stop
	if g.waitsForSubagents = !g.part.TakesPrompts() && g.background > 0; g.waitsForSubagents {
		g.timer.Reset(backgroundPatience)
	}
	return nil
}

// next sends the next prompt, or reports that the session waits for one, or ends the session.
func (g *runningSession) next() *driver.Stop {
	if !g.ready || g.mine != "" || g.cancelled {
		return nil
	}
	if text, ok := g.queue.Next(); ok {
		g.prompts, g.prompted, g.waitsForSubagents = g.prompts+1, true, false
		g.mine, g.listened, g.last = g.messageID(strconv.Itoa(g.prompts)), -1, nil
		g.send(prompt(text, adapter.ReadImages(g.stage.Out, g.queue.Images()), g.mine))
		return nil
	}
	switch {
	case g.last != nil && !g.part.TakesPrompts():
		if g.waitsForSubagents {
			return nil
		}
		return g.completed()
	case g.queue.Over():
		return g.completed()
	case g.listened != g.queue.Answered() && g.queue.Answered() > 0: // the first order may still be on its way
		g.listened = g.queue.Answered()
		g.stage.Out.Tell(driver.Fact{Kind: driver.Listening, Input: g.listened})
	}
	return nil
}

func (g *runningSession) completed() *driver.Stop {
	return &driver.Stop{
		OK: true, Reason: adapter.ReasonCompleted, Detail: adapter.WithDenied("", g.refused), ContextPercent: g.context,
		Alone: g.heard.Alone(),
	}
}

// late handles a timeout.
func (g *runningSession) late() *driver.Stop {
	switch {
	case g.cancelled:
		return &driver.Stop{Reason: adapter.ReasonCancelled, Detail: "the program did not end its answer in time; it was stopped"}
	case !g.ready:
		g.ready = true
		g.stage.Out.Tell(driver.Fact{
			Kind: driver.Faulted,
			Text: fmt.Sprintf("the program did not answer initialize within %s; prompts are sent anyway", greetingPatience),
		})
	case g.unreadTexts: // the daemon gives the texts to the next session
		g.mine, g.unreadTexts, g.sent = "", false, nil
	case g.waitsForSubagents:
		g.waitsForSubagents = false
		if g.background > 0 {
			g.Notice(fmt.Sprintf("subagents still running after %s are ended with the session", backgroundPatience))
		}
	}
	return nil
}

// died handles the end of the program's output. An incomplete answer does not count.
func (g *runningSession) died() driver.Stop {
	ended := g.child.End()
	switch {
	case g.cancelled:
		return driver.Stop{Reason: adapter.ReasonCancelled}
	case g.last != nil && (g.mine == "" || g.unreadTexts) && !g.part.TakesPrompts():
		return *g.completed()
	case g.queue.Over() && g.mine == "" && g.ready:
		return *g.completed()
	}
	stop := driver.Stop{Reason: g.endReason(), Detail: "it did not report the end of its answer: " + ended.String()}
	if g.part.Resume != "" && g.named.ID == "" && resumeWords.MatchString(ended.LastWords) {
		stop.Reason = session.ReasonNotResumed
	}
	return stop
}

// prompt is the message that contains a prompt.
func prompt(text string, images []adapter.Image, id string) any {
	var content any = text
	if len(images) > 0 {
		parts := []any{map[string]any{"type": "text", "text": text}}
		for _, one := range images {
			parts = append(parts,
				map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": one.Type, "data": one.Data}})
		}
		content = parts
	}
	return map[string]any{
		"type": "user", "uuid": id, "session_id": "", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": content},
	}
}

// endReason is the reason for the end of a program that died: its conversation can be resumed if it
// has one.
func (g *runningSession) endReason() string {
	if g.named.ID != "" {
		return session.ReasonDied
	}
	return adapter.ReasonFailed
}

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
		g.stage.Out.Tell(driver.Fact{Kind: driver.TextRead, Ask: driver.Ask{ID: one.id}, Text: one.text})
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
