package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// reportEvery bounds how often an agent's usage becomes a change: one that reports every
// token must not fill the journal. A limit is noticed so much later at most.
const reportEvery = 200 * time.Millisecond

// follow listens to a session until it is over, and says how it ended. The session itself
// goes on when we stop listening: what was not journaled is heard again.
func (e *Engine) follow(ctx context.Context, m *member, s team.Session, proc Process, atStart bool) {
	agent := driver.Agent{Name: m.conf.Name, Command: m.conf.Command, Script: m.conf.Script, Workspace: m.conf.Workspace, Model: m.conf.Model}
	stop, ok := e.listen(ctx, m, s, m.driver.Converse(agent, sessionFor(m, s), proc), proc)
	if !ok {
		return
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
		return
	}
	ending, err := proc.Ended(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		ending = Ending{Lost: true, Why: err.Error()}
	}
	what := team.SessionEnded{Session: s.ID, Bytes: ending.Bytes, AtStart: atStart}
	what.Outcome, what.Why = e.judge(m, s, ending, stop)
	if !e.sessionEnded(ctx, m, what, byHolder) {
		return
	}
	if err := proc.Ack(ctx); err != nil && ctx.Err() == nil {
		e.log.Warn("a holder was not told that its exit is in the journal", "session", s.ID, "error", err)
	}
	e.setProc(s.ID, nil)
	_ = proc.Close() // nothing is left to lose on it
}

// judge asks the driver what an ending means.
func (e *Engine) judge(m *member, s team.Session, ending Ending, stop *driver.Stop) (control.Outcome, string) {
	if ending.Lost {
		return control.Lost, ending.Why
	}
	verdict := m.driver.Outcome(sessionFor(m, s), ending.Exit, stop)
	why := verdict.Why
	if ending.Cut > 0 {
		why = fmt.Sprintf("%d bytes of its output were lost, since the disk took no more; %s", ending.Cut, why)
	}
	if !verdict.OK {
		return control.Failed, why
	}
	return control.OK, why
}

// listen turns what the agent says into reports, from the last one that is in the journal.
// It returns at the end of the output; not ok means that we stop.
func (e *Engine) listen(ctx context.Context, m *member, s team.Session, conv driver.Conversation, proc Process) (*driver.Stop, bool) {
	facts := make(chan driver.Fact)
	go func() {
		defer close(facts)
		for fact, err := range conv.Facts(ctx, s.Offset) {
			if err != nil {
				if ctx.Err() == nil {
					e.log.Error("a session's output cannot be read", "session", s.ID, "error", err)
				}
				return
			}
			select {
			case facts <- fact:
			case <-ctx.Done():
				return
			}
		}
	}()

	var stop *driver.Stop
	if s.Stop != nil {
		stop = &driver.Stop{OK: s.Stop.OK, Reason: s.Stop.Reason, Detail: s.Stop.Detail}
		e.beside(func(ctx context.Context) { e.letGo(ctx, m, proc) })
	}
	due := time.NewTicker(reportEvery)
	defer due.Stop()
	pending := team.SessionReported{Session: s.ID}
	report := func() bool {
		if pending.Offset == 0 {
			return true
		}
		_, err := e.submit(ctx, team.Actor{Kind: "agent", ID: m.conf.Name}, m.conf.Name, pending)
		pending = team.SessionReported{Session: s.ID}
		return err == nil || isAnswer(err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-due.C:
			if !report() {
				return nil, false
			}
		case fact, more := <-facts:
			if !more {
				return stop, report()
			}
			if !note(&pending, fact) {
				continue
			}
			if fact.Kind == driver.Stopped {
				stop = &fact.Stop
				if !report() {
					return nil, false
				}
				e.beside(func(ctx context.Context) { e.letGo(ctx, m, proc) })
			}
		}
	}
}

// note adds a fact to the next report, where decisions depend on it.
func note(pending *team.SessionReported, fact driver.Fact) bool {
	switch fact.Kind {
	case driver.UsageReported:
		pending.Usage.InputTokens += clamp(fact.Usage.InputTokens)
		pending.Usage.OutputTokens += clamp(fact.Usage.OutputTokens)
		if cost := fact.Usage.CostUSD; cost > 0 && cost <= costReportMax { // NaN is neither
			pending.Usage.CostUSD += cost
		}
	case driver.Stopped:
		pending.Stop = &team.Stop{OK: fact.Stop.OK, Reason: cutText(fact.Stop.Reason), Detail: cutText(fact.Stop.Detail)}
	default:
		return false
	}
	pending.Offset = fact.Offset
	return true
}

// What one report may claim at most. An agent that says more is mistaken or lies; a sum
// that overflowed would lift its limit.
const (
	tokensReportMax = int64(1e9)
	costReportMax   = 1e5 // USD
)

func clamp(tokens int64) int64 { return min(max(tokens, 0), tokensReportMax) }

// letGo closes a conversation that has said its last word. A program that stays all the
// same is ended after its grace: some ignore the end of their input.
func (e *Engine) letGo(ctx context.Context, m *member, proc Process) {
	// An agent that takes no input, or is gone, has nothing to close.
	_ = proc.CloseInput(ctx)
	grace := time.NewTimer(m.conf.Grace)
	defer grace.Stop()
	select {
	case <-proc.Done():
	case <-ctx.Done():
	case <-grace.C:
		if err := proc.End(ctx, m.conf.Grace); err != nil && ctx.Err() == nil {
			e.log.Warn("an agent that was done could not be ended", "agent", m.conf.Name, "error", err)
		}
	}
}

// textBytesMax bounds what an agent may say of its own end.
const textBytesMax = 500

func cutText(s string) string {
	if len(s) <= textBytesMax {
		return s
	}
	return s[:textBytesMax] + "…"
}
