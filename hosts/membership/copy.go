package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	copySoon  = 300 * time.Millisecond // so long changes are collected until files are sent
	copyAgain = 5 * time.Second        // until it is tried again, after a fault
)

// copying keeps the copies of runs and branches on another engine host up to date, so that it can go on with them when it leads. It
// sends one after the other, beside everything else.
type copying struct {
	*Controller
	host     string
	wake     chan struct{}                // capacity 1: a run has changed
	branches string                       // what was sent last
	files    map[string]map[string]string // by run: the files that the host has, each with its time and size; none: it is asked
	pulled   bool                         // if it has led: all its branches were looked at since its incarnation began
	was      uint64                       // its incarnation: after another one it may have lost what was sent

	// mu of the controller guards these.
	have   map[string]uint64 // by run: the changes after which its files were sent
	woken  bool              // a run has changed, and it was not looked at since
	later  bool              // a run was left out, because a session of it is about to start there, or was lost there
	behind int               // runs whose newest files are not there
	// runs of which sessions worked here and there at the same time: what those here have made may be missing there
	mixed map[string]bool
}

// copyTo begins to keep copies on the engine hosts that have none. mu is held.
func (c *Controller) copyTo() {
	for _, e := range c.engines {
		if c.copying == nil || e.Name == c.is.Name || c.copying[e.Name] != nil {
			continue
		}
		is := c.newCopying(e.Name)
		c.copying[e.Name] = is
		c.loop.Go(is.run)
	}
}

func (c *Controller) newCopying(name string) *copying {
	return &copying{
		Controller: c, host: name, wake: make(chan struct{}, 1), files: map[string]map[string]string{},
		have: map[string]uint64{}, mixed: map[string]bool{},
	}
}

// noteMixed notes of which runs sessions work here and on other engine hosts, when one of them gets its place. It is called in the loop's
// goroutine, and mu is held.
func (c *Controller) noteMixed(lease host.Lease) {
	s := openSession(c.loop.State(), lease.Session)
	if s == nil {
		return
	}
	run, _, _ := team.StepOf(s.For)
	names := c.at(c.loop.State(), run, "")
	for _, name := range names {
		if is := c.copying[name]; is != nil && slices.Contains(names, c.is.Name) {
			is.mixed[run] = true
		}
	}
}

