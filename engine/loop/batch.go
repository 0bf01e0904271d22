package loop

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// batchDraft is what a batch has led to, not yet in the journal.
type batchDraft struct {
	changes []change.Change
	records []journal.Change
	ends    []int // after so many records an event is complete
}

// Step decides a batch and appends it; only then it notifies, acts and answers. Recovery calls it before Run; afterwards
// only Run does.
func (l *Loop) Step(ctx context.Context, batch []Request) error {
	var made batchDraft
	touched := newTouched()
	answers := l.decideAll(batch, &made, &touched)
	head := l.head
	err := l.commit(ctx, &made)
	if err == nil {
		for _, req := range batch {
			if req.After != nil {
				req.After()
			}
		}
		l.announce(&made, &touched)
	}
	l.answer(batch, answers, head, err)
	return err
}

func (l *Loop) decideAll(batch []Request, made *batchDraft, touched *Touched) []Answer {
	answers := make([]Answer, len(batch))
	for i, req := range batch {
		if req.First != nil {
			if answers[i].Err = req.First(); answers[i].Err != nil {
				continue
			}
		}
		if req.Agent != "" {
			touched.Agent(req.Agent)
		}
		decide := func(ev team.Event) error {
			from := len(made.changes)
			if err := l.decide(ev, made); err != nil {
				answers[i].Err = cmp.Or(answers[i].Err, err)
				return err
			}
			answers[i].Seq = uint64(len(made.records)) // becomes a sequence number in answer
			if req.Found != nil {
				req.Found(made.changes[from:])
			}
			l.follows(made)
			return nil
		}
		switch {
		case req.Event != nil:
			_ = decide(*req.Event)
		case req.Derive != nil:
			ends := len(made.ends)
			req.Derive(decide)
			if len(made.ends) > ends {
				made.ends = append(made.ends[:ends], len(made.records)) // no crash separates them
			}
		}
	}
	return answers
}

// answer answers the callers. The controllers have noted the changes of the batch by then, so a request that sees a change
// also sees what follows from it: that a file has to be written, for example.
func (l *Loop) answer(batch []Request, answers []Answer, head uint64, failed error) {
	for i, req := range batch {
		if failed != nil {
			answers[i].Err = failed
		}
		answers[i].Seq += head
		if answers[i].Seq == head {
			answers[i].Seq = l.head
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
	changes, err := l.team.Decide(ev)
	if err != nil {
		return err
	}
	if made.records, err = AppendRecords(made.records, changes); err != nil {
		return err
	}
	for _, ch := range changes {
		l.team.Apply(ch)
		l.touched.Note(ch)
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
			l.log.Error("what follows from the state was refused, which is a fault in fairlead", "run", ev.Run, "agent", ev.Agent, "what",
				fmt.Sprintf("%T", ev.What), "error", err)
			l.touched.Refused()
		}
	}
}

// announce lets the controllers take in the changes, shows these to the watchers, and lets the controllers start actions.
func (l *Loop) announce(made *batchDraft, touched *Touched) {
	if len(made.changes) > 0 {
		for _, h := range l.hooks {
			if h.OnBatch != nil {
				h.OnBatch(made.changes, made.records[0].Seq, touched)
			}
		}
		l.ring.publish(made.records)
	}
	l.act(touched)
	if l.unsaved >= SnapshotEvery {
		l.snapshotBeside()
	}
}

func (l *Loop) act(touched *Touched) {
	for _, h := range l.hooks {
		if h.Act != nil {
			h.Act(touched)
		}
	}
}
