package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

const (
	copiesEvery = 5 * time.Second // until a leader looks at the copies of the journal again
	checkEvery  = 24 * time.Hour
	repairAgain = time.Minute // after a repair that failed: the other engine hosts have to be complete

	connectWait  = 15 * time.Second // in which the other engine hosts connect to a leader that begins
	connectAgain = 3 * time.Second
)

// mirror keeps the journal's mirror of a host that does not lead, until ctx ends. It waits until the journal is in the stream.
func (e *engines) mirror(ctx context.Context, path string) {
	for said := ""; ctx.Err() == nil; retry.Rest(ctx, mirrorAgain) {
		server, stream := e.moved(ctx)
		if server == nil || !stream {
			continue
		}
		err := e.verify(ctx, path)
		var j journal.Journal
		if err == nil {
			j, err = e.opened(server.Open(ctx, path, func(error) {}))
		}
		if err == nil {
			e.verifyCopies(ctx, server, j)
			err = j.Close()
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			e.log.Error("this engine host cannot write its verified copy of the journal; it tries again", "error", err)
		}
	}
}

// verify looks once in a process whether the mirror of this host is what was stored. If it is not, it is put aside, and the
// stream gives it anew: nothing of a damaged one is read.
func (e *engines) verify(ctx context.Context, path string) error {
	e.mu.Lock()
	looked := e.looked
	e.mu.Unlock()
	if info, err := os.Stat(path); looked || errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	for _, f := range sqlite.Check(ctx, path) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.OK {
			continue
		}
		aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405")
		e.log.Error("the copy of the journal on this host is damaged: it is renamed, and the journal is fetched from the other engine hosts", "damage", f.What, "aside", filepath.Base(aside))
		if _, err := sqlite.Move(path, aside); err != nil {
			return fmt.Errorf("rename the damaged copy of the journal: %w", err)
		}
		break
	}
	e.mu.Lock()
	e.looked = true
	e.mu.Unlock()
	return nil
}

// copyServer is an *engine.Replica.
type copyServer interface {
	Check(ctx context.Context, mirror journal.Journal) ([]sqlite.Finding, error)
	Repair(ctx context.Context, mirror journal.Journal) error
}

// leadServer is an *engine.Replica, of a host that leads.
type leadServer interface {
	copyServer
	Others() []string
}

// verifyCopies compares the copy of this host's server with the mirror, at once and once a day until ctx ends, and has a damaged one
// fetched anew. If one of them cannot be read it returns after a while, so that the mirror is looked at and opened again.
func (e *engines) verifyCopies(ctx context.Context, server copyServer, mirror journal.Journal) {
	for ctx.Err() == nil {
		damaged, unread, again := e.compare(ctx, server, mirror)
		switch {
		case again == 0:
			return
		case unread:
			retry.Rest(ctx, repairAgain) // to look at all of the mirror is work
			return
		case damaged:
			if err := server.Repair(ctx, mirror); err != nil {
				again = repairAgain
				e.log.Error("the damaged copy of the journal on this host could not be fetched again; the host tries again", "error", err)
			} else {
				e.log.Info("the copy of the journal on this host was fetched again from the other engine hosts, and is complete")
			}
		}
		retry.Rest(ctx, again)
	}
}

// beginVerifying begins verifyLeading, if this host has claimed the lead.
// Call end before the journal is closed: a reload opens another one.
// cannot says why another host cannot lead now; empty: it can.
func (e *engines) beginVerifying(mirror journal.Journal, cannot func(leads *engine.Lead, name string) unfit) (end func() error) {
	e.mu.Lock()
	leads, server, term := e.leads.Load(), e.server, e.term
	e.mu.Unlock()
	if leads == nil {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(term)
	ended := make(chan struct{})
	give := func(name string) (unfit, error) {
		if no := cannot(leads, name); no != "" {
			return no, nil
		}
		return "", leads.Give(ctx, name)
	}
	go func() { defer close(ended); e.verifyLeading(ctx, server, mirror, give) }()
	return func() error { stop(); <-ended; return nil }
}

// verifyLeading is verifyCopies for a host that leads. If its copy or its mirror is damaged it hands the lead to another engine host that
// can lead, and repairs it as a host.
func (e *engines) verifyLeading(ctx context.Context, server leadServer, mirror journal.Journal, give func(name string) (unfit, error)) {
	for ctx.Err() == nil {
		damaged, unread, again := e.compare(ctx, server, mirror)
		if again == 0 {
			return
		}
		if (damaged || unread) && ctx.Err() == nil {
			again = repairAgain
			if e.handOver(ctx, server.Others(), give) {
				return
			}
		}
		retry.Rest(ctx, again)
	}
}

// handOver asks other engine hosts to lead until one does. The connections of a leader that has just begun need some seconds, so those
// without one are asked again.
func (e *engines) handOver(ctx context.Context, others []string, give func(name string) (unfit, error)) bool {
	for end := time.Now().Add(connectWait); ctx.Err() == nil; retry.Rest(ctx, connectAgain) {
		last, away := !time.Now().Before(end), []string(nil)
		for _, name := range others {
			no, err := give(name)
			switch {
			case no == notConnected && !last:
				away = append(away, name)
			case no != "":
				e.log.Warn("the journal on this host is damaged, and that host cannot lead", "host", name, "why", no.words(name))
			case err != nil:
				e.log.Warn("the journal on this host is damaged, and that host could not take over", "host", name, "error", err)
			default:
				e.log.Warn("another engine host is asked to lead, because the journal on this host is damaged", "host", name)
				return true
			}
		}
		if others = away; len(others) == 0 {
			return false
		}
	}
	return false
}

// compare compares, unless that was done within a day, and says what it finds. again is when it is to be called again; 0: the
// mirror is closed.
func (e *engines) compare(ctx context.Context, server copyServer, mirror journal.Journal) (damaged, unread bool, again time.Duration) {
	closed := func() bool {
		_, _, err := mirror.Head(ctx)
		return errors.Is(err, journal.ErrClosed)
	}
	if closed() {
		return false, false, 0
	}
	e.mu.Lock()
	rests := checkEvery - time.Since(e.compared)
	e.mu.Unlock()
	if rests > 0 {
		return false, false, rests
	}
	found, err := server.Check(ctx, mirror)
	if closed() {
		return false, false, 0
	}
	if err != nil {
		return false, false, repairAgain
	}
	for _, f := range found {
		switch {
		case f.OK:
		case f.Seq == 0:
			unread = true
			e.log.Error("the server's copy of the journal on this host could not be compared", "error", f.What)
		default:
			damaged = true
			e.log.Error("the server's copy of the journal on this host is damaged", "damage", f.What)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if unread {
		e.looked = false
	} else if !damaged {
		e.compared = time.Now()
	}
	return damaged, unread, checkEvery
}

// lookAtCopies keeps what is shown of the copies of the journal, and has this host's server lead their streams, until ctx ends.
func (e *engines) lookAtCopies(ctx context.Context, server *engine.Replica) {
	for ctx.Err() == nil {
		copies, err := server.Copies(ctx)
		if err != nil {
			copies = nil // it is not known
		}
		e.copies.Store(&copies)
		if err := server.Draw(ctx); err != nil && ctx.Err() == nil {
			e.log.Debug("the server of this host does not lead the streams of the journal and the lease; it tries again", "error", err)
		}
		retry.Rest(ctx, copiesEvery)
	}
}

// copiesSeen are the copies of the journal as they were some seconds ago.
func (e *engines) copiesSeen() []cluster.Copy {
	if copies := e.copies.Load(); copies != nil {
		return *copies
	}
	return nil
}