// wakeCopies lets the copies follow changes. It may be called in the loop's goroutine.
func (c *Controller) wakeCopies(changes []change.Change) {
	ofRuns, ofPlaces := false, false
	for i := range changes {
		switch changes[i].Body.(type) {
		case *workflow.Body, *team.NoteSet:
			ofRuns = true
		case *team.Session, *host.Body:
			ofPlaces = true
		}
	}
	if !ofRuns && !ofPlaces {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range changes {
		if of := change.As[host.Body](changes[i].Body); of != nil && of.Lease != nil {
			c.noteMixed(*of.Lease)
		}
	}
	for _, is := range c.copying {
		if !ofRuns && !is.later {
			continue
		}
		is.woken = true
		select {
		case is.wake <- struct{}{}:
		default:
		}
	}
}

func (c *copying) run(ctx context.Context) {
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	said := ""
	for all := true; ; {
		err := c.pass(ctx, all)
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != said {
			c.log.Warn("the newest files of runs could not be sent to an engine host, which cannot continue these runs without them; the leader tries again", "host", c.host, "error", err)
		}
		said, all = "", false
		var again <-chan time.Time
		if err != nil {
			said, again = err.Error(), time.After(copyAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-c.wake:
			retry.Rest(ctx, copySoon)
		case <-tick.C:
			all = true
		}
		c.mu.Lock()
		gone := !slices.ContainsFunc(c.engines, func(e cluster.EngineHost) bool { return e.Name == c.host })
		if gone {
			delete(c.copying, c.host)
		}
		c.mu.Unlock()
		if gone {
			return
		}
	}
}

// errAway is why nothing is sent to a host.
var errAway = errors.New("it is not connected")

// copied is a run whose newest files another host needs.
type copied struct {
	checkout
	n    uint64 // its changes
	away bool   // this machine needs them from there
	why  string // what the run waits for then

	completed bool
}

// pass sends what the host lacks. all sends the files of runs in progress, too.
func (c *copying) pass(ctx context.Context, all bool) error {
	var due []copied
	led := uint64(0) // the incarnation of a host that has led and may have branches that are not here
	if err := c.loop.View(ctx, func(t *team.Team) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.woken, c.later = false, false
		h := t.Hosts.Hosts[c.host]
		if h != nil && h.Incarnation != c.was {
			c.was, c.branches, c.pulled = h.Incarnation, "", false
			clear(c.have)
			clear(c.files)
		}
		if h != nil && h.Branches {
			led = h.Incarnation
		}
		for _, id := range t.RunIDs() {
			one := copied{checkout: checkout{run: id}, n: t.Notes[id].Changes, away: t.Notes[id].Away == c.host}
			n, known := c.have[id]
			if t.Notes[id].Away != "" && !one.away || known && n == one.n && !one.away && (!all || c.beside(t, id, "") == "") {
				continue
			}
			if one.dir, one.files = c.Controller.carried(t, id); one.dir != "" {
				one.why, one.completed = view.AwayWords(t, id), t.Runs[id].Status() == workflow.IsCompleted
				due = append(due, one)
			}
		}
		for id := range c.have {
			if t.Runs[id] == nil {
				delete(c.have, id)
				delete(c.files, id)
			}
		}
	}); err != nil {
		return err
	}
	slices.SortStableFunc(due, func(a, b copied) int { // those that go on come first
		switch {
		case a.completed == b.completed:
			return 0
		case a.completed:
			return 1
		}
		return -1
	})
	c.isBehind(due, 0)
	if c.is.Connected(c.host) == "" {
		if led > 0 && all { // a person may have merged what has arrived
			if _, err := c.Controller.forward(ctx, c.host, !c.pulled); err != nil {
				return fmt.Errorf("the branches: %w", err)
			}
		}
		return errAway
	}
	var faults []error
	lacks := 0
	for len(due) > 0 {
		one := due[0]
		due = due[1:]
		var err error
		if one.away {
			err = c.tryBring(ctx, one)
		} else {
			done := false
			if err = c.keepNewer(ctx, one); err == nil {
				done, err = c.send(ctx, one)
			}
			if !done {
				lacks++
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("run %s: %w", one.run, answered(err)))
		}
		c.isBehind(due, lacks)
	}
	there := c.trees(c.host)
	sent, err := there.SendBranches(ctx, c.is.Name, c.branches, config.FileName)
	if err == nil {
		c.branches = sent
	}
	if err == nil && led > 0 && (all || !c.pulled) {
		err = c.pull(ctx, there, led)
		c.pulled = c.pulled || err == nil
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("the branches: %w", answered(err)))
	}
	return errors.Join(faults...)
}

// pull fetches the branches of a host that has led, until none is left there. What a person commits there later is not this machine's:
// after the first time only those that were left move.
func (c *copying) pull(ctx context.Context, there *remote.Trees, incarnation uint64) error {
	if err := there.FetchBranches(ctx, c.host); err != nil {
		return err
	}
	left, err := c.Controller.forward(ctx, c.host, !c.pulled)
	if err != nil || left > 0 {
		return err
	}
	_, err = c.loop.Submit(ctx, byHosts, "", host.Fetched{Name: c.host, Incarnation: incarnation})
	return err
}

