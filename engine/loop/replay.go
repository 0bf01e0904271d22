package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// snapshotFormat changes when the shape of a snapshot does. A snapshot of another format is ignored,
// and the whole journal is read.
const snapshotFormat = "team/3"

type snapshot struct {
	Team     *team.Team        `json:"team"`
	Versions map[string]uint64 `json:"versions"`
}

// NewTeam is an empty team that renders files as this loop's team does.
func (l *Loop) NewTeam() *team.Team {
	t := team.New(l.opts.FileSum)
	t.Crew.Render, t.Zone = l.opts.DocumentSum, l.opts.Zone
	return t
}

// Replay makes the team as the journal has it.
func (l *Loop) Replay(ctx context.Context) error {
	l.team = team.New(l.opts.FileSum)
	if err := l.restore(ctx); err != nil {
		return err
	}
	l.team.Crew.Render, l.team.Zone, l.team.RunsOnly = l.opts.DocumentSum, l.opts.Zone, l.opts.RunsOnly
	for rec, err := range l.opts.Journal.Read(ctx, journal.Query{After: l.head}) {
		if err != nil {
			return fmt.Errorf("read the journal after %d: %w", l.head, err)
		}
		ch, err := ChangeOf(rec)
		if err != nil {
			return err
		}
		l.team.Apply(ch)
		l.head = rec.Seq
		l.versions[rec.Entity] = rec.Version
		l.clock.seed(rec.Time)
		l.unsaved++
	}
	l.ring.begin(l.head)
	return nil
}

// NoSnapshots forgets how many changes were read, so that a dry run writes no snapshot.
func (l *Loop) NoSnapshots() { l.unsaved = 0 }

// restore begins from the newest snapshot, if it belongs to this journal.
func (l *Loop) restore(ctx context.Context) error {
	snap, ok, err := l.opts.Journal.Latest(ctx)
	if err != nil {
		return fmt.Errorf("read the newest snapshot: %w", err)
	}
	if !ok || snap.Format != snapshotFormat {
		return nil
	}
	var at *journal.Change
	for ch, err := range l.opts.Journal.Read(ctx, journal.Query{After: snap.Seq - 1, Until: snap.Seq}) {
		if err != nil {
			return fmt.Errorf("read change %d, which a snapshot was taken at: %w", snap.Seq, err)
		}
		at = &ch
	}
	if at == nil || at.Hash != snap.Hash {
		return nil
	}
	kept := snapshot{Team: team.New(l.opts.FileSum)}
	read := json.NewDecoder(bytes.NewReader(snap.Data))
	read.DisallowUnknownFields() // what a newer version has kept there is not left out
	if err := read.Decode(&kept); err != nil {
		l.log.Warn("the snapshot cannot be read; the whole journal is read instead", "seq", snap.Seq, "error", err)
		return nil
	}
	if kept.Team == nil || kept.Team.Agents == nil || kept.Versions == nil {
		l.log.Warn("the snapshot is incomplete; the whole journal is read instead", "seq", snap.Seq)
		return nil
	}
	l.team, l.versions, l.head = kept.Team, kept.Versions, snap.Seq
	l.clock.seed(at.Time)
	return nil
}

// snapshotBeside keeps the team as it is now, so that the next start reads less. A snapshot is only a
// cache: if it cannot be kept, that is logged and the journal is read instead.
func (l *Loop) snapshotBeside() {
	snap, err := l.Snapshot(l.ctx)
	l.unsaved = 0 // also after a failure: the next attempt comes after as many changes, not with every batch
	if err != nil {
		l.log.Warn("no snapshot was made; the next start reads more", "error", err)
		return
	}
	l.Go(func(ctx context.Context) { l.keep(ctx, snap) })
}

// lastSnapshot keeps the team as it is when the loop ends.
func (l *Loop) lastSnapshot(ctx context.Context) {
	if l.unsaved == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	snap, err := l.Snapshot(ctx)
	if err != nil {
		l.log.Warn("no snapshot was made; the next start reads more", "error", err)
		return
	}
	l.keep(ctx, snap)
}

func (l *Loop) keep(ctx context.Context, snap journal.Snapshot) {
	if err := l.opts.Journal.SaveSnapshot(ctx, snap); err != nil && ctx.Err() == nil {
		l.log.Warn("a snapshot was not kept; the next start reads more", "seq", snap.Seq, "error", err)
	}
}

// Snapshot is the team as it is now. Only functions that run in the loop may call it.
func (l *Loop) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	seq, hash, err := l.opts.Journal.Head(ctx)
	if err != nil {
		return journal.Snapshot{}, err
	}
	if seq != l.head {
		return journal.Snapshot{}, fmt.Errorf("the journal ends at %d and this team at %d: another program wrote to it", seq, l.head)
	}
	data, err := json.Marshal(snapshot{Team: l.team, Versions: l.versions})
	if err != nil {
		return journal.Snapshot{}, err
	}
	return journal.Snapshot{Seq: seq, Hash: hash, Format: snapshotFormat, Data: data}, nil
}

// hostRows are the ids of the rules of hosts.
var hostRows = sync.OnceValue(func() map[string]bool {
	ids := map[string]bool{}
	for _, row := range host.Table.Rows() {
		ids[row.ID] = true
	}
	return ids
})

// ChangeOf is the change that a record keeps.
func ChangeOf(rec journal.Change) (change.Change, error) {
	ch := change.Change{
		Machine: rec.Machine, Entity: rec.Entity, Row: rec.Row, From: rec.From, To: rec.To, Trigger: rec.Trigger,
		At: rec.Time, Actor: rec.Actor,
	}
	var err error
	if ch.Body, err = team.BodyOf(rec.Data); err != nil {
		return ch, fmt.Errorf("change %d of %s cannot be read by this version of fairlead: %w; run the version that wrote it", rec.Seq,
			rec.Entity, err)
	}
	if change.As[host.Body](ch.Body) != nil && !hostRows()[ch.Row] { // of a leader of a newer version
		return ch, fmt.Errorf("change %d of %s is by rule %s, which this version of fairlead does not know; run the version that wrote it",
			rec.Seq, rec.Entity, rec.Row)
	}
	return ch, nil
}
