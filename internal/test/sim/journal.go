package sim

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/journal/memory"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/team"
)

// engineJournal is one engine's access to the journal. A batch that waits at the gate is not stored
// yet, and a power failure loses it.
type engineJournal struct {
	*memory.Journal
	w          *world
	l          *engineRun
	clockAhead time.Duration // how far the clock was ahead when it wrote the last change
}

func (j *engineJournal) Append(_ context.Context, batch []journal.Change, expect ...journal.Expect) (last uint64, err error) {
	err = j.w.act(j.l, "append", func() (err error) {
		last, err = j.store(batch, expect)
		return err
	})
	if err != nil {
		return 0, err
	}
	return last, nil
}

func (j *engineJournal) store(batch []journal.Change, expect []journal.Expect) (uint64, error) {
	last, err := j.Journal.Append(context.Background(), batch, expect...)
	if err != nil {
		return 0, err
	}
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	for i, rec := range batch {
		rec.Seq = last - uint64(len(batch)-1-i)
		j.w.stored(j.l, rec)
	}
	j.w.checkCrew(j.w.batch)
	j.w.batch = nil
	return last, nil
}

// Read adds clockAhead to the time of the last change, as if the clock had been set back since.
func (j *engineJournal) Read(ctx context.Context, q journal.Query) iter.Seq2[journal.Change, error] {
	if j.clockAhead == 0 {
		return j.Journal.Read(ctx, q)
	}
	return func(yield func(journal.Change, error) bool) {
		head, _, _ := j.Head(ctx)
		for ch, err := range j.Journal.Read(ctx, q) {
			if ch.Seq == head {
				ch.Time = ch.Time.Add(j.clockAhead)
			}
			if !yield(ch, err) {
				return
			}
		}
	}
}

// SaveSnapshot compares the engine's team with the replayed one.
func (j *engineJournal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if j.w.isDead(j.l) {
		return errDead
	}
	var kept struct{ Team json.RawMessage }
	if err := json.Unmarshal(s.Data, &kept); err == nil {
		j.w.mu.Lock()
		if s.Seq == j.w.head {
			ours, _ := json.Marshal(j.w.truth)
			j.w.check(replayIsLive, string(ours) == string(kept.Team), "the engine's team at change %d differs from a replay of its journal:\n  journal %s\n  engine  %s", s.Seq, ours, kept.Team)
		}
		j.w.mu.Unlock()
	}
	return j.Journal.SaveSnapshot(ctx, s)
}

// stored applies a stored change to the replayed team; the caller holds the lock.
func (w *world) stored(l *engineRun, rec journal.Change) {
	ch := team.Change{Machine: rec.Machine, Entity: rec.Entity, Row: rec.Row, From: rec.From, To: rec.To, Trigger: rec.Trigger, At: rec.Time, Actor: team.Actor(rec.Actor)}
	if err := json.Unmarshal(rec.Data, &ch.Body); err != nil {
		w.broken(replayIsLive, "cannot decode change %d: %v", rec.Seq, err)
		return
	}
	w.head = rec.Seq
	w.notef("stored %d: %s %s -> %s  %s %s", rec.Seq, rec.Entity, rec.From, rec.To, rec.Row, rec.Trigger)
	if set := ch.Body.Team; set != nil && rec.Trigger == "daemon_started" {
		l.epoch = set.Epoch
	}
	w.checkStored(l, ch)
	w.checkQuestion(ch)
	w.checkEnd(ch)
	w.checkChannelChange(ch)
	w.checkCrewOrderAllowed(ch)
	w.truth.Apply(ch)
	w.batch = append(w.batch, ch)
	w.remember(ch)
}

// remember keeps what later checks need.
func (w *world) remember(ch team.Change) {
	name := afterSlash(ch.Entity)
	switch body := ch.Body; {
	case body.Presence != nil:
		w.noteDocument(body.Presence)
	case body.Control != nil:
		w.noted[body.Control.Value.Desired.Note] = true
		w.noted[body.Control.Seen], w.noted[body.Control.Swapped] = true, true
		if body.Control.Overtaken != nil {
			w.noted[body.Control.Overtaken.Note] = true
		}
	case body.Session != nil && body.Session.Phase == session.Open:
		if _, known := w.openedAt[body.Session.ID]; !known {
			w.openedAt[body.Session.ID] = time.Now()
		}
		w.desiredOf[body.Session.ID] = w.truth.Agents[name].Control.Took
	case body.Used != nil:
		w.counted[body.Used.Session] += body.Used.Usage.InputTokens
		day := name + " " + body.Used.Usage.Day
		w.countedDay[day] += body.Used.Usage.InputTokens
		u := w.truth.Agents[name].Usage
		w.check(countedOnce, u.InputTokens == w.countedDay[name+" "+u.Day], "%s used %d tokens on %s, but reported %d", name, u.InputTokens, u.Day, w.countedDay[day])
	}
}

func afterSlash(s string) string { return s[strings.IndexByte(s, '/')+1:] }

// agentIn returns the agent of a session: coder for coder-17.
func agentIn(session string) string { return session[:strings.LastIndexByte(session, '-')] }
