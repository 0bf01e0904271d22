package loop

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/team"
)

// batchDraft is what a batch has led to, not yet in the journal.
type batchDraft struct {
	changes []team.Change
	records []journal.Change
	ends    []int         // after so many records an event is complete
	room    int           // records that are expected
	text    []byte        // the encoded changes, which the records keep
	event   [1]team.Event // the one of the request that is decided
}

// Step decides a batch, appends it, and only then answers, notifies and acts; requests that only look are answered
// after that. Recovery calls it before Run; afterwards only Run does.
func (l *Loop) Step(ctx context.Context, batch []Request) error {
	made := batchDraft{changes: l.changes[:0], records: l.records[:0], text: l.text[:0], ends: l.ends[:0], room: len(batch)}
	touched := &l.marks
	l.moved, l.waited = true, max(waiting(batch), l.waited/2) // half: a batch without callers may come in between
	touched.forget()
	answers := l.decideAll(batch, &made, touched)
	head := l.head
	err := l.commit(ctx, &made)
	l.answer(batch, answers, head, err)
	if err != nil {
		return err
	}
	for _, req := range batch {
		if req.After != nil {
			req.After()
		}
	}
	if n := len(made.text); n > 0 && len(batch) > 0 {
		l.perRequest = min(n/len(batch)*9/8, perRequestMax)
	}
	l.announce(&made, touched)
	show(l, batch, answers)
	reuse(l, &made)
	return nil
}

// show answers requests that only look. The controllers have noted the changes of the batch by then, so a request that
// sees a change also sees what follows from it: that a file has to be written, for example.
func show(l *Loop, batch []Request, answers []Answer) {
	for i := range batch {
		if req := &batch[i]; onlyLooks(req) {
			req.Look(l.team)
			if req.answer != nil {
				req.answer <- answers[i]
			}
		}
	}
}

// onlyLooks reports whether a request changes nothing and starts nothing.
func onlyLooks(r *Request) bool {
	return r.Event == nil && r.Events == nil && r.Derive == nil && r.After == nil && r.First == nil && r.Agent == "" && r.Look != nil
}

// reuse keeps the memory of a batch for the next one. That of the records is large, and kept only where callers come in
// numbers.
func reuse(l *Loop, made *batchDraft) {
	clear(made.changes)
	if l.changes, l.ends = made.changes, made.ends; cap(l.changes) > changesKept {
		l.changes, l.ends = nil, nil
	}
	clear(made.records)
	if l.records, l.text = made.records, made.text; l.waited < 2 || cap(l.records) > changesKept || cap(l.text) > textKept {
		l.records, l.text = nil, nil
	}
}

func (l *Loop) decideAll(batch []Request, made *batchDraft, touched *Touched) []Answer {
	answers := append(l.answers[:0], make([]Answer, len(batch))...)
	l.answers = answers
	for i, req := range batch {
		if req.First != nil {
			if answers[i].Err = req.First(); answers[i].Err != nil {
				continue
			}
		}
		ends := len(made.ends)
		if req.Agent != "" {
			touched.Agent(req.Agent)
		}
		events := req.Events
		switch {
		case req.Event != nil:
			made.event[0] = *req.Event
			events = made.event[:]
		case req.Derive != nil:
			events = req.Derive()
		}
		for _, ev := range events {
			from := len(made.changes)
			if err := l.decide(ev, made); err != nil {
				answers[i].Err = err
				if req.Events != nil && IsAnswer(err) {
					continue
				}
				break
			}
			answers[i].Seq = uint64(len(made.records)) // becomes a sequence number in answer
			if req.Found != nil {
				req.Found(made.changes[from:])
			}
			l.follows(made)
		}
		if req.Events != nil && len(made.ends) > ends {
			made.ends = append(made.ends[:ends], len(made.records)) // no crash separates them
		}
	}
	return answers
}