// isBehind notes how many runs lack files there: those that are due, and more.
func (c *copying) isBehind(due []copied, more int) {
	n := more
	for i := range due {
		if !due[i].away {
			n++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = n
}

// send sends the files of a run, unless the host has newer ones: those of a session that works there, or of one that was lost with it.
// done is false as long as the host lacks some.
func (c *copying) send(ctx context.Context, one copied) (done bool, err error) {
	unlock, err := c.copies.lock(ctx, one.run+"@"+c.host)
	if err != nil {
		return false, err
	}
	defer unlock()
	works, later, mixed := false, false, false
	if err := c.loop.View(ctx, func(t *team.Team) {
		c.mu.Lock()
		defer c.mu.Unlock()
		starts := slices.Contains(c.Controller.at(t, one.run, ""), c.host) || misses(t.Hosts.Hosts[c.host], one.run)
		works = starts && worksOn(t, one.run, c.host)
		later, mixed = starts && !works, c.mixed[one.run]
		c.later = c.later || later
		if !starts { // all is sent now, or before the next session begins there
			delete(c.mixed, one.run)
		}
	}); err != nil || later {
		return false, err
	}
	there := c.trees(c.host)
	switch _, err := os.Lstat(one.dir); {
	case works: // what people have answered meanwhile is only here
		if _, err := there.SendFiles(ctx, c.places.Root, []string{below(c.places.Root, filepath.Join(one.files, "manual_inputs"))},
			nil); err != nil || mixed { // what steps have made here is missing there
			return false, err
		}
	case errors.Is(err, fs.ErrNotExist): // the run is over
		if err := c.sendFiles(ctx, there, one); err != nil {
			return false, err
		}
		if !one.completed { // it may go on one day, and what its checkout had is here
			c.sent(one)
			return true, nil
		}
	case err != nil:
		return false, err
	default:
		if err := c.sendAll(ctx, there, one); err != nil {
			return false, err
		}
	}
	if err := there.Mark(ctx, one.run, one.n); err != nil {
		return false, err
	}
	c.sent(one)
	return true, nil
}

func (c *copying) sendAll(ctx context.Context, there *remote.Trees, one copied) error {
	is, known := c.copies.of(one.run).on(c.host)
	was := &is
	if !known { // nothing of it is there, or no longer
		delete(c.files, one.run)
		was = nil
	}
	if err := c.sendFiles(ctx, there, one); err != nil {
		return err
	}
	sent, err := there.Send(ctx, one.run, one.dir, was)
	if err != nil {
		return err
	}
	return c.copies.has(one.run, c.host, sent)
}

// sendFiles sends what has changed in the folder of a run.
func (c *copying) sendFiles(ctx context.Context, there *remote.Trees, one copied) error {
	files, err := there.SendNew(ctx, c.places.Root, []string{below(c.places.Root, one.files)}, c.files[one.run])
	if err == nil {
		c.files[one.run] = files
	}
	return err
}

func (c *copying) sent(one copied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have[one.run] = one.n
}

// worksOn reports whether a session of a run works on a host: its files are there.
func worksOn(t *team.Team, run, name string) bool {
	works := func(s *team.Session) bool {
		of, _, _ := team.StepOf(s.For)
		return of == run && s.PID != 0 && t.Hosts.Leases[s.ID].Host == name
	}
	for _, a := range t.Agents {
		if slices.ContainsFunc(a.Sessions(), works) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(t.Pool.Sessions)), works)
}

// tryBring says why the run still waits, if it does.
func (c *copying) tryBring(ctx context.Context, one copied) error {
	err := c.bring(ctx, one)
	if err == nil || ctx.Err() != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.waits {
		if w.Run == one.run && w.needs == nil {
			w.Why = one.why + ". The last attempt failed: " + answered(err).Error()
			c.waits[id] = w
		}
	}
	return err
}

// bring fetches the files of a run from the previous leader, which is back, and lets the run continue.
func (c *copying) bring(ctx context.Context, one copied) error {
	unlock, err := c.copies.lock(ctx, one.run)
	if err != nil {
		return err
	}
	defer unlock()
	waits, works := false, false
	if err := c.loop.View(ctx, func(t *team.Team) {
		waits, works = t.Notes[one.run].Away == c.host, worksOn(t, one.run, c.is.Name)
	}); err != nil || !waits {
		return err // they have come with a session's, or a person did not wait
	}
	moving, stop := c.whileWanted(ctx, one.run)
	defer stop()
	if works {
		err = c.Controller.bringBeside(moving, c.host, one.checkout)
	} else {
		err = c.Controller.bringFiles(moving, c.host, one.checkout)
	}
	if moving.Err() != nil {
		return ctx.Err() // a person did not wait
	}
	if err != nil {
		return err
	}
	return c.Controller.arrived(ctx, one.run)
}

// whileWanted is a context that ends when a person has given up the files of a run and the host that has them is away. Otherwise a
// transfer would wait for the host, and the run for the transfer.
func (c *copying) whileWanted(ctx context.Context, run string) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		for c.loop.Until(ctx, func(t *team.Team) bool { return t.Notes[run].Away != c.host }) == nil && c.is.Connected(c.host) != "" &&
			retry.Rest(ctx, copyAgain) {
		}
		stop()
	}()
	return ctx, stop
}

