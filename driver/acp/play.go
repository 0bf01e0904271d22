package acp

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

const (
	// greetingTime is how long a program has to answer initialize: real ones load a runtime and
	// some ask their provider for news; 15 s were seen on a busy machine.
	greetingTime = 90 * time.Second

	// openingTime is how long it has to open a conversation, start its own servers and tell an old
	// conversation again.
	openingTime = 3 * time.Minute

	// cancelTime is how long an answer may go on after it was cancelled. It is shorter than what an
	// adapter has after SIGTERM.
	cancelTime = 5 * time.Second

	// patience is how long a call of a tool waits for its arguments before it is told without them.
	patience = 2 * time.Second
)

// limits are the times above; tests have shorter ones.
type limits struct{ greeting, opening, cancel, patience time.Duration }

// play is one session with a program. One goroutine owns it.
type play struct {
	part   adapter.Part
	stage  *adapter.Stage
	child  *adapter.Child
	known  program // what is known of this program
	host   Host
	limits limits

	told   adapter.Told
	orders <-chan speech.Order // nil once they have ended
	stop   <-chan struct{}     // nil once it was heard

	lastCall uint64
	waiting  uint64   // the request of ours that is under way; 0: none
	reply    *message // the answer to it
	gone     bool     // the program's output has ended
	broken   error    // it takes nothing any more
	leaving  string   // why the session ends: cancelled, terminated; empty: it does not
	deadline time.Time

	talk      talk
	opened    bool // it can begin
	resumed   bool
	replaying bool

	answers int // how many were begun
	calls   map[string]*trackedCall
	untold  []*trackedCall // in order
	asks    []*ask         // in order
	lastAsk int
	message string // whose chunks are coming
	words   string // the beginning of the latest message
	plan    string
	faults  map[string]int

	here   usage   // what the answer under way took so far
	paid   float64 // what the conversation has cost
	priced bool

	wantMode string // the mode that was set; empty: none was

	denied     []string
	denials    int
	deniedHere bool // in the answer under way
}

// Play holds one session: the greeting, the conversation, prompts and answers.
func (d Driver) Play(ctx context.Context, part adapter.Part, stage *adapter.Stage) driver.Stop {
	p := newPlay(d, part, stage)
	if end := p.open(ctx); end != nil {
		return *end
	}
	return p.converse(ctx)
}

func newPlay(d Driver, part adapter.Part, stage *adapter.Stage) *play {
	return &play{
		part: part, stage: stage, known: knownProgram(part.Command), host: d.Host, limits: d.times(),
		orders: stage.Orders, stop: stage.Stop, calls: make(map[string]*trackedCall),
	}
}

// converse gives prompt after prompt until there is nothing more to say.
func (p *play) converse(ctx context.Context) driver.Stop {
	first, listening := true, false
	for {
		if end := p.over(ctx); end != nil {
			return *end
		}
		text, ok := p.told.Next()
		switch {
		case ok && strings.TrimSpace(text) == "" && !p.part.Talks():
			return failed("there is nothing to be done: give the agent a session_prompt")
		case ok && strings.TrimSpace(text) == "": // it is started to listen
		case ok:
			if end := p.prompt(ctx, text); end != nil {
				return *end
			}
			first, listening = false, false
		case first && !p.part.Talks() && p.told.Over():
			return failed("nobody said what is to be done")
		case !first && !p.part.Talks(), p.told.Over():
			return p.completed()
		default:
			if p.part.Talks() && !listening {
				p.stage.Out.Tell(speech.Event{Type: driver.Listening, Input: p.told.Answered()})
				listening = true
			}
			p.step(ctx)
		}
	}
}

// completed is the end of a session in which all was answered. Who was denied something is told so:
// the work may lack it.
func (p *play) completed() driver.Stop {
	return driver.Stop{OK: true, Reason: "completed", Detail: p.denialWords()}
}

// denialWords names the calls that were denied; empty where none was.
func (p *play) denialWords() string {
	if p.denials == 0 {
		return ""
	}
	text := "denied: " + strings.Join(p.denied, "; ")
	if p.denials > len(p.denied) {
		text += "; and more"
	}
	return text
}

// prompt gives one prompt and hears its answer to the end. nil: the conversation goes on.
func (p *play) prompt(ctx context.Context, text string) *driver.Stop {
	p.answers++
	p.deniedHere, p.here, p.message, p.words = false, usage{}, "", ""
	m, end := p.ask(ctx, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
		SessionId: sdk.SessionId(p.talk.session), Prompt: []sdk.ContentBlock{sdk.TextBlock(text)},
	}, 0)
	p.tellCalls()
	p.stage.Out.Hush()
	p.withdraw(nil)
	of := objectOf(m.result)
	p.spent(readUsage(of.object("usage"))) // also where it was cancelled: it was used
	switch {
	case end != nil:
		return end
	case m.err != nil:
		return p.refused(m.err)
	}
	return p.answered(of.text("stopReason"))
}

