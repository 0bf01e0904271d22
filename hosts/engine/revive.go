package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/hosts/node"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	storeEvery  = 2 * time.Second  // between two looks whether the server has its store
	reviveMost  = time.Minute      // between two restarts of a server that gives its store up each time
	reviveSound = 10 * time.Minute // with its store; then what was before is no reason to wait
)

// storeServer is a *Replica.
type storeServer interface {
	Storeless() bool
	Damage() error
	Revive(ctx context.Context) error
}

// Storeless reports whether the server of this host should have its store, and has not.
func (s *Replica) Storeless() bool { return s.node.Storeless() }

// Damage is what was damaged in the store when the server last started; nil: nothing.
func (s *Replica) Damage() error { return s.node.Damage() }

// CheckStore says which files of the groups of servers are damaged in the folder of a cluster, whose server does not run.
func CheckStore(folder string) error {
	return checkStore(node.StoreIn(filepath.Join(folder, StoreFolder)))
}

// checkStore names the first damaged file of each group.
func checkStore(store string) error {
	damaged, err := jetstream.CheckGroups(store)
	if err != nil || len(damaged) == 0 {
		return err
	}
	var said []string
	for _, d := range damaged {
		said = append(said, d.Error())
	}
	return errors.New(strings.Join(said, "; "))
}

// errIncomplete says that the other engine hosts cannot give a damaged store again now.
var errIncomplete = errors.New("it is fetched again when Fairlead runs on all other engine hosts and they are complete; if they are lost for good, `fairlead down` and `fairlead cluster leave --others-lost` continue with the copy of this host")

// Revive restarts the server with its store, if the disk has room. Damaged files of it are put aside first, if the other servers can give
// them again: all of what was acknowledged is there then.
func (s *Replica) Revive(ctx context.Context) error {
	if s.node.Damage() == nil {
		return s.node.Revive(ctx)
	}
	damaged, err := jetstream.CheckGroups(s.node.Store())
	if err != nil {
		return err
	}
	if len(damaged) > 0 {
		err := s.node.Others(ctx)
		aside := ""
		if err == nil {
			aside, err = jetstream.Renew(ctx, s.nc, s.node.Store(), s.node.Name(), damaged)
		}
		if err != nil {
			return fmt.Errorf("%w; %w: %w", s.node.Damage(), errIncomplete, err)
		}
		s.kept(aside)
	}
	return s.node.Revive(ctx)
}

// kept logs where damaged files are.
func (s *Replica) kept(aside string) {
	if aside != "" {
		s.o.Log.Warn("the damaged files of the server of this host were put aside and are fetched again from the other engine hosts; the folder may be removed", "aside", aside)
	}
}

// guard restarts the server when it has given up its store, as when the disk was full, until ctx ends. Without that the host would have no
// copy of the journal and no vote until its daemon restarts, and the loss of another one would stop the team.
func (s *Replica) guard(ctx context.Context, server storeServer) {
	next, began, said := time.Time{}, time.Time{}, ""
	again := retry.Pauses{First: storeEvery, Most: reviveMost}
	for retry.Rest(ctx, storeEvery) {
		now := time.Now()
		switch {
		case !server.Storeless():
			if s.fault.Swap(nil) != nil {
				began = now
				s.o.Log.Info("the server of this host has its store again, and fetches what it lacks from the other engine hosts")
			}
			if now.Sub(began) > reviveSound {
				again.Reset()
			}
			said = ""
			continue
		case s.fault.Load() == nil && server.Damage() != nil:
			s.foundDamage(server.Damage())
		case s.fault.Load() == nil:
			s.setFault("it has given up its store, perhaps because the disk was full; it is restarted when there is room on the disk")
			s.o.Log.Error("the server of this engine host has given up its store, perhaps because the disk was full: this host has no copy of the journal until it is restarted, which is tried when there is room")
		}
		if now.Before(next) {
			continue
		}
		if err := server.Revive(ctx); errors.Is(err, errIncomplete) {
			s.setFault(err.Error()) // nothing was restarted, so the next try need not wait
			continue
		} else if err != nil {
			if s.setFault(err.Error()); err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				s.o.Log.Error("the server of this engine host could not get its store again; it is tried again", "error", err)
			}
		}
		next = time.Now().Add(again.Next())
	}
}

// foundDamage notes that the server runs without its store, because that is damaged.
func (s *Replica) foundDamage(damage error) {
	s.setFault(fmt.Sprintf("%v; it is fetched again from the other engine hosts", damage))
	s.o.Log.Error("files of the server of this engine host are damaged: this host has no copy of the journal and does not lead until they are fetched again, which is tried when all other engine hosts are complete", "damage", damage)
}

func (s *Replica) setFault(why string) { s.fault.Store(&why) }

// Fault says why the server of this host has no store; empty: it has one.
func (s *Replica) Fault() string {
	if why := s.fault.Load(); why != nil {
		return *why
	}
	return ""
}
