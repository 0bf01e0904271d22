package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	// greetingTime is the time limit for the answer to initialize. Programs load a runtime, and some
	// query their provider; 15 s were measured on a busy machine.
	greetingTime = 90 * time.Second

	// openingTime is the time limit for opening a conversation, including the start of the program's own
	// servers and the replay of an old conversation.
	openingTime = 3 * time.Minute

	// cancelTime is how long an answer may continue after it was cancelled. It is shorter than the time
	// that an adapter has after SIGTERM.
	cancelTime = 5 * time.Second

	// patience is how long a tool call waits for its arguments before it is reported without them.
	patience = 2 * time.Second
)

// limits are the times above; tests use shorter ones.
type limits struct{ greeting, opening, cancel, patience time.Duration }

// play is one session with a program. One goroutine owns it.
type play struct {
	part   adapter.Part
	stage  *adapter.Stage
	child  *adapter.Child
	known  program // what is known about this program
	limits limits

	queue  adapter.PromptQueue
	orders <-chan speech.Order // nil after they have ended
	stop   <-chan struct{}     // nil after it was handled

	lastCall uint64
	waiting  uint64   // ID of the pending request; 0: none
	reply    *message // its response
	gone     bool     // the program's output has ended
	broken   error    // why the program accepts no more input
	leaving  string   // why the session is ending: cancelled, terminated; empty: it is not
	deadline time.Time

	conversation conversation
	opened       bool // prompts can be sent
	resumed      bool
	replaying    bool

	heard      adapter.Answers
	answers    int // number of answers begun
	calls      map[string]*trackedCall
	unreported []*trackedCall // in order
	asks       []*ask         // in order
	lastAsk    int
	message    string // ID of the message whose chunks are arriving
	words      string // beginning of the latest message
	plan       string
	faults     map[string]int

	context int     // how full the model's context is, in percent; 0: unknown
	here    usage   // tokens of the current answer so far
	paid    float64 // cost of the conversation so far
	priced  bool

	wantMode string // the mode that was set; empty: none

	denied  []string
	denials int
	before  int // number of denials before the current answer
}

// Play runs one session: initialize, the conversation, prompts and answers.
func (d Driver) Play(ctx context.Context, part adapter.Part, stage *adapter.Stage) driver.Stop {
	p := newPlay(d, part, stage)
	if end := p.open(ctx); end != nil {
		return *end
	}
	return p.converse(ctx)
}

func newPlay(d Driver, part adapter.Part, stage *adapter.Stage) *play {
	return &play{
		part: part, stage: stage, known: knownProgram(part.Command), limits: d.times(),
		heard:  adapter.Answers{Table: providerErrors},
		orders: stage.Orders, stop: stage.Stop, calls: make(map[string]*trackedCall),
	}
}

// converse sends one prompt after the other until there are no more.
func (p *play) converse(ctx context.Context) driver.Stop {
	first, listening := true, false
	for {
		if end := p.over(ctx); end != nil {
			return *end
		}
		text, ok := p.queue.Next()
		switch {
		case ok && strings.TrimSpace(text) == "" && !p.part.TakesPrompts():
			return *failed("there is nothing to do; give the agent a session_prompt")
		case ok && strings.TrimSpace(text) == "": // it was started to wait for input
		case ok:
			if end := p.prompt(ctx, text); end != nil {
				return *end
			}
			first, listening = false, false
		case first && !p.part.TakesPrompts() && p.queue.Over():
			return *failed("there was no prompt; give the agent a session_prompt")
		case !first && !p.part.TakesPrompts(), p.queue.Over():
			return p.completed()
		default:
			if p.part.TakesPrompts() && !listening {
				p.stage.Out.Tell(driver.Fact{Kind: driver.Listening, Input: p.queue.Answered()})
				listening = true
			}
			p.step(ctx)
		}
	}
}

// completed ends a session in which every prompt was answered. Denied calls are listed, because the
// work may be incomplete without them.
func (p *play) completed() driver.Stop {
	return driver.Stop{
		OK: true, Reason: adapter.ReasonCompleted, Detail: p.denialWords(0), ContextPercent: p.context,
		Alone: p.heard.Alone(),
	}
}

// denialWords names the calls that were denied after the first ones; empty if there were none.
func (p *play) denialWords(after int) string {
	if p.denials == after {
		return ""
	}
	text := "denied: " + strings.Join(p.denied[min(after, len(p.denied)):], "; ")
	if p.denials > len(p.denied) {
		text += "; and more"
	}
	return text
}

