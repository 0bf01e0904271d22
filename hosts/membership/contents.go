package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
)

// tree says which content of a run's checkout other hosts have. It is on disk, because the leader may start again while
// a session works there. It is removed when no host has a checkout any longer and the run is archived.
type tree struct {
	Host   string                   `json:"host,omitempty"`   // which had it last; empty: none has
	Sent   transfer.Sent            `json:"sent,omitzero"`    // what both sides have
	Before map[string]transfer.Sent `json:"before,omitempty"` // by host: those that had it before
	// those of the run's folder that Host and this machine both had, each with its content
	Files map[string]string `json:"files,omitempty"`
	Newer string            `json:"newer,omitempty"` // the previous leader, if it may have newer files than this machine
}

// on is what a host has of the checkout, as far as it came back.
func (t tree) on(name string) (sent transfer.Sent, known bool) {
	if t.Host == name {
		return t.Sent, true
	}
	sent, known = t.Before[name]
	return sent, known
}

// copies are the trees of all runs.
type copies struct {
	folder string
	log    *slog.Logger

	writes sync.Mutex // one change of a file at a time

	mu     sync.Mutex
	moving map[string]chan struct{} // by run, or RUN@HOST: closed when a transfer of its files is over
	begins map[host.Token]bool      // leases of sessions that start on other hosts: the files are there
}

func (c *copies) file(run string) string { return filepath.Join(c.folder, run+".json") }

// of reads where a run's checkout was last; the zero value: on no other host.
func (c *copies) of(run string) (t tree) {
	if err := file.LoadJSON(c.file(run), &t); err != nil {
		c.log.Warn("it is not known which files of a run another host has; all are sent again", "run", run, "error", err)
		return tree{}
	}
	return t
}

// add notes what both sides have of a run's checkout.
func (c *copies) add(run, on string, sent transfer.Sent) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	t := c.of(run)
	if t.Host != "" && t.Host != on {
		if t.Before == nil {
			t.Before = map[string]transfer.Sent{}
		}
		t.Before[t.Host] = t.Sent
	}
	delete(t.Before, on)
	if t.Host != on {
		t.Files = nil
	}
	t.Host, t.Sent = on, sent
	return c.set(run, t)
}

// gave notes which files of the run's folder this machine and the host both had. It is the host that has the run's checkout.
func (c *copies) gave(run, on string, files map[string]string) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	t := c.of(run)
	if t.Host != on {
		return nil
	}
	t.Files = files
	return c.set(run, t)
}

// has notes what another host has of a run's checkout beside the one that works in it.
func (c *copies) has(run, on string, sent transfer.Sent) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	t := c.of(run)
	if t.Host == on {
		t.Sent = sent
		return c.set(run, t)
	}
	if t.Before == nil {
		t.Before = map[string]transfer.Sent{}
	}
	t.Before[on] = sent
	return c.set(run, t)
}

// newer notes which host may have newer files of a run than this machine; empty: none.
func (c *copies) newer(run, on string) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	t := c.of(run)
	if t.Newer == on {
		return nil
	}
	t.Newer = on
	return c.set(run, t)
}

// forgetPlace notes that another machine has led: sessions of the run may have worked elsewhere since.
func (c *copies) forgetPlace(run string) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	t := c.of(run)
	if t.Host == "" {
		return nil
	}
	if t.Before == nil {
		t.Before = map[string]transfer.Sent{}
	}
	t.Before[t.Host] = t.Sent
	return c.set(run, tree{Before: t.Before, Newer: t.Newer})
}

func (c *copies) set(run string, t tree) error {
	if err := os.MkdirAll(filepath.Dir(c.file(run)), 0o700); err != nil {
		return err
	}
	return file.StoreJSON(c.file(run), t)
}

// checkout is what a run has on this machine.
type checkout struct {
	run, dir, files string
	report          string   // of the step that it is about
	others          []string // reports of other steps, below the root
}

// carried is the checkout of a run, and the run's folder; empty: it has none that can be on another machine. One outside of the repository
// stays here.
func (c *Controller) carried(t *team.Team, run string) (dir, files string) {
	if dir, files = runs.Checkout(t, run); c.is != nil && filepath.IsAbs(below(c.places.Root, dir)) {
		return "", ""
	}
	return dir, files
}

func (c *Controller) checkoutOf(ctx context.Context, s team.Session) (is checkout, err error) {
	run, step, _ := team.StepOf(s.For)
	is.run = run
	err = c.loop.View(ctx, func(t *team.Team) {
		is.dir, is.files = c.carried(t, run)
		if r := t.Runs[run]; r != nil {
			is.report = r.ReportFile(workflow.StepID(step))
			for i := range r.Plan.Steps {
				if id := r.Plan.Steps[i].ID; id != workflow.StepID(step) {
					is.others = append(is.others, below(c.places.Root, r.ReportFile(id)))
				}
			}
		}
	})
	if err == nil && is.dir == "" {
		err = fmt.Errorf("run %s no longer has its own checkout", is.run)
	}
	return is, err
}

