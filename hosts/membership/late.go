package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// fetching is what fetches from one host what its lost sessions have left there.
type fetching struct {
	*Controller
	host  string
	stop  context.CancelFunc
	again bool // the host has changed since it looked; mu guards it
}

// fetchMissing begins to fetch from the hosts that are back, and stops with those that are lost again. It runs in the loop's
// goroutine, and mu is held.
func (c *Controller) fetchMissing(t *team.Team) {
	for name, h := range t.Hosts.Hosts {
		is := c.fetches[name]
		switch {
		case h.State == host.Lost || h.State == host.Left:
			if is != nil {
				is.stop()
			}
		case len(h.Missing) == 0 || h.State == host.Doubted:
		case is != nil:
			is.again = true
		default:
			c.fetchFrom(name)
		}
	}
}

// fetchFrom begins to fetch from a host. mu is held.
func (c *Controller) fetchFrom(name string) {
	ctx, stop := context.WithCancel(c.loop.Context())
	is := &fetching{Controller: c, host: name, stop: stop}
	c.fetches[name] = is
	c.loop.Go(func(context.Context) { is.run(ctx) })
}

func (c *fetching) run(ctx context.Context) {
	defer c.stop()
	for again := true; again; {
		err := c.all(ctx)
		c.mu.Lock()
		if again, c.again = c.again, false; err != nil || !again {
			if delete(c.fetches, c.host); again && c.loop.Context().Err() == nil { // it was lost, and is back
				c.Controller.fetchFrom(c.host)
			}
			again = false
		}
		c.mu.Unlock()
	}
}

// all fetches what is missing now. The error is that of ctx, or of the loop.
func (c *fetching) all(ctx context.Context) error {
	var missing []host.Missing
	epoch := uint64(0)
	if err := c.loop.View(ctx, func(t *team.Team) { missing, epoch = slices.Clone(t.Hosts.Hosts[c.host].Missing), t.Epoch }); err != nil {
		return err
	}
	for _, m := range missing {
		if err := c.one(ctx, m, epoch); err != nil {
			return err
		}
	}
	return nil
}

// one fetches what a lost session has left on its host, which is back, and reports it. The report is shown and has no effect. It names
// what could not be kept.
func (c *fetching) one(ctx context.Context, m host.Missing, epoch uint64) error {
	there := c.remote(m.Host)
	report := host.Report{Token: m.Token}
	lacks := func(what string, err error) {
		if err != nil {
			report.Lacks = strings.TrimPrefix(report.Lacks+"; ", "; ") + what + ": " + answered(err).Error()
		}
	}
	ending, err := there.EndedLate(ctx, m.Token, epoch)
	var none *wire.Problem
	began := true
	switch {
	case err == nil:
		report.What = endedHow(ending)
	case errors.As(err, &none) && none.Code == wire.NotHere:
		report.What, began = "it never began there", false
	default:
		lacks("how it ended", err)
	}
	if began {
		c.outputs.spooled(ctx, m.Session)
		report.Output, err = c.outputs.rest(ctx, m.Session,
			func(ctx context.Context, at int64) (io.ReadCloser, error) { return there.Output(ctx, m.Session, at) })
		lacks("its output", err)
	}
	unlock := func() {}
	if run, step := team.StepNamed(m.For); began && run != "" {
		if unlock, err = c.copies.lock(ctx, run); err != nil {
			return err
		}
		report.Ref, err = c.tree(ctx, m, run, step)
		lacks("its folder", err)
		report.Files, err = c.Controller.keepFiles(ctx, m.Host, run, m.Session, nil)
		lacks("its reports", err)
	}
	if ctx.Err() == nil { // otherwise all of it is fetched again
		_, err = c.loop.Submit(ctx, byHosts, "", report)
	}
	unlock()
	if err = errors.Join(err, ctx.Err()); err != nil || !began {
		return err
	}
	if err := there.Forget(ctx, m.Session, epoch); err != nil && ctx.Err() == nil {
		c.log.Warn("a host could not remove what was fetched of a session; it keeps it for a week", "host", m.Host, "session", m.Session,
			"error", err)
	}
	return ctx.Err()
}