func (l *Loop) answer(batch []Request, answers []Answer, head uint64, failed error) {
	for i, req := range batch {
		if failed != nil {
			answers[i].Err = failed
		}
		answers[i].Seq += head
		if answers[i].Seq == head {
			answers[i].Seq = l.head
		}
		if onlyLooks(&req) && failed == nil {
			continue // see show
		}
		if req.Look != nil && failed == nil {
			req.Look(l.team)
		}
		if req.answer != nil {
			req.answer <- answers[i]
		} else if failed == nil && answers[i].Err != nil {
			l.log.Error("an event without a waiting caller was refused", "error", answers[i].Err)
		}
	}
}

// decide decides one event and applies the changes. Until the batch is committed only the loop sees
// them. What the journal would refuse is not applied: its caller gets the error, and no other request
// is affected.
func (l *Loop) decide(ev team.Event, made *batchDraft) error {
	ev.At = l.clock.now()
	for _, h := range l.hooks {
		if h.Check == nil {
			continue
		}
		if err := h.Check(ev.What); err != nil {
			return err
		}
	}
	changes, err := l.draft.Decide(l.team, ev)
	if err != nil {
		return err
	}
	if cap(made.records) == 0 {
		made.records = make([]journal.Change, 0, max(made.room, len(changes)))
		made.text = make([]byte, 0, made.room*l.perRequest)
	}
	if made.records, made.text, err = appendRecords(made.records, made.text, changes); err != nil {
		return err
	}
	for _, ch := range changes {
		l.team.Apply(ch)
		if ch.Body.Control == nil || len(l.team.Agents[team.AgentOf(ch.Entity)].Queue) > 0 { // without queued requests, a desired state has no follow-up events
			l.touched.Note(ch)
		}
	}
	made.changes = append(made.changes, changes...)
	made.ends = append(made.ends, len(made.records))
	return nil
}

// follows decides what follows from the last decision, for the same append: a free slot goes to the
// first request in its queue, and a step that may begin begins.
func (l *Loop) follows(made *batchDraft) {
	if l.holding {
		return // nothing begins before the recovery has seen everything
	}
	for {
		ev, some := l.team.Next(&l.touched, l.clock.now())
		if !some {
			return
		}
		if err := l.decide(ev, made); err != nil {
			l.log.Error("what follows from the state was refused, which is a fault in fairlead", "run", ev.Run, "agent", ev.Agent, "what", fmt.Sprintf("%T", ev.What), "error", err)
			l.touched = team.Touched{}
			return
		}
	}
}

// announce notifies watchers, and lets the controllers start actions.
func (l *Loop) announce(made *batchDraft, touched *Touched) {
	if len(made.records) > 0 && l.hub.publish(made.records) {
		made.records, made.text = nil, nil
	}
	for _, ch := range made.changes {
		if key, isRun := strings.CutPrefix(ch.Entity, "run/"); isRun {
			id, _, _ := strings.Cut(key, "/")
			touched.Run(id)
		} else if ch.Body.Session != nil {
			if id, _, isStep := team.StepOf(ch.Body.Session.For); isStep { // an agent plays it
				touched.Run(id)
			}
		}
		for _, h := range l.hooks {
			if h.Note != nil && h.Note(ch, touched) {
				break
			}
		}
	}
	l.act(touched)
	if l.unsaved >= SnapshotEvery {
		l.snapshotBeside()
	}
}

func (l *Loop) act(touched *Touched) {
	for _, h := range l.hooks {
		if h.Spread != nil {
			h.Spread(touched)
		}
	}
	for _, h := range l.hooks {
		if h.Act != nil {
			h.Act(touched)
		}
	}
}

// letFill yields before a batch if the last ones answered several callers: with their answers they submit their next
// requests, which then share this sync. Without it the first of them has a sync alone and the others wait for two. Callers
// that come one at a time are not delayed, except for a few after a crowd, and letFill never costs more than a small share
// of the sync that it may save.
func (l *Loop) letFill() {
	if l.waited < 2 {
		return
	}
	began, most := time.Now(), l.took/fillShare
	for range l.fill.Load() {
		if len(l.queue)+1 >= l.waited || time.Since(began) > most {
			return
		}
		runtime.Gosched()
	}
}

// waiting counts the callers that wait for an event of a batch.
func waiting(batch []Request) (callers int) {
	for i := range batch {
		if batch[i].answer != nil && batch[i].Event != nil {
			callers++
		}
	}
	return callers
}