// prompt sends one prompt and handles its answer to the end. It returns nil if the conversation
// continues.
func (p *play) prompt(ctx context.Context, text string) *driver.Stop {
	p.answers++
	p.heard.Begin()
	p.before, p.here, p.message, p.words = p.denials, usage{}, "", ""
	blocks := []sdk.ContentBlock{sdk.TextBlock(text)}
	if p.conversation.images {
		for _, one := range adapter.ReadImages(p.stage.Out, p.queue.Images()) {
			blocks = append(blocks, sdk.ImageBlock(base64.StdEncoding.EncodeToString(one.Data), one.Type))
		}
	}
	m, end := p.ask(ctx, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{SessionId: sdk.SessionId(p.conversation.session), Prompt: blocks},
		0)
	p.tellCalls()
	p.stage.Out.EndMessage()
	p.withdraw(nil)
	of := objectOf(m.result)
	p.spent(answerUsage(of)) // also of a cancelled answer: its tokens were used
	switch {
	case end != nil:
		return end
	case m.err != nil:
		return p.refused(m.err)
	}
	return p.answered(of.text("stopReason"))
}

// answered decides what the end of an answer means. A program may end an answer with "cancelled"
// because a call was denied, and some report an error as the agent's words.
func (p *play) answered(reason string) *driver.Stop {
	stop := &driver.Stop{Reason: reason}
	switch reason {
	case string(sdk.StopReasonEndTurn):
		if p.heard.EndsWithError(p.words) {
			return p.refused(&rpcError{Message: p.words})
		}
		end := p.heard.Failure()
		if end != nil && end.Reason == session.ReasonRateLimited || end != nil && end.Reason == session.ReasonProviderError {
			end = p.refused(&rpcError{Message: end.Detail})
			if end.Reason == adapter.ReasonFailed {
				end.Reason = session.ReasonProviderError
			}
		}
		return end
	case string(sdk.StopReasonCancelled):
		if p.denials > p.before {
			stop.Reason, stop.Detail = "denied", p.denialWords(p.before)
		}
	case string(sdk.StopReasonRefusal):
		stop.Reason, stop.Detail = "refused", "the program refuses to continue"
	case string(sdk.StopReasonMaxTokens), string(sdk.StopReasonMaxTurnRequests):
	case "":
		stop = failed("the answer ended without a stop reason")
	default:
		stop = failed("the answer ended with " + clip(oneLine(reason), 100))
	}
	if p.part.TakesPrompts() && stop.Reason != adapter.ReasonFailed {
		p.stage.Out.Tell(driver.Fact{Kind: driver.Said, Tool: "fairlead", Text: "the answer was not finished: " + stop.Reason})
		return nil
	}
	return stop
}

// refused turns an error into the end of the session. It reports a rate limit as such.
func (p *play) refused(e *rpcError) *driver.Stop {
	words := oneLine(e.words())
	if until, limited := rateLimit(e, time.Now()); limited {
		p.stage.Out.Tell(driver.Fact{Kind: driver.RateLimited, Until: until, Text: words})
		return &driver.Stop{Reason: session.ReasonRateLimited, Detail: words}
	}
	stop := failed(words)
	switch {
	case e.keyRefused():
		stop.Reason = session.ReasonNotSignedIn
	case contextWords.MatchString(e.words()):
		stop.Reason = session.ReasonContextExhausted
	}
	return stop
}

// keyRefused reports whether the provider has rejected the program's key.
func (e *rpcError) keyRefused() bool {
	of := objectOf(e.Data)
	status, _ := of.number("status")
	if code, ok := of.number("statusCode"); ok {
		status = code
	}
	return driver.KeyRefused(int(max(0, min(status, 999))), e.Message+" "+string(e.Data))
}

func failed(detail string) *driver.Stop {
	return &driver.Stop{Reason: adapter.ReasonFailed, Detail: detail}
}