// answered judges why an answer ended. A program that was denied something may end with cancelled,
// and one that has an error may tell it as its words.
func (p *play) answered(reason string) *driver.Stop {
	stop := driver.Stop{Reason: reason, Detail: p.denialWords()}
	switch reason {
	case string(sdk.StopReasonEndTurn):
		if !errorWords().MatchString(p.words) {
			return nil
		}
		return p.refused(&rpcError{Message: p.words})
	case string(sdk.StopReasonCancelled):
		if p.deniedHere {
			stop.Reason = "denied"
		}
	case string(sdk.StopReasonRefusal):
		stop.Reason, stop.Detail = "refused", "the program refuses to go on"
	case string(sdk.StopReasonMaxTokens), string(sdk.StopReasonMaxTurnRequests):
	case "":
		stop = failed("the answer ended and did not say how")
	default:
		stop = failed("the answer ended with " + clip(oneLine(reason), 100))
	}
	if p.part.Talks() && stop.Reason != "failed" {
		p.stage.Out.Tell(speech.Event{Type: driver.Said, Tool: "fairlead", Text: "the answer was not finished: " + stop.Reason})
		return nil
	}
	return &stop
}

var errorWords = adapter.Words(`^\s*\[?API Error\b`)

// refused is the end that an error makes. Where the provider takes no more for now, that is told.
func (p *play) refused(e *rpcError) *driver.Stop {
	words := oneLine(e.words())
	if until, limited := rateLimit(e, time.Now()); limited {
		p.stage.Out.Tell(speech.Event{Type: driver.RateLimited, Until: until, Text: words})
		return &driver.Stop{Reason: driver.ReasonRateLimited, Detail: words}
	}
	stop := failed(words)
	if e.keyRefused() {
		stop.Reason = driver.ReasonNotSignedIn
	}
	return &stop
}

// keyRefused says whether an error is a provider that refuses the program's key.
func (e *rpcError) keyRefused() bool {
	of := objectOf(e.Data)
	status, _ := of.number("status")
	if code, ok := of.number("statusCode"); ok {
		status = code
	}
	return driver.KeyRefused(int(max(0, min(status, 999))), e.Message+" "+string(e.Data))
}

func failed(detail string) driver.Stop { return driver.Stop{Reason: "failed", Detail: detail} }

// ask sends one request and lives until its answer is there. within is how long that may take; 0: for
// ever. Where the session ends meanwhile, end says how.
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
			stop := failed("the program did not answer " + method + " within " + within.String() + "; see what it printed, and start it by hand to see what it waits for")
			return m, &stop
		}
		p.stepUntil(ctx, late)
	}
	m = *p.reply
	if p.leaving != "" { // it was waited for because of that
		return m, p.left()
	}
	return m, nil
}

// over says whether the session cannot go on, and how it ended.
func (p *play) over(ctx context.Context) *driver.Stop {
	var stop driver.Stop
	switch {
	case ctx.Err() != nil:
		stop = driver.Stop{Reason: "terminated", Detail: "nobody listens any more"}
	case p.leaving != "" && (p.gone || p.waiting == 0 || p.late()):
		return p.left()
	case p.gone && p.waiting == 0:
		stop = failed(p.child.End().String() + "; nobody had asked it to")
	case p.gone && p.opened:
		stop = driver.Stop{Reason: driver.ReasonDied, Detail: p.child.End().String() + "; it had not finished"} // its conversation can be gone on with
	case p.gone:
		stop = failed(p.child.End().String() + "; it had not finished")
	case p.broken != nil && p.late():
		stop = failed(p.broken.Error() + "; it had not finished")
	default:
		return nil
	}
	return &stop
}

// late says whether the time is up in which the program may end by itself.
func (p *play) late() bool { return !p.deadline.IsZero() && !time.Now().Before(p.deadline) }

func (p *play) left() *driver.Stop { return &driver.Stop{Reason: p.leaving, Detail: p.denialWords()} }

func (p *play) send(v any) {
	if err := p.child.Send(v); err != nil && p.broken == nil {
		p.broken = err // what it still says is heard: it may be that it has ended, and how
		if p.deadline.IsZero() {
			p.deadline = time.Now().Add(p.limits.cancel)
		}
	}
}

func (p *play) step(ctx context.Context) { p.stepUntil(ctx, time.Time{}) }

// stepUntil takes the next thing that happens: a line, an order, the wish that we stop, or a time.
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
	if p.told.Full() {
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
			p.hear(raw)
		}
	case <-p.stop:
		p.stop = nil
		p.leave("terminated")
	case <-timer:
		p.tellLate()
	}
}

// order takes what somebody tells us.
func (p *play) order(o speech.Order, ok bool) {
	p.told.Take(o, ok)
	switch {
	case !ok:
		p.orders = nil
	case o.Type == speech.OrderAnswer:
		p.answer(o)
	case o.Type == speech.OrderCancel:
		p.leave("cancelled")
	}
}

// leave brings the session to its end: the answer that is under way is cancelled, and what is asked
// is not asked any more. The program has a little time to end it itself.
func (p *play) leave(why string) {
	if p.leaving != "" {
		return
	}
	p.leaving, p.deadline = why, time.Now().Add(p.limits.cancel)
	if p.talk.session != "" && p.waiting != 0 {
		p.send(notice{"2.0", sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(p.talk.session)}})
	} else {
		p.waiting = 0 // there is nothing that could be ended in order
	}
	p.withdraw(nil)
}

// patienceEnds is when the oldest call that is not whole is told without what it lacks.
func (p *play) patienceEnds() time.Time {
	if len(p.untold) == 0 {
		return time.Time{}
	}
	return p.untold[0].since.Add(p.limits.patience)
}

func (p *play) tellLate() {
	for len(p.untold) > 0 && !time.Now().Before(p.patienceEnds()) {
		p.tellCall(p.untold[0], nil)
	}
}

// What we send.
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
