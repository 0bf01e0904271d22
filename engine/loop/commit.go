package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

const (
	partMax      = journal.BatchChangesMax
	partBytesMax = journal.BatchBytesMax / 2 // many agents with much to keep in one moment
)

// AppendRecords adds changes in the journal's form. The error is for what no journal takes; nothing
// is added then.
func AppendRecords(records []journal.Change, changes []change.Change) ([]journal.Change, error) {
	from := len(records)
	for i := range changes {
		ch := &changes[i]
		data, err := change.Encode(ch.Body)
		if err != nil {
			return records[:from], fmt.Errorf("a change of %s cannot be encoded: %w", ch.Entity, err)
		}
		records = append(records, journal.Change{
			Time: ch.At, Machine: ch.Machine, Entity: ch.Entity, Row: ch.Row, From: ch.From, To: ch.To,
			Trigger: ch.Trigger, Actor: ch.Actor, Data: data,
		})
	}
	if err := journal.Check(records[from:]); err != nil {
		return records[:from], fmt.Errorf("the journal cannot keep this, so it was not done: %w", err)
	}
	return records, nil
}

// commit appends what was decided. The journal refuses the append if its end is not the one that was
// decided on, so a daemon that was overtaken, or had not read everything, can write nothing more.
// After a failure the team in memory is ahead of the journal: the loop stops, and the next start
// rebuilds the state from the journal.
func (l *Loop) commit(ctx context.Context, made *batchDraft) error {
	ctx = context.WithoutCancel(ctx) // a decision is written even while the loop stops
	for from := 0; from < len(made.records); {
		to := made.part(from)
		part := made.records[from:to]
		last, err := l.opts.Journal.Append(ctx, part, journal.Expect{Entity: journal.Whole, Version: l.head})
		if err != nil {
			return appendFailed(err)
		}
		for i := range part {
			part[i].Seq = l.head + 1 + uint64(i)
			l.versions[part[i].Entity]++
			part[i].Version = l.versions[part[i].Entity]
		}
		l.head, from = last, to
	}
	l.unsaved += len(made.records)
	return nil
}

func appendFailed(err error) error {
	var conflict *journal.Conflict
	if errors.As(err, &conflict) {
		return fmt.Errorf("another fairlead has written to this team's journal since this one read it: %w; this one stops and agents go on running; make sure that only one is started", err)
	}
	if errors.Is(err, journal.ErrGone) {
		return fmt.Errorf("the journal cannot store changes: %w; put it back if you have a copy, then run `fairlead up` again; agents finish their sessions", err)
	}
	return fmt.Errorf("the journal cannot store changes: %w; agents go on running and every acknowledged change is kept; fix this, then run `fairlead up` again", err)
}

// part says where the append that begins at from ends. A crash may come between two appends, so they
// are separated where an event ends or, within an event that is larger than one append, where one
// agent's changes end. Each agent's half is complete. What the other agents missed is found again,
// since a hold and a limit are checked before every start.
func (d *batchDraft) part(from int) int {
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
		if team.AgentOf(d.records[i-1].Entity) != team.AgentOf(d.records[i].Entity) {
			return i
		}
	}
	return most
}
