package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	partMax      = journal.BatchChangesMax
	partBytesMax = journal.BatchBytesMax / 2 // many agents with much to keep in one moment
	teamEntity   = "team/team"
)

// appendRecords adds changes in the journal's form. The error is for what no journal takes; nothing
// is added then.
func appendRecords(records []journal.Change, changes []team.Change) ([]journal.Change, error) {
	from := len(records)
	for i := range changes {
		ch := &changes[i]
		data, err := json.Marshal(&ch.Body)
		if err != nil {
			return records[:from], fmt.Errorf("a change of %s cannot be written: %w", ch.Entity, err)
		}
		records = append(records, journal.Change{
			Time: ch.At, Machine: ch.Machine, Entity: ch.Entity, Row: ch.Row, From: ch.From, To: ch.To,
			Trigger: ch.Trigger, Actor: journal.Actor(ch.Actor), Data: data,
		})
	}
	for rest := records[from:]; len(rest) > 0; {
		part := rest[:min(len(rest), journal.BatchChangesMax)]
		rest = rest[len(part):]
		if err := journal.CheckBatch(part, nil); err != nil {
			return records[:from], fmt.Errorf("this cannot be kept, so it was not done: %w", err)
		}
	}
	return records, nil
}

// commit appends what was decided, and has the journal refuse it where its end is not the
// one that was decided on: whoever was overtaken, or had not read everything, can write
// nothing more, about anybody. After a failure the team in memory is ahead of the
// journal: the engine stops, and the next start reads the truth.
func (e *Engine) commit(ctx context.Context, made *draft) error {
	ctx = context.WithoutCancel(ctx) // what was decided is written, also while we stop
	for from := 0; from < len(made.records); {
		to := made.part(from)
		part := made.records[from:to]
		began := time.Now()
		last, err := e.opts.Journal.Append(ctx, part, journal.Expect{Entity: journal.Whole, Version: e.head})
		if err != nil {
			return appendFailed(err)
		}
		for i := range part {
			part[i].Seq = e.head + 1 + uint64(i)
			e.versions[part[i].Entity]++
			part[i].Version = e.versions[part[i].Entity]
		}
		e.books.note(made.changes[from:to], e.head+1) // before anybody is answered, who may ask for it at once
		e.crew.note(made.changes[from:to], e.head+1)
		e.head, e.took, from = last, time.Since(began), to
	}
	e.unsaved += len(made.records)
	return nil
}

func appendFailed(err error) error {
	var conflict *journal.Conflict
	if errors.As(err, &conflict) {
		return fmt.Errorf("another fairlead has written to the journal of this team since this one read it: %w; this one stops, agents go on running: see that only one is started", err)
	}
	if errors.Is(err, journal.ErrGone) {
		return fmt.Errorf("the journal takes no more changes: %w; put it back if you have a copy, then run `fairlead up` again; agents go on until they are done", err)
	}
	return fmt.Errorf("the journal takes no more changes: %w; agents go on running, and nothing that was answered is lost: mend it, then run `fairlead up` again", err)
}

// part says where the append that begins at from ends. A crash may come between two
// appends, so they are parted where an event ends, or, within one that is larger than the
// journal takes at once, where an agent's part of it does: each agent's half is whole, and
// what the others missed they meet again, since a hold and a limit are looked at before
// every start.
func (d *draft) part(from int) int {
	most, bytes := from, 0
	for most < len(d.records) && most-from < partMax && (most == from || bytes+len(d.records[most].Data) <= partBytesMax) {
		bytes += len(d.records[most].Data)
		most++
	}
	if most == len(d.records) {
		return most
	}
	for i := len(d.ends) - 1; i >= 0; i-- {
		if d.ends[i] <= most && d.ends[i] > from {
			return d.ends[i]
		}
	}
	for i := most; i > from; i-- {
		if agentOf(d.records[i-1].Entity) != agentOf(d.records[i].Entity) {
			return i
		}
	}
	return most
}
