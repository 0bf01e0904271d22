package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/team"
)

// snapshotFormat changes when the shape of what is in a snapshot does; an older one is not
// read then, and the journal tells the whole story.
const snapshotFormat = "team/1"

type snapshot struct {
	Team     *team.Team        `json:"team"`
	Versions map[string]uint64 `json:"versions"`
}

// replay makes the team as the journal tells it.
func (e *Engine) replay(ctx context.Context) error {
	e.team = team.New(renderSum)
	if err := e.restore(ctx); err != nil {
		return err
	}
	e.team.Crew.Render = documentSum
	for rec, err := range e.opts.Journal.Read(ctx, journal.Query{After: e.head}) {
		if err != nil {
			return fmt.Errorf("read the journal after %d: %w", e.head, err)
		}
		ch, err := changeOf(rec)
		if err != nil {
			return err
		}
		e.team.Apply(ch)
		e.head = rec.Seq
		e.versions[rec.Entity] = rec.Version
		e.clock.seed(rec.Time)
		e.unsaved++
	}
	return nil
}

// restore begins from the newest snapshot, where it is one of this very history.
func (e *Engine) restore(ctx context.Context) error {
	snap, ok, err := e.opts.Journal.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read the newest snapshot: %w", err)
	}
	if !ok || snap.Format != snapshotFormat {
		return nil
	}
	var at *journal.Change
	for ch, err := range e.opts.Journal.Read(ctx, journal.Query{After: snap.Seq - 1, Until: snap.Seq}) {
		if err != nil {
			return fmt.Errorf("read change %d, of which there is a snapshot: %w", snap.Seq, err)
		}
		at = &ch
	}
	if at == nil || at.Hash != snap.Hash {
		return nil
	}
	kept := snapshot{Team: team.New(renderSum)}
	if err := json.Unmarshal(snap.Data, &kept); err != nil {
		e.log.Warn("the snapshot cannot be read; the whole journal is", "seq", snap.Seq, "error", err)
		return nil
	}
	if kept.Team == nil || kept.Team.Agents == nil || kept.Versions == nil {
		e.log.Warn("the snapshot is not whole; the whole journal is read", "seq", snap.Seq)
		return nil
	}
	e.team, e.versions, e.head = kept.Team, kept.Versions, snap.Seq
	e.clock.seed(at.Time)
	return nil
}

// snapshotBeside keeps the team as it is now, so that the next start reads little. Nothing
// depends on it: what cannot be kept is said, and the journal tells the whole story.
func (e *Engine) snapshotBeside() {
	snap, err := e.snapshot(e.ctx)
	e.unsaved = 0 // also where it failed: it is tried again in a while, not at every batch
	if err != nil {
		e.log.Warn("no snapshot was made; the next start reads more", "error", err)
		return
	}
	e.beside(func(ctx context.Context) { e.keep(ctx, snap) })
}

// lastSnapshot keeps the team as it is when we go.
func (e *Engine) lastSnapshot(ctx context.Context) {
	if e.unsaved == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	snap, err := e.snapshot(ctx)
	if err != nil {
		e.log.Warn("no snapshot was made; the next start reads more", "error", err)
		return
	}
	e.keep(ctx, snap)
}

func (e *Engine) keep(ctx context.Context, snap journal.Snapshot) {
	if err := e.opts.Journal.SaveSnapshot(ctx, snap); err != nil && ctx.Err() == nil {
		e.log.Warn("a snapshot was not kept; the next start reads more", "seq", snap.Seq, "error", err)
	}
}

// snapshot is the team as it is now.
func (e *Engine) snapshot(ctx context.Context) (journal.Snapshot, error) {
	seq, hash, err := e.opts.Journal.Head(ctx)
	if err != nil {
		return journal.Snapshot{}, err
	}
	if seq != e.head {
		return journal.Snapshot{}, fmt.Errorf("the journal ends at %d, and this team at %d: somebody else wrote to it", seq, e.head)
	}
	data, err := json.Marshal(snapshot{Team: e.team, Versions: e.versions})
	if err != nil {
		return journal.Snapshot{}, err
	}
	return journal.Snapshot{Seq: seq, Hash: hash, Format: snapshotFormat, Data: data}, nil
}

// changeOf is the change that a record keeps.
func changeOf(rec journal.Change) (team.Change, error) {
	ch := team.Change{
		Machine: rec.Machine, Entity: rec.Entity, Row: rec.Row, From: rec.From, To: rec.To, Trigger: rec.Trigger,
		At: rec.Time, Actor: team.Actor(rec.Actor),
	}
	if err := json.Unmarshal(rec.Data, &ch.Body); err != nil {
		return ch, fmt.Errorf("change %d of %s cannot be read by this version of fairlead: %w; run the version that wrote it", rec.Seq, rec.Entity, err)
	}
	return ch, nil
}

// renderSum is the identity of the bytes that a projection is written as.
func renderSum(f control.File) string { return string(stateOf(f).Sum()) }
