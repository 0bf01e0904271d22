package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
)

// request is one thing laid on the loop's table: exactly one of the first four is set.
type request struct {
	event  *team.Event
	seen   *interop.Seen
	wrote  *wrote
	look   func(*team.Team) // runs in the loop, on a team that is all in the journal
	answer chan answer      // nil: nobody waits; else it has room for one
}

type answer struct {
	seq uint64 // of the last change that the event made; where it made none, of the journal's last
	err error
}

// loop is the one place where the team changes.
func (e *Engine) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e.checkReady()
		e.checkStopped()
		timer.Reset(e.untilDue())
		select {
		case <-ctx.Done():
			return e.snapshot(context.WithoutCancel(ctx))
		case <-timer.C:
			if err := e.step(ctx, e.dueEvents()); err != nil {
				return err
			}
		case first := <-e.table:
			if err := e.step(ctx, e.gather(first)); err != nil {
				return err
			}
		}
	}
}

// gather takes what else lies on the table: it shares the sync.
func (e *Engine) gather(first request) []request {
	batch := []request{first}
	for len(batch) < batchMax {
		select {
		case next := <-e.table:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// step decides a batch, makes it durable, and only then lets anybody know.
func (e *Engine) step(ctx context.Context, batch []request) error {
	var changes []team.Change
	answers := make([]answer, len(batch))
	touched := map[string]bool{}
	for i, req := range batch {
		for _, ev := range e.events(req, touched) {
			made, err := e.decide(ev)
			if err != nil {
				answers[i].err = err
				break
			}
			changes = append(changes, made...)
			answers[i].seq = uint64(len(changes)) // becomes a Seq below
		}
	}
	head := e.head
	recorded, err := e.commit(ctx, changes)
	for i, req := range batch {
		if err != nil {
			answers[i].err = err
		}
		answers[i].seq += head
		if answers[i].seq == head {
			answers[i].seq = e.head
		}
		if req.look != nil && err == nil {
			req.look(e.team)
		}
		if req.answer != nil {
			req.answer <- answers[i]
		} else if err == nil && answers[i].err != nil {
			e.log.Error("an event that nobody waits for was refused", "error", answers[i].err)
		}
	}
	if err != nil {
		return err
	}
	e.hub.publish(recorded)
	for _, ch := range changes {
		if ch.Body.Team == nil {
			touched[agentOf(ch.Entity)] = true
		}
		e.warn(ch)
	}
	for name := range touched {
		e.errandsOf(name)
	}
	if e.unsaved >= snapshotEvery {
		return e.snapshot(ctx)
	}
	return nil
}

// events turns a request into what the team can decide. A look at a file becomes an event
// here and not earlier, since whether it is news depends on what was written meanwhile.
func (e *Engine) events(req request, touched map[string]bool) []team.Event {
	switch {
	case req.event != nil:
		return []team.Event{*req.event}
	case req.seen != nil:
		touched[req.seen.Name] = true
		return e.observe(*req.seen)
	case req.wrote != nil:
		touched[req.wrote.agent] = true
		return e.wroteFile(*req.wrote)
	default:
		return nil
	}
}

// decide decides one event and applies what it leads to. Until the batch is committed
// nobody but the loop can see it.
func (e *Engine) decide(ev team.Event) ([]team.Change, error) {
	ev.At = e.clock.now()
	changes, err := e.team.Decide(ev)
	if err != nil {
		return nil, err
	}
	for _, ch := range changes {
		e.team.Apply(ch)
	}
	return changes, nil
}

// commit appends changes, in batches that the journal takes. After a failure the team in
// memory is ahead of the journal: the engine stops, and the next start reads the truth.
func (e *Engine) commit(ctx context.Context, changes []team.Change) ([]journal.Change, error) {
	recorded := make([]journal.Change, 0, len(changes))
	for _, ch := range changes {
		data, err := json.Marshal(ch.Body)
		if err != nil {
			panic(fmt.Sprintf("engine: a change of %s cannot be written: %v", ch.Entity, err))
		}
		recorded = append(recorded, journal.Change{
			Time: ch.At, Machine: ch.Machine, Entity: ch.Entity, Row: ch.Row, From: ch.From, To: ch.To,
			Trigger: ch.Trigger, Actor: journal.Actor(ch.Actor), Data: data,
		})
	}
	ctx = context.WithoutCancel(ctx) // what was decided is written, also while we stop
	for rest := recorded; len(rest) > 0; {
		part := rest[:min(len(rest), journal.BatchChangesMax)]
		rest = rest[len(part):]
		last, err := e.opts.Journal.Append(ctx, part, e.expect(part)...)
		if err != nil {
			return nil, fmt.Errorf("the journal takes no more changes: %w; agents go on running, and nothing that was answered is lost: mend it, then run `fairlead up` again", err)
		}
		first := last - uint64(len(part)) + 1
		for i := range part {
			part[i].Seq = first + uint64(i)
			e.versions[part[i].Entity]++
			part[i].Version = e.versions[part[i].Entity]
		}
		e.head = last
	}
	e.unsaved += len(recorded)
	return recorded, nil
}

// expect makes the journal refuse a batch that was decided on a state that is not the newest.
func (e *Engine) expect(batch []journal.Change) []journal.Expect {
	seen := make(map[string]bool, len(batch))
	var expect []journal.Expect
	for _, ch := range batch {
		if !seen[ch.Entity] {
			seen[ch.Entity] = true
			expect = append(expect, journal.Expect{Entity: ch.Entity, Version: e.versions[ch.Entity]})
		}
	}
	return expect
}

// ask lays a request on the table and waits for its answer.
func (e *Engine) ask(ctx context.Context, req request) (uint64, error) {
	req.answer = make(chan answer, 1)
	select {
	case e.table <- req:
	case <-e.quit:
		return 0, ErrClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case a := <-req.answer:
		return a.seq, a.err
	case <-e.quit:
		select {
		case a := <-req.answer: // it was answered with the last breath
			return a.seq, a.err
		default:
			return 0, ErrClosed
		}
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// submit has an event decided; it returns when what came of it is durable.
func (e *Engine) submit(ctx context.Context, actor team.Actor, agent string, what any) (uint64, error) {
	return e.ask(ctx, request{event: &team.Event{Actor: actor, Agent: agent, What: what}})
}

// look runs f on the team, between two batches. It must be quick, and keep nothing of what it sees.
func (e *Engine) look(ctx context.Context, f func(*team.Team)) error {
	_, err := e.ask(ctx, request{look: f})
	return err
}

// untilDue is the time to the next deadline of anybody.
func (e *Engine) untilDue() time.Duration {
	const idle = time.Hour // nothing is due: look again some time
	next := time.Time{}
	earlier := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for name, a := range e.team.Agents {
		earlier(e.team.Deadline(a))
		if m := e.members[name]; m != nil {
			earlier(m.again)
		}
	}
	if next.IsZero() {
		return idle
	}
	return max(0, next.Sub(e.clock.now()))
}

// dueEvents are the timers that have run out.
func (e *Engine) dueEvents() []request {
	now := e.clock.now()
	var batch []request
	for _, name := range e.team.Names() {
		a := e.team.Agents[name]
		if at := e.team.Deadline(a); !at.IsZero() && !now.Before(at) {
			batch = append(batch, request{event: &team.Event{Actor: byTimer, Agent: name, What: team.TimerFired{}}})
		}
		if m := e.members[name]; m != nil && !m.again.IsZero() && !now.Before(m.again) {
			m.again = time.Time{}
			e.errandsOf(name)
		}
	}
	return batch
}

// filesSettled says whether every file says what it is to say, or cannot be made to.
func (e *Engine) filesSettled() bool {
	for name, m := range e.members {
		if m.writing || (m.failed == "" && e.fileDue(m, e.team.Agents[name])) {
			return false
		}
	}
	return true
}

// checkReady notices that the start is over.
func (e *Engine) checkReady() {
	select {
	case <-e.ready:
	default:
		if e.filesSettled() {
			close(e.ready)
		}
	}
}

// checkStopped notices that a stop that was asked for is complete.
func (e *Engine) checkStopped() {
	select {
	case <-e.stopped:
	default:
		if e.team.Stopping && e.team.Idle() && e.filesSettled() {
			close(e.stopped)
		}
	}
}

// warn says once a start what a person should know, though nothing stops for it.
func (e *Engine) warn(ch team.Change) {
	switch ch.Row {
	case "C12", "C13", "C16", "C17", "C20", "C22":
	default:
		return
	}
	key := ch.Entity + ch.Row + ch.Trigger
	if e.warned[key] {
		return
	}
	e.warned[key] = true
	note := ""
	if ch.Body.Control != nil {
		note = ch.Body.Control.Value.Wish.Note
	}
	e.log.Warn("something to look at", "entity", ch.Entity, "row", ch.Row, "trigger", ch.Trigger, "note", note)
}

// isAnswer says whether an error is an answer to who asked, not a failure of ours.
func isAnswer(err error) bool {
	var refusal *machine.Refusal
	var unknown *team.Unknown
	return errors.As(err, &refusal) || errors.As(err, &unknown)
}

// agentOf is the agent that an entity belongs to.
func agentOf(entity string) string {
	for i := range len(entity) {
		if entity[i] == '/' {
			return entity[i+1:]
		}
	}
	return entity
}

// Who is behind an event that nobody outside asked for.
var (
	byTimer    = team.Actor{Kind: "engine", ID: "timer"}
	byRecovery = team.Actor{Kind: "engine", ID: "recovery"}
	byHolder   = team.Actor{Kind: "engine", ID: "holder"}
	byIntent   = team.Actor{Kind: "engine", ID: "last look"}
)
