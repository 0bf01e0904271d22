package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fairlead-dev/fairlead/cluster/remote"
	"github.com/fairlead-dev/fairlead/cluster/wire"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/worktree/carry"
)

// tree says which content of a run's checkout a host has. It is on disk, because the leader may start again while a
// session works there.
type tree struct {
	Host string     `json:"host"`
	Sent carry.Sent `json:"sent"` // what both sides have
}

func (c *HostController) treeFile(run string) string {
	return filepath.Join(c.is.Folder, "trees", run+".json")
}

// treeOf reads where a run's checkout was last; the zero value: on no other host.
func (c *HostController) treeOf(run string) (t tree) {
	if err := file.LoadJSON(c.treeFile(run), &t); err != nil {
		c.log.Warn("it is not known which files of a run another host has; all are sent again", "run", run, "error", err)
		return tree{}
	}
	return t
}

func (c *HostController) setTree(run string, t tree) error {
	if err := os.MkdirAll(filepath.Dir(c.treeFile(run)), 0o700); err != nil {
		return err
	}
	return file.StoreJSON(c.treeFile(run), t)
}

// checkout is what a run has on this machine.
type checkout struct {
	run, dir, files string
}

func (c *HostController) checkoutOf(ctx context.Context, s team.Session) (is checkout, err error) {
	is.run, _, _ = team.StepOf(s.For)
	err = c.View(ctx, func(t *team.Team) { is.dir, is.files = c.Hooks.Checkout(t, is.run) })
	if err == nil && is.dir == "" {
		err = fmt.Errorf("run %s has no checkout of its own any longer", is.run)
	}
	return is, err
}

// lock lets one transfer of a run's files happen at a time.
func (c *HostController) lock(run string) (unlock func()) {
	c.mu.Lock()
	for c.moving[run] != nil {
		busy := c.moving[run]
		c.mu.Unlock()
		<-busy
		c.mu.Lock()
	}
	done := make(chan struct{})
	c.moving[run] = done
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.moving, run)
		c.mu.Unlock()
		close(done)
	}
}

// send brings a run's files to the host of a session that is to start there. If another session works in them there,
// its files are the newer ones.
func (c *HostController) send(ctx context.Context, lease host.Lease, s team.Session) error {
	is, err := c.checkoutOf(ctx, s)
	if err != nil {
		return err
	}
	defer c.lock(is.run)()
	there := c.trees(lease.Host)
	shared := ""
	if err := c.View(ctx, func(t *team.Team) { shared = c.beside(t, is.run, s.ID) }); err != nil {
		return err
	}
	if shared == "" {
		var was *carry.Sent
		if now := c.treeOf(is.run); now.Host == lease.Host {
			was = &now.Sent
		}
		sent, err := there.Send(ctx, is.run, is.dir, was)
		if err != nil {
			return fmt.Errorf("send the files of run %s to host %s: %w", is.run, lease.Host, answered(err))
		}
		if err := c.setTree(is.run, tree{Host: lease.Host, Sent: sent}); err != nil {
			return err
		}
	}
	if err := there.SendFiles(ctx, c.places.Root, []string{c.below(is.files)}); err != nil {
		return fmt.Errorf("send the folder of run %s to host %s: %w", is.run, lease.Host, answered(err))
	}
	return nil
}

// below is a path below the repository, as hosts are told it.
func (c *HostController) below(path string) string {
	rel, err := filepath.Rel(c.places.Root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path // it is refused there
	}
	return filepath.ToSlash(rel)
}

// BringBack fetches what a session on another host has made, when it has ended: its output, the checkout, the reports
// and artifacts. If the checkout here has changed meanwhile, the error names the ref at which the other one is.
func (c *HostController) BringBack(ctx context.Context, s team.Session) error {
	if _, away := c.LeaseOf(s.ID); !away {
		return nil
	}
	c.spooled(ctx, s.ID)
	return c.fetch(ctx, s)
}

func (c *HostController) fetch(ctx context.Context, s team.Session) error {
	lease, away := c.LeaseOf(s.ID)
	if !away {
		return nil
	}
	is, err := c.checkoutOf(ctx, s)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-c.Lost(s.ID):
			stop(&remote.Lost{Host: lease.Host})
		case <-ctx.Done():
		}
	}()
	defer c.lock(is.run)()
	now := c.treeOf(is.run)
	if now.Host != lease.Host {
		return fmt.Errorf("it is not known which files of run %s were sent to host %s", is.run, lease.Host)
	}
	there := c.trees(lease.Host)
	_, step, _ := team.StepOf(s.For)
	ref := "refs/fairlead/steps/" + is.run + "/" + step + "/" + strconv.FormatUint(s.Lease, 10)
	sent, err := there.Fetch(ctx, is.dir, now.Sent, ref)
	if err != nil {
		return fmt.Errorf("bring the files of run %s back from host %s: %w", is.run, lease.Host, answered(err))
	}
	if err := c.setTree(is.run, tree{Host: lease.Host, Sent: sent}); err != nil {
		return err
	}
	var dirs []string
	for _, dir := range []string{"reports", "artifacts"} {
		dirs = append(dirs, c.below(filepath.Join(is.files, dir)))
	}
	if err := there.FetchFiles(ctx, c.places.Root, dirs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bring the reports of run %s back from host %s: %w", is.run, lease.Host, answered(err))
	}
	return nil
}

// answered marks an error that the host found: what is missing is missing there.
func answered(err error) error {
	if _, is := errors.AsType[*wire.Problem](err); is {
		return fmt.Errorf("it answers: %w", err)
	}
	return err
}

func (c *HostController) trees(name string) *remote.Trees {
	return &remote.Trees{Root: c.places.Root, Dial: c.dial(name)}
}