// ask sends one request and waits for the response, at most for the duration within (0: no limit).
// If the session ends meanwhile, end says how.
func (p *play) ask(ctx context.Context, method string, params any, within time.Duration) (m message, end *driver.Stop) {
	p.lastCall++
	p.waiting, p.reply = p.lastCall, nil
	p.send(call{"2.0", p.waiting, method, params})
	var late time.Time
	if within > 0 {
		late = time.Now().Add(within)
	}
	for p.reply == nil {
		if end := p.over(ctx); end != nil {
			return m, end
		}
		if !late.IsZero() && !time.Now().Before(late) {
			return m, failed("the program did not answer " + method + " within " + within.String() +
				"; see what it printed, and start it by hand to see what it waits for")
		}
		p.stepUntil(ctx, late)
	}
	m = *p.reply
	if p.leaving != "" { // this response was awaited only because the session is ending
		return m, p.left()
	}
	return m, nil
}

// over reports whether the session cannot continue, and how it ended.
func (p *play) over(ctx context.Context) *driver.Stop {
	switch {
	case ctx.Err() != nil:
		return &driver.Stop{Reason: adapter.ReasonTerminated, Detail: "the session's output is no longer read"}
	case p.leaving != "" && (p.gone || p.waiting == 0 || p.late()):
		return p.left()
	case p.gone && p.waiting == 0:
		return failed(p.child.End().String() + "; it was not asked to end")
	case p.gone && p.opened:
		// its conversation can be resumed
		return &driver.Stop{Reason: session.ReasonDied, Detail: p.child.End().String() + "; it had not finished"}
	case p.gone:
		return failed(p.child.End().String() + "; it had not finished")
	case p.broken != nil && p.late():
		return failed(p.broken.Error() + "; it had not finished")
	}
	return nil
}

// late reports whether the program's time to end by itself has passed.
func (p *play) late() bool { return !p.deadline.IsZero() && !time.Now().Before(p.deadline) }

func (p *play) left() *driver.Stop { return &driver.Stop{Reason: p.leaving} }

func (p *play) send(v any) {
	if err := p.child.Send(v); err != nil && p.broken == nil {
		p.broken = err // keep reading its output, which may say why it ended
		if p.deadline.IsZero() {
			p.deadline = time.Now().Add(p.limits.cancel)
		}
	}
}

func (p *play) step(ctx context.Context) { p.stepUntil(ctx, time.Time{}) }

// stepUntil handles the next event: a line, an order, a stop request, or a timeout.
func (p *play) stepUntil(ctx context.Context, late time.Time) {
	next := late
	for _, t := range []time.Time{p.deadline, p.patienceEnds()} {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	var timer <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		timer = t.C
	}
	orders := p.orders
	if p.queue.Full() {
		orders = nil
	}
	var lines <-chan adapter.Line
	if p.child != nil {
		lines = p.child.Lines()
	}
	select {
	case <-ctx.Done():
	case o, ok := <-orders:
		p.order(o, ok)
	case l, ok := <-lines:
		if !ok {
			p.gone = true
		} else if raw := p.child.Heard(l); raw != nil {
			p.receive(raw)
		}
	case <-p.stop:
		p.stop = nil
		p.leave(adapter.ReasonTerminated)
	case <-timer:
		p.tellLate()
	}
}

// order handles one order.
func (p *play) order(o speech.Order, ok bool) {
	p.queue.Take(o, ok)
	switch {
	case !ok:
		p.orders = nil
	case o.Type == speech.OrderAnswer:
		p.answer(o)
	case o.Type == speech.OrderCancel:
		p.leave(adapter.ReasonCancelled)
	}
}

// leave ends the session: it cancels the current answer and withdraws open questions. The program
// gets a short time to end the answer itself.
func (p *play) leave(why string) {
	if p.leaving != "" {
		return
	}
	p.leaving, p.deadline = why, time.Now().Add(p.limits.cancel)
	if p.conversation.session != "" && p.waiting != 0 {
		p.send(notice{"2.0", sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(p.conversation.session)}})
	} else {
		p.waiting = 0 // there is no answer that could end normally
	}
	p.withdraw(nil)
}

// patienceEnds is when the oldest incomplete call is reported without its missing parts.
func (p *play) patienceEnds() time.Time {
	if len(p.unreported) == 0 {
		return time.Time{}
	}
	return p.unreported[0].since.Add(p.limits.patience)
}

func (p *play) tellLate() {
	for len(p.unreported) > 0 && !time.Now().Before(p.patienceEnds()) {
		p.tellCall(p.unreported[0], nil)
	}
}

// Messages that the driver sends.
type (
	call struct {
		JSONRPC string `json:"jsonrpc"`
		ID      uint64 `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	notice struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	reply struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}
	refusal struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}
)
