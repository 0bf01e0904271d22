package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

const (
	leaseFile     = "lease.json"
	leaseBytesMax = 4 << 10 // a token is a few short words
)

// lease is lease.json of a session's folder.
type lease struct {
	Token  host.Token  `json:"token"`
	OnLost host.OnLost `json:"on_lost"`
}

// readLease returns nil without an error if the session has none. An agent may have replaced the file.
func (s *Sessions) readLease(session string) (*lease, error) {
	dir, _, err := file.OpenFolder(s.folder(session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.CloseFolder(dir)
	text, err := file.Read(dir, leaseFile, leaseBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var l lease
	if err == nil {
		err = json.Unmarshal(text.Bytes, &l)
	}
	if err == nil && l.Token.Session != session {
		err = errors.New("it belongs to another session")
	}
	if err != nil {
		return nil, fmt.Errorf("read the lease of session %s: %w", session, err)
	}
	return &l, nil
}

func (s *Sessions) writeLease(l lease) error { return NoteLease(s.Shims.Folder, l.Token, l.OnLost) }

// NoteLease keeps the lease of a session in its folder, before its process starts. sessions has those of all.
func NoteLease(sessions string, token host.Token, lost host.OnLost) error {
	l := lease{token, lost}
	folder := filepath.Join(sessions, token.Session)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = file.StoreJSON(filepath.Join(folder, leaseFile), l)
	}
	if err != nil {
		return fmt.Errorf("write the lease of session %s: %w", l.Token.Session, err)
	}
	return nil
}

// Resume adopts the sessions that still run under a lease, when the daemon starts. epoch is the highest that this host
// has seen.
func (s *Sessions) Resume(ctx context.Context, epoch uint64) error {
	found, err := s.Shims.Orphans(ctx, func(session string) bool {
		l, err := s.readLease(session)
		if err != nil {
			s.Log.Error("a session on this host cannot be adopted; see its folder", "session", session, "error", err)
		}
		return !shim.IsSession(session) || l == nil
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Found != sessionhost.Running && f.Silent == "" {
			continue
		}
		err := s.with(ctx, f.Session, func(one *session) error {
			_, err := s.adopt(ctx, f.Session, one, epoch)
			return err
		})
		if err != nil { // the leader's requests try it again
			s.Log.Error("a session that may still run does not answer", "session", f.Session, "error", err)
		}
	}
	return nil
}

// Known is what this host knows of the sessions that began here and are not acknowledged, for host.Guard.Duty.
func (s *Sessions) Known() []host.Local {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []host.Local
	for _, one := range s.all {
		if proc := one.proc.Load(); proc != nil {
			known = append(known, host.Local{
				Token: proc.lease.Token, Waits: proc.lease.OnLost == host.Wait, Shim: true, Began: true, Used: true, Over: isDone(proc),
			})
		}
	}
	return known
}

// End ends a session's process, because its lease does not hold. Its shim continues without this daemon.
func (s *Sessions) End(ctx context.Context, id string) error {
	return s.with(ctx, id, func(one *session) error {
		if proc := one.proc.Load(); proc != nil {
			return proc.End(ctx, -1)
		}
		return nil
	})
}

// Forget removes the folders of sessions that ended before a time, and that keeps does not name. The leader has their output:
// it was copied before their end was acknowledged.
func (s *Sessions) Forget(ctx context.Context, before time.Time, keeps func(session string) bool) error {
	entries, err := os.ReadDir(s.Shims.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the sessions of this host: %w", err)
	}
	var faults []error
	for _, entry := range entries {
		id := entry.Name()
		if !shim.IsSession(id) || keeps(id) {
			continue
		}
		if l, err := s.readLease(id); err != nil || l == nil {
			continue // it has no leader, or a person has to look at it: Resume reports it
		}
		if err := s.with(ctx, id, func(one *session) error {
			over, err := shim.EndedBefore(s.folder(id), before)
			if err != nil || !over {
				return err
			}
			s.keep(one, nil)
			return errors.Join(os.RemoveAll(s.folder(id)), s.leave(id))
		}); err != nil {
			faults = append(faults, fmt.Errorf("remove the folder of session %s: %w", id, err))
		}
	}
	return errors.Join(faults...)
}

func isDone(proc sessionhost.Process) bool {
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}

var errNotHere = &wire.Problem{Code: wire.NotHere, Why: "this host has no such session"}