// keepNewer keeps the previous leader's files of a run that has continued without them, before anything is sent there.
func (c *copying) keepNewer(ctx context.Context, one copied) error {
	if c.copies.of(one.run).Newer != c.host {
		return nil
	}
	unlock, err := c.copies.lock(ctx, one.run)
	if err != nil {
		return err
	}
	defer unlock()
	moving, stop := c.whileWanted(ctx, one.run)
	defer stop()
	if err = c.Controller.keepNewer(moving, c.host, one.checkout); moving.Err() != nil {
		return errAway
	}
	return err
}

// keepNewer does so for a caller that has the lock of the run's files.
func (c *Controller) keepNewer(ctx context.Context, name string, one checkout) error {
	if c.copies.of(one.run).Newer != name {
		return nil
	}
	err := c.bringBeside(ctx, name, one)
	if _, is := errors.AsType[*wire.Problem](err); is { // such as files that are too large: nothing waits for that
		c.log.Warn("the previous leader's files of a run could not be kept", "run", one.run, "host", name, "error", answered(err))
		return c.copies.newer(one.run, "")
	}
	return err
}

// bringBeside keeps the previous leader's files of a run separately from those here: its checkout at a ref, and files of the run that
// differ. It takes the files that are missing here. The caller must have the lock of the run's files.
func (c *Controller) bringBeside(ctx context.Context, name string, one checkout) error {
	ref := lateRefs + one.run + "/leader/" + name
	here, err := transfer.Snapshot(ctx, worktree.Git{Dir: c.places.Root}, c.places.Root, one.dir, one.run)
	isNew := false
	if err == nil {
		isNew, err = c.trees(name).FetchLate(ctx, here, ref)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // otherwise the checkout was removed at its end
		return err
	}
	busy := map[string]bool{} // reports that steps are about to write
	if err := c.loop.View(ctx, func(t *team.Team) {
		r := t.Runs[one.run]
		for i := 0; r != nil && i < len(r.Steps); i++ {
			if r.Steps[i].State == workflow.Running {
				busy[below(c.places.Root, r.ReportFile(r.Plan.Steps[i].ID))] = true
			}
		}
	}); err != nil {
		return err
	}
	kept, err := c.keepFiles(ctx, name, one.run, "leader-"+name, func(file string, missing bool) bool { return missing && !busy[file] })
	if err != nil {
		return err
	}
	if isNew || kept > 0 {
		if !isNew {
			ref = ""
		}
		c.log.Warn("a run has continued here, so the previous leader's files are kept separately", "run", one.run, "host", name, "ref", ref,
			"files", kept)
	}
	return c.copies.newer(one.run, "")
}

// bringFiles replaces reports and artifacts by those of the host. It takes other files of the run only if they are missing here: answers
// that people have given here are newer. The caller must have the lock of the run's files.
func (c *Controller) bringFiles(ctx context.Context, name string, one checkout) error {
	over := false
	if err := c.loop.View(ctx,
		func(t *team.Team) { over = t.Runs[one.run] != nil && t.Runs[one.run].Status() == workflow.IsCancelled }); err != nil {
		return err
	}
	sent, err := c.trees(name).Pull(ctx, one.run, below(c.places.Root, one.dir))
	switch {
	case err == nil:
		if err := c.copies.add(one.run, name, sent); err != nil { // a session may work there
			return err
		}
	case over && errors.Is(err, fs.ErrNotExist): // its checkout was removed at its end
	default:
		return err
	}
	results := resultsOf(c.places.Root, one.files)
	kept, err := c.keepFiles(ctx, name, one.run, "leader-"+name, func(file string, missing bool) bool {
		return missing || slices.ContainsFunc(results, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
	})
	if err != nil {
		return err
	}
	if kept > 0 {
		c.log.Info("files of a run that differ from the previous leader's: the previous leader's files are kept separately", "run", one.run,
			"host", name, "files", kept)
	}
	return c.copies.newer(one.run, "")
}

// arrived lets a run continue when its files have arrived.
func (c *Controller) arrived(ctx context.Context, run string) error {
	_, err := c.loop.Do(ctx, loop.Request{Event: &team.Event{Run: run, Actor: byHosts, What: team.FilesHere{}}})
	if loop.IsAnswer(err) {
		return nil // a person was faster
	}
	return err
}