// lock lets one transfer of a run's files happen at a time.
func (c *copies) lock(ctx context.Context, run string) (unlock func(), err error) {
	for {
		unlock, busy := c.tryLock(run)
		if busy == nil {
			return unlock, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryLock is lock unless a transfer is in progress, which closes busy when it is over.
func (c *copies) tryLock(run string) (unlock func(), busy <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if busy := c.moving[run]; busy != nil {
		return nil, busy
	}
	done := make(chan struct{})
	c.moving[run] = done
	return func() {
		c.mu.Lock()
		delete(c.moving, run)
		c.mu.Unlock()
		close(done)
	}, nil
}

// send brings a run's files to the host of a session that is to start there. If another session works in them there,
// its files are the newer ones.
func (c *Controller) send(ctx context.Context, lease host.Lease, s team.Session) error {
	is, err := c.checkoutOf(ctx, s)
	if err != nil {
		return err
	}
	unlock, err := c.lockAfterLate(ctx, lease, is.run)
	if err != nil {
		return err
	}
	defer unlock()
	copied, err := c.copies.lock(ctx, is.run+"@"+lease.Host) // an older state is on its way there
	if err != nil {
		return err
	}
	defer copied()
	if err := c.keepNewer(ctx, lease.Host, is); err != nil {
		return err
	}
	there := c.trees(lease.Host)
	shared, both := false, map[string]string(nil)
	if err := c.loop.View(ctx, func(t *team.Team) { shared = c.copies.shared(t, is.run, lease) }); err != nil {
		return err
	}
	if now := c.copies.of(is.run); shared && now.Host == lease.Host {
		both = now.Files
	} else if !shared {
		var was *transfer.Sent
		if now.Host == lease.Host {
			was = &now.Sent
		}
		sent, err := there.Send(ctx, is.run, is.dir, was)
		if err != nil {
			return fmt.Errorf("send the files of run %s to host %s: %w", is.run, lease.Host, answered(err))
		}
		if err := c.copies.add(is.run, lease.Host, sent); err != nil {
			return err
		}
	}
	// A report of an earlier attempt is set aside here by now. It must not count for this one there.
	files, err := there.SendFiles(ctx, c.places.Root, []string{below(c.places.Root, is.files)}, both, below(c.places.Root, is.report))
	if err != nil {
		return fmt.Errorf("send the folder of run %s to host %s: %w", is.run, lease.Host, answered(err))
	}
	c.copies.mu.Lock()
	c.copies.begins[lease.Token] = true
	c.copies.mu.Unlock()
	return c.copies.gave(is.run, lease.Host, files)
}

// shared reports whether another session of a run works on the host of a lease, or is about to with the files that are there. One that only
// has its place there does not count: its files are not there yet.
func (c *copies) shared(t *team.Team, run string, lease host.Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.begins, func(is host.Token, _ bool) bool { return t.Hosts.Leases[is.Session].Token != is })
	for id, other := range t.Hosts.Leases {
		if s := openSession(t, id); s != nil && other.Host == lease.Host && id != lease.Session {
			if of, _, _ := team.StepOf(s.For); of == run && (s.PID != 0 || c.begins[other.Token]) {
				return true
			}
		}
	}
	return false
}

// below is a path below the root of the repository, as hosts are told it.
func below(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path // it is refused there
	}
	return filepath.ToSlash(rel)
}

// BringBack fetches what a session on another host has made, when it has ended: its output, the checkout, the reports
// and artifacts. If the checkout here has changed meanwhile, the error names the ref at which the other one is.
func (c *Controller) BringBack(ctx context.Context, s team.Session) error {
	_, away := c.LeaseOf(s.ID)
	if away {
		c.outputs.spooled(ctx, s.ID)
	}
	ctx, stop := c.untilLost(ctx, s.ID)
	defer stop()
	if err := c.awaitFiles(ctx, s); err != nil || !away {
		return err
	}
	return c.fetch(ctx, s)
}

// untilLost is a context that ends when a session is lost with its host.
func (c *Controller) untilLost(ctx context.Context, id string) (_ context.Context, stop func()) {
	name := c.HostOf(id)
	if name == "" {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.Lost(id):
			cancel(&remote.Lost{Host: name})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// awaitFiles waits until the newest files of a session's run have arrived, unless they come with what the session has made. It is open
// until then, so its step has no result that older files could replace.
func (c *Controller) awaitFiles(ctx context.Context, s team.Session) error {
	run, step, _ := team.StepOf(s.For)
	why, agent := "", ""
	if err := c.loop.View(ctx, func(t *team.Team) {
		if filesOnThirdHost(t, run, c.HostOf(s.ID)) {
			why, agent = view.AwayWords(t, run), agentOf(t, s.ID)
		}
	}); err != nil || why == "" {
		return err
	}
	c.mu.Lock()
	c.waits[s.ID] = waiting{WaitingSession: view.WaitingSession{Session: s.ID, Agent: agent, Run: run, Step: step, Why: why}}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, s.ID)
	}()
	if err := c.loop.Until(ctx, func(t *team.Team) bool { return !filesOnThirdHost(t, run, c.HostOf(s.ID)) }); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// filesOnThirdHost reports whether the newest files of a run are neither here nor on the host with a name.
func filesOnThirdHost(t *team.Team, run, name string) bool {
	away := t.Notes[run].Away
	return away != "" && away != name
}

// agentOf is the agent of an open session; empty: it has none.
func agentOf(t *team.Team, id string) string {
	for name, a := range t.Agents {
		if a.Open(id) != nil {
			return name
		}
	}
	return ""
}

func (c *Controller) fetch(ctx context.Context, s team.Session) error {
	lease, away := c.LeaseOf(s.ID)
	if !away {
		return nil
	}
	is, err := c.checkoutOf(ctx, s)
	if err != nil {
		if !lease.Home { // otherwise it works in no checkout, on the previous leader
			return err
		}
		is.files = filepath.Dir(filepath.Dir(is.report))
		if !strings.HasPrefix(below(c.places.Root, is.files), transfer.RunsDir+"/") { // it is no step, or one of a run of another folder
			return nil
		}
	}
	unlock, err := c.copies.lock(ctx, is.run)
	if err != nil {
		return err
	}
	defer unlock()
	if now, _ := c.LeaseOf(s.ID); now.Token != lease.Token { // it was over while this waited
		return &remote.Lost{Host: lease.Host}
	}
	if is.dir == "" {
		is.others = nil // they were made there, too
		return c.fetchResults(ctx, lease.Host, is, nil)
	}
	newest := ""
	if err := c.loop.View(ctx, func(t *team.Team) { newest = t.Notes[is.run].Away }); err != nil {
		return err
	}
	if newest == lease.Host {
		if err := transfer.Drop(c.places.Root, below(c.places.Root, is.report)); err != nil {
			return err
		}
		if err := c.bringFiles(ctx, lease.Host, is); err != nil {
			return fmt.Errorf("fetch the files of run %s from host %s: %w", is.run, lease.Host, answered(err))
		}
		return c.arrived(ctx, is.run)
	}
	now := c.copies.of(is.run)
	switch {
	case now.Host == lease.Host:
	case !c.is.Stream:
		return fmt.Errorf("it is not known which files of run %s were sent to host %s", is.run, lease.Host)
	default: // the previous leader sent them; what this machine has is a copy of the same
		now.Files = nil
		repo := worktree.Git{Dir: c.places.Root}
		if now.Sent, err = transfer.Snapshot(ctx, repo, c.places.Root, is.dir, is.run); err == nil {
			err = transfer.KeepNew(ctx, repo, now.Sent)
		}
		if err != nil {
			return err
		}
	}
	there := c.trees(lease.Host)
	_, step, _ := team.StepOf(s.For)
	ref := "refs/fairlead/steps/" + is.run + "/" + step + "/" + strconv.FormatUint(s.Lease, 10)
	sent, err := there.Fetch(ctx, is.dir, now.Sent, ref)
	if err != nil {
		return fmt.Errorf("fetch the files of run %s from host %s: %w", is.run, lease.Host, answered(err))
	}
	if err := c.copies.add(is.run, lease.Host, sent); err != nil {
		return err
	}
	return c.fetchResults(ctx, lease.Host, is, now.Files)
}

// fetchResults brings the reports and artifacts of a step here. The report that is here may be of an earlier attempt: if the host has none,
// the step has none. Reports of other steps come when those end: what the host has of them is what it was sent, or it is about to come.
// What it has as both machines had it is left out, too: here that may be newer by now.
func (c *Controller) fetchResults(ctx context.Context, name string, is checkout, both map[string]string) error {
	report := below(c.places.Root, is.report)
	err := transfer.Drop(c.places.Root, report)
	if err == nil {
		if both == nil {
			both = map[string]string{}
		}
		delete(both, report) // it is not here
		err = c.trees(name).FetchFiles(ctx, c.places.Root, resultsOf(c.places.Root, is.files), both, is.others...)
		if noted := c.copies.gave(is.run, name, both); noted != nil {
			return errors.Join(err, noted)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fetch the reports of run %s from host %s: %w", is.run, name, answered(err))
	}
	return nil
}

// resultsOf are the folders of a run's folder that its steps write.
func resultsOf(root, files string) []string {
	return []string{below(root, filepath.Join(files, "reports")), below(root, filepath.Join(files, "artifacts"))}
}

// answered marks an error that the host found: what is missing is missing there.
func answered(err error) error {
	if _, is := errors.AsType[*wire.Problem](err); is {
		return fmt.Errorf("it answers: %w", err)
	}
	return err
}

func (c *Controller) trees(name string) *remote.Trees {
	return &remote.Trees{Root: c.places.Root, Dial: c.dial(name)}
}
