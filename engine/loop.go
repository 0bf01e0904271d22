package engine

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/interop"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// request is one thing laid on the loop's table: one event, report or sight, or none.
type request struct {
	event  *team.Event
	events []team.Event // what one report tells: one append, and what is refused keeps nothing else back
	seen   *interop.Seen
	wrote  *wrote
	looked *looked
	agent  string              // whose errands are looked at again
	first  func() error        // runs in the loop before anything of it is decided; an error is the answer
	found  func([]team.Change) // runs in the loop: what an event was decided to lead to, before it is in the journal
	look   func(*team.Team)    // runs in the loop, on a team that is all in the journal
	answer chan answer         // nil: nobody waits; else it has room for one
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
		due := e.untilDue()
		if due <= 0 && ctx.Err() == nil { // before who waits at the table: a flood of orders puts off no deadline
			if err := e.onTime(ctx); err != nil {
				return err
			}
			continue
		}
		timer.Reset(due)
		select {
		case <-ctx.Done():
			return e.lastOrders(ctx)
		case err := <-e.broken:
			return err
		case <-timer.C:
			if err := e.onTime(ctx); err != nil {
				return err
			}
		case first := <-e.table:
			batch := e.gather(first)
			if err := e.step(ctx, batch); err != nil {
				return err
			}
			e.letFill(batch)
			clear(batch) // the next one has its place
		}
	}
}

// gather takes what else lies on the table: it shares the sync.
func (e *Engine) gather(first request) []request {
	batch := append(e.batch[:0], first)
	for len(batch) < batchMax {
		select {
		case next := <-e.table:
			batch = append(batch, next)
			continue
		default:
		}
		break
	}
	e.batch = batch
	return batch
}

// letFill yields after a batch that several had waited for: with their answers in hand they
// lay their next orders on the table, and share the next sync. Without it the first of them
// has one alone, and the others wait for two. Whoever is alone is not kept waiting, and it
// never costs more than a small share of the sync that it may save.
func (e *Engine) letFill(batch []request) {
	waited := 0
	for _, req := range batch {
		if req.answer != nil && req.event != nil {
			waited++
		}
	}
	if waited < 2 {
		return
	}
	began, most := time.Now(), e.took/fillShare
	for range e.fill.Load() {
		if len(e.table) >= waited || time.Since(began) > most {
			return
		}
		runtime.Gosched()
	}
}

// lastOrders takes in what was handed over before we go.
func (e *Engine) lastOrders(ctx context.Context) error {
	e.holding = true
	e.pumping()
	for {
		select {
		case first := <-e.table:
			if err := e.step(ctx, e.gather(first)); err != nil {
				return err
			}
			continue
		case <-e.pumped:
		}
		break
	}
	for range tableMax { // who comes later is told that we have gone
		select {
		case first := <-e.table:
			if err := e.step(ctx, e.gather(first)); err != nil {
				return err
			}
		default:
			e.lastSnapshot(ctx)
			return nil
		}
	}
	e.lastSnapshot(ctx)
	return nil
}

// step decides a batch, makes it durable, and only then lets anybody know.
func (e *Engine) step(ctx context.Context, batch []request) error {
	made := draft{changes: e.changes[:0], room: len(batch)}
	answers := make([]answer, len(batch))
	touched := map[string]bool{}
	for i, req := range batch {
		if req.first != nil {
			if answers[i].err = req.first(); answers[i].err != nil {
				continue
			}
		}
		ends := len(made.ends)
		for _, ev := range e.events(req, touched) {
			from := len(made.changes)
			if err := e.decide(ev, &made); err != nil {
				answers[i].err = err
				if req.events != nil && isAnswer(err) {
					continue
				}
				break
			}
			answers[i].seq = uint64(len(made.records)) // becomes a Seq below
			if req.found != nil {
				req.found(made.changes[from:])
			}
			e.follows(&made)
		}
		if req.events != nil && len(made.ends) > ends {
			made.ends = append(made.ends[:ends], len(made.records)) // they are parted by no crash
		}
	}
	head := e.head
	err := e.commit(ctx, &made)
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
	for _, req := range batch {
		if req.seen != nil && e.opts.Files != nil { // nil: a rehearsal
			e.opts.Files.Took(*req.seen) // it is in the journal, or was no news
		}
	}
	e.announce(&made, touched)
	clear(made.changes)
	if e.changes = made.changes; cap(e.changes) > changesKept {
		e.changes = nil
	}
	return nil
}