func endedHow(is session.Exit) string {
	switch {
	case is.Lost:
		return "how it ended is not known: " + is.Why
	case is.Signal != "":
		return "it was ended by " + is.Signal
	}
	return fmt.Sprintf("it ended with exit status %d", is.Code)
}

// tree keeps the checkout of a lost session at a ref; empty: all of it had arrived before.
func (c *fetching) tree(ctx context.Context, m host.Missing, run, step string) (ref string, err error) {
	archived := false
	if err := c.loop.View(ctx, func(t *team.Team) { archived = t.Runs[run] == nil }); err != nil {
		return "", err
	}
	was, known := c.copies.of(run).on(m.Host)
	if archived || !known {
		return "", fmt.Errorf("the run is archived; what only host %s has stays there under refs/fairlead/left/%s", m.Host, run)
	}
	ref = lateRefs + run + "/" + step + "/" + m.Session
	isNew, err := c.trees(m.Host).FetchLate(ctx, was, ref)
	if err != nil || !isNew {
		ref = ""
	}
	return ref, err
}

const (
	lateRefs   = "refs/fairlead/late/"
	lateFolder = "late"
)

// keepFiles keeps the reports and artifacts of a run on a host that differ from those here. With takes it fetches all files of the run,
// and takes says which of them are stored as files of the run here.
func (c *Controller) keepFiles(ctx context.Context, from, run, as string, takes func(name string, missing bool) bool) (kept int,
	err error,
) {
	files := ""
	if err := c.loop.View(ctx, func(t *team.Team) { _, files = c.carried(t, run) }); err != nil || files == "" {
		return 0, err
	}
	to := filepath.Join(c.is.Folder, lateFolder, run, as)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return 0, err
	}
	dirs := resultsOf(c.places.Root, files)
	if takes != nil {
		dirs = []string{below(c.places.Root, files)}
	}
	if err := c.trees(from).FetchFiles(ctx, to, dirs, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, errors.Join(err, os.RemoveAll(to))
	}
	err = filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name := below(to, path)
		here := filepath.Join(c.places.Root, name)
		same, err := sameFile(path, here)
		if err == nil && !same && takes != nil {
			if _, missing := os.Lstat(here); takes(name, errors.Is(missing, fs.ErrNotExist)) {
				same, err = transfer.Put(c.places.Root, name, path)
			}
		}
		if err != nil || !same {
			kept++
			return err
		}
		return os.Remove(path)
	})
	if err == nil && kept == 0 {
		err = os.RemoveAll(to)
	}
	return kept, err
}

// sameFile reports whether two files have the same content. In the place of the second one may be anything.
func sameFile(a, b string) (same bool, err error) {
	if info, err := os.Lstat(b); err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // it is not read
	}
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	return file.SameContent(x, y)
}

// misses reports whether a host has to be asked for what a session of a run left there.
func misses(h *host.Host, run string) bool {
	return h != nil && slices.ContainsFunc(h.Missing, func(m host.Missing) bool { of, _ := team.StepNamed(m.For); return of == run })
}

// lockAfterLate takes the lock of a run's files after the files that its lost sessions left on a host are fetched, because files that
// are sent there replace them.
func (c *Controller) lockAfterLate(ctx context.Context, lease host.Lease, run string) (unlock func(), err error) {
	for {
		if err := c.loop.Until(ctx, func(t *team.Team) bool {
			counts, _ := t.Hosts.Counts(lease.Token)
			return !counts || !misses(t.Hosts.Hosts[lease.Host], run)
		}); err != nil {
			return nil, err
		}
		if unlock, err = c.copies.lock(ctx, run); err != nil {
			return nil, err
		}
		late := false
		if err := c.loop.View(ctx, func(t *team.Team) {
			counts, _ := t.Hosts.Counts(lease.Token)
			late = counts && misses(t.Hosts.Hosts[lease.Host], run)
		}); err != nil || !late {
			if err != nil {
				unlock()
			}
			return unlock, err
		}
		unlock()
	}
}

// forgetLate removes what was kept of the lost sessions of a run.
func (c *Controller) forgetLate(ctx context.Context, run string) error {
	return errors.Join(transfer.Forget(ctx, worktree.Git{Dir: c.places.Root}, lateRefs+run+"/"),
		os.RemoveAll(filepath.Join(c.is.Folder, lateFolder, run)))
}
