package journal

import (
	"context"
	"fmt"
)

// Broken is the error for a history that is not what was appended. Seq is the first change that is
// wrong, missing or out of place. Nothing is repaired automatically.
type Broken struct {
	Seq uint64
	Why string
}

func (b *Broken) Error() string {
	return fmt.Sprintf("journal is damaged at change %d: %s; keep the file, copy it aside, and restore a backup or start a new journal",
		b.Seq, b.Why)
}

// Chain follows a history and checks each change against the previous one. Its zero value is before
// the first change; to start later, set Seq and Hash to those of the previous change. Use it from
// one goroutine at a time.
type Chain struct {
	Seq  uint64 // of the last change that was taken
	Hash Hash   // of the same

	sum Summer
}

// Take checks the next change and returns a *Broken if it does not fit.
func (c *Chain) Take(ch *Change) error {
	if ch.Seq != c.Seq+1 {
		return &Broken{c.Seq + 1, fmt.Sprintf("it is missing (the next one stored is %d)", ch.Seq)}
	}
	if want := c.sum.Sum(c.Hash, ch); want != ch.Hash {
		return &Broken{ch.Seq, fmt.Sprintf("its hash is %s, its contents give %s", ch.Hash, want)}
	}
	c.Seq, c.Hash = ch.Seq, ch.Hash
	return nil
}

// Verify reads the whole journal and returns a *Broken that names the first bad Seq: a hash that
// does not follow, a gap in Seq or Version, or an end that is not the Head. Any other error means
// that the journal could not be read.
func Verify(ctx context.Context, j Journal) error {
	seq, hash, err := j.Head(ctx)
	if err != nil {
		return fmt.Errorf("verify journal: %w", err)
	}
	if seq == 0 { // Until 0 would mean: to the end as it is by then
		return nil
	}
	var chain Chain
	versions := map[string]uint64{}
	for c, err := range j.Read(ctx, Query{Until: seq}) {
		if err != nil {
			return fmt.Errorf("verify journal: %w", err)
		}
		if err := chain.Take(&c); err != nil {
			return fmt.Errorf("verify journal: %w", err)
		}
		if want := versions[c.Entity] + 1; c.Version != want {
			return fmt.Errorf("verify journal: %w",
				&Broken{c.Seq, fmt.Sprintf("%s has version %d where %d follows", c.Entity, c.Version, want)})
		}
		versions[c.Entity] = c.Version
	}
	if chain.Seq != seq || chain.Hash != hash {
		return fmt.Errorf("verify journal: %w", &Broken{chain.Seq + 1, fmt.Sprintf("the end is said to be %d with hash %s", seq, hash)})
	}
	return nil
}