// announce lets watchers know, and errands begin.
func (e *Engine) announce(made *draft, touched map[string]bool) {
	if len(made.records) > 0 {
		e.hub.publish(made.records)
	}
	runs, talk := map[string]bool{}, news{agents: touched}
	for _, ch := range made.changes {
		if id, isRun := runOf(ch); isRun {
			runs[id] = true
		}
		switch {
		case ch.Body.Question != nil:
			if q := ch.Body.Question.Question; q != nil {
				touched[q.Agent] = true
			}
		case talk.note(ch, e.team), e.leadMoved(ch, touched), e.folderMoved(ch):
		case ch.Body.Team == nil && !strings.HasPrefix(ch.Entity, "run/"):
			touched[agentOf(ch.Entity)] = true
		}
		e.warn(ch)
	}
	e.channelsMoved(&talk)
	for name := range touched {
		e.errandsOf(name)
		e.talkErrands(name)
	}
	for id := range runs {
		e.errandsOfRun(id)
	}
	e.errandsOfFolders()
	if e.unsaved >= snapshotEvery {
		e.snapshotBeside()
	}
}

// events turns a request into what the team can decide. A look at a file becomes an event
// here and not earlier, since whether it is news depends on what was written meanwhile.
func (e *Engine) events(req request, touched map[string]bool) []team.Event {
	if req.agent != "" {
		touched[req.agent] = true
	}
	switch {
	case req.event != nil:
		return []team.Event{*req.event}
	case req.events != nil:
		return req.events
	case req.seen != nil:
		touched[req.seen.Name] = true
		return e.observe(*req.seen)
	case req.wrote != nil:
		touched[req.wrote.agent] = true
		return e.wroteFile(*req.wrote)
	case req.looked != nil:
		touched[req.looked.agent] = true
		return e.lookedAgain(*req.looked)
	default:
		return nil
	}
}

// decide decides one event and applies what it leads to. Until the batch is committed
// nobody but the loop can see it. What the journal would never take is not applied: the
// one who asked is told so, and nobody else suffers.
func (e *Engine) decide(ev team.Event, made *draft) error {
	ev.At = e.clock.now()
	if err := e.mayTellLead(ev.What); err != nil {
		return err
	}
	changes, err := e.team.Decide(ev)
	if err != nil {
		return err
	}
	if made.records == nil {
		made.records = make([]journal.Change, 0, max(made.room, len(changes)))
	}
	if made.records, err = appendRecords(made.records, changes); err != nil {
		return err
	}
	for _, ch := range changes {
		e.team.Apply(ch)
		if ch.Body.Control == nil || len(e.team.Agents[agentOf(ch.Entity)].Line) > 0 { // a wish moves nobody where nobody waits
			e.touched.Note(ch)
		}
	}
	made.changes = append(made.changes, changes...)
	made.ends = append(made.ends, len(made.records))
	return nil
}

// warnings are what a person should know of a change, though nothing stops for it; by what
// happened, in the words of the machines.
var warnings = map[control.Event]string{
	control.FileMalformed:       "agent_state.json was no agent state: its bytes are kept beside it, and pause is wanted",
	control.FileTorn:            "agent_state.json was torn by a restart of the machine: it says again what the journal says",
	control.WantedUnknown:       "desired_state is no word that fairlead knows: it counts as pause",
	control.FailedForGood:       "session after session failed: the agent is paused",
	control.OneShotFailed:       "a one-shot failed",
	control.LimitReached:        "a limit is reached: the session is ended, the agent paused",
	control.CurrentContradicted: "somebody else wrote current_state: it is corrected",
}

// warn says it once a start for each agent.
func (e *Engine) warn(ch team.Change) {
	text, known := warnings[control.Event(ch.Trigger)]
	if !known || ch.Machine != "control" { // a step may fail for good, too
		return
	}
	key := ch.Entity + " " + ch.Trigger
	if e.warned[key] {
		return
	}
	e.warned[key] = true
	note := ""
	if ch.Body.Control != nil {
		note = ch.Body.Control.Value.Wish.Note
	}
	e.log.Warn(text, "agent", agentOf(ch.Entity), "row", ch.Row, "note", note)
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

// draft is what a batch has come to, not yet in the journal.
type draft struct {
	changes []team.Change
	records []journal.Change
	ends    []int // after so many records an event is whole
	room    int   // records that are expected; watchers keep them, so that each batch has its own
}
