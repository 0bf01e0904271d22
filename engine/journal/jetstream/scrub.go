package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
)

// faultsShown is how many faults Scrub lists: a copy that lost a block has thousands, and they are repaired together.
const faultsShown = 10

var errMissing = errors.New("it is missing")

// Scrub compares the copy of the server that leads with a journal that verifies, such as a mirror, message by message. It
// reads everything, and changes nothing. If all is well, the only finding is OK. To look at each copy, have each
// server lead in turn: see [Lead].
func Scrub(ctx context.Context, nc *nats.Conn, stream string, mirror journal.Journal) []sqlite.Finding {
	r, err := reach(ctx, nc, stream)
	if err != nil {
		return []sqlite.Finding{{What: err.Error(), Do: "fix that, then compare again"}}
	}
	s := scrub{
		server: "the server", stream: stream, versions: map[string]uint64{},
		message: func(ctx context.Context, place uint64) ([]byte, error) {
			if place > r.stream.CachedInfo().State.LastSeq {
				return nil, errEnd
			}
			return r.message(ctx, place, readWait)
		},
	}
	info := r.stream.CachedInfo()
	if c := info.Cluster; c != nil && c.Leader != "" {
		s.server = c.Leader
	}
	if d := lost(info); d != nil {
		s.found(d)
	}
	return s.run(ctx, mirror, 0)
}

// run compares the copy with the mirror. The copy must have the mirror's changes up to one; 0: all.
func (s *scrub) run(ctx context.Context, mirror journal.Journal, until uint64) []sqlite.Finding {
	next, stop := iter.Pull2(mirror.Read(ctx, journal.Query{}))
	defer stop()
	s.next, s.until = next, until
	last, err := s.all(ctx)
	if err != nil {
		s.findings = append(s.findings, sqlite.Finding{What: err.Error(), Do: "fix that, then compare again"})
	}
	if len(s.findings) == 0 {
		s.findings = append(s.findings,
			sqlite.Finding{OK: true, What: fmt.Sprintf("the copy of %s is whole: %d messages, %d changes", s.server, last, s.chain.Seq)})
	}
	return s.findings
}

// scrub is a comparison under way.
type scrub struct {
	server   string
	stream   string
	message  func(ctx context.Context, place uint64) ([]byte, error)
	until    uint64
	short    bool // it has all messages up to its end, and the mirror goes on
	next     func() (journal.Change, error, bool)
	chain    journal.Chain     // of the mirror, as far as it was read
	versions map[string]uint64 // of the entities, likewise
	taker    taker
	findings []sqlite.Finding
}

func (s *scrub) found(d *Damage) {
	d.Server = s.server
	if d.Do == "" {
		d.Do = "let another server lead the stream and compare there; if its copy is complete, repair this one"
	}
	if len(s.findings) < faultsShown {
		s.findings = append(s.findings, sqlite.Finding{What: d.fault(), Do: d.Do, Seq: d.Seq})
	}
}

// all compares all messages, and says which is the last.
func (s *scrub) all(ctx context.Context) (last uint64, err error) {
	for {
		place := last + 1
		raw, err := s.message(ctx, place)
		if errors.Is(err, errEnd) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("compare stream %s with the mirror, message %d: %w", s.stream, place, err)
		}
		last = place
		var b *batch
		if err = errMissing; raw != nil {
			b, err = s.taker.add(raw)
		}
		if err != nil {
			s.taker = taker{}
			s.found(&Damage{Place: place, Seq: s.chain.Seq + 1, What: err.Error()})
		} else if b != nil {
			if err := s.compare(place, b); err != nil {
				return 0, err
			}
		}
	}
	if len(s.findings) > 0 || s.until != 0 && s.chain.Seq >= s.until {
		return last, nil
	}
	more, err := s.advance()
	if err == nil && more {
		s.short = true
		s.found(&Damage{Place: last + 1, Seq: s.chain.Seq, What: "it is missing: the mirror goes on, and the stream ends"})
	}
	return last, err
}

// advance reads one change of the mirror.
func (s *scrub) advance() (more bool, err error) {
	c, err, more := s.next()
	if err == nil && more {
		s.versions[c.Entity] = c.Version
		err = s.chain.Take(&c)
	}
	var broken *journal.Broken
	if errors.As(err, &broken) {
		return false,
			fmt.Errorf("the mirror is damaged at change %d (%s): end Fairlead on this host, move the mirror away, and it is fetched anew",
				broken.Seq, broken.Why)
	}
	return more, err
}

// compare reads the mirror up to the end of a batch. The batch is that of the mirror if its changes, behind those that the mirror
// has before them, give the mirror's hash.
func (s *scrub) compare(place uint64, b *batch) error {
	var sum journal.Summer
	for more := true; more && s.chain.Seq+1 < b.first; {
		var err error
		if more, err = s.advance(); err != nil {
			return err
		}
	}
	if s.chain.Seq+1 != b.first {
		s.found(&Damage{
			Place: place, Seq: b.first,
			What: fmt.Sprintf("it begins with change %d, where %d follows", b.first, s.chain.Seq+1),
		})
		return nil
	}
	hash := s.chain.Hash
	if hash != b.before {
		s.found(&Damage{Place: place, Seq: b.first, What: "it does not follow the change before it"})
	}
	for i := range b.changes {
		hash = sum.Sum(hash, &b.changes[i])
		more, err := s.advance()
		if err != nil {
			return err
		}
		if c := &b.changes[i]; !more { // the mirror lags: what it lacks must fit at least
			if s.versions[c.Entity]++; s.versions[c.Entity] != c.Version {
				s.found(&Damage{
					Place: place, Seq: c.Seq,
					What: fmt.Sprintf("%s has version %d where %d follows", c.Entity, c.Version, s.versions[c.Entity]),
				})
			}
			s.chain.Seq, s.chain.Hash = c.Seq, hash
		} else if hash != s.chain.Hash {
			s.found(&Damage{Place: place, Seq: s.chain.Seq, What: fmt.Sprintf("its change %d is not that of the mirror", s.chain.Seq)})
			hash = s.chain.Hash
		}
	}
	if hash != b.hash {
		s.found(&Damage{Place: place, Seq: b.last(), What: "its hash is not that of its changes"})
	}
	return nil
}
