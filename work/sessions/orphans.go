package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// past reports whether the journal says that a session is over, so that its folder need not be
// inspected.
func (c *Controller) past(session string) bool {
	name, n, is := NameParts(session)
	if !is {
		return true // not the name of a session; Fairlead leaves the folder alone
	}
	if run, step, ofStep := StepParts(name); ofStep {
		return c.pastStep(run, step, n, session)
	}
	a := c.loop.State().Agents[name]
	return a != nil && n <= a.Opened && a.Open(session) == nil
}

// NameParts splits a session's id into the agent's name and the session's number.
func NameParts(session string) (agent string, n uint64, is bool) {
	at := strings.LastIndexByte(session, '-')
	if at <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(session[at+1:], 10, 64)
	return session[:at], n, err == nil && n > 0
}

// FindOrphans inspects the sessions' folders before an epoch begins, as Host.Orphans does. The new epoch must be above
// every epoch that a shim has obeyed; otherwise those shims would refuse this daemon and still obey
// an earlier one.
func (c *Controller) FindOrphans(ctx context.Context, find func(context.Context, func(session string) bool) ([]sessionhost.Orphan, error),
) error {
	traces, err := find(ctx, c.past)
	if err != nil {
		return fmt.Errorf("find earlier sessions: %w", err)
	}
	c.behind = 0
	c.orphans = map[string][]sessionhost.Orphan{}
	for _, t := range traces {
		switch {
		case !shim.PlausibleEpoch(c.loop.State().Epoch, t.Epoch):
			c.log.Warn("the record of a session has an epoch that no daemon can have reached, so another program wrote it; it is ignored",
				"session", t.Session, "epoch", t.Epoch, "journal_epoch", c.loop.State().Epoch)
		case t.Epoch > c.loop.State().Epoch:
			c.behind = max(c.behind, t.Epoch)
		}
		name, _, _ := NameParts(t.Session)
		if run, step, ofStep := StepParts(name); ofStep {
			if s := c.loop.State().Pool.Sessions[run+"/"+step]; s == nil || s.ID != t.Session {
				c.orphans[name] = append(c.orphans[name], t)
			}
			continue
		}
		if a := c.loop.State().Agents[name]; a == nil || a.Open(t.Session) == nil {
			c.orphans[name] = append(c.orphans[name], t)
		}
	}
	if c.behind > 0 {
		c.log.Warn("the journal is new, or an old copy: shims have obeyed a higher epoch; Fairlead adopts no session that the journal does not know, and starts nothing beside one that still runs",
			"journal_epoch", c.loop.State().Epoch, "shims_obeyed", c.behind)
		c.loop.State().Epoch = c.behind // becomes durable with the change that begins the next epoch
	}
	return nil
}

// SettleOrphans frees the names of orphan sessions that are over, and follows those that run. It
// runs after all sessions were inspected and before anything starts.
func (c *Controller) SettleOrphans(ctx context.Context) error {
	traced := c.orphans
	c.orphans = map[string][]sessionhost.Orphan{}
	for name, traces := range traced {
		for _, t := range traces {
			proc, found, err := c.opts.Host.Adopt(ctx, t.Session, c.loop.State().Epoch) // fences the daemon that controlled it
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case c.Fenced(err):
				return TakenOver(err)
			case err == nil && found != sessionhost.Running:
				if proc != nil {
					_ = proc.Close()
				}
				if err := c.putAside(t.Session); err != nil {
					return err
				}
				continue
			}
			t.Silent = ""
			if err != nil {
				t.Silent = err.Error() // it may still run, so nothing starts beside it
			}
			c.orphans[name] = append(c.orphans[name], t)
			c.log.Warn("an orphan session runs: the journal does not know it", "agent", name, "what", orphanText(t))
			c.loop.Go(func(ctx context.Context) { c.outlive(ctx, name, t, proc) })
		}
	}
	return nil
}

// outlive waits until an orphan session is over, then lets its agent start again.
func (c *Controller) outlive(ctx context.Context, name string, t sessionhost.Orphan, proc sessionhost.Process) {
	for again := loop.Retry(); proc == nil; {
		var found sessionhost.Found
		var err error
		proc, found, err = c.opts.Host.Adopt(ctx, t.Session, c.epochNow(ctx))
		if err == nil && (proc == nil || found != sessionhost.Running) {
			break // it is over
		}
		if c.Fenced(err) || (proc == nil && !again.Rest(ctx)) {
			return
		}
	}
	if proc != nil {
		defer func() { _ = proc.Close() }() // no event reports its end; its folder keeps the record
		select {
		case <-proc.Done():
		case <-ctx.Done():
			return
		}
		if _, err := proc.Ended(ctx); err != nil && c.Fenced(err) {
			return
		}
	}
	if err := c.putAside(t.Session); err != nil {
		c.loop.Fail(err) // another session could get the same name
		return
	}
	c.log.Info("an orphan session is over", "session", t.Session)
	_ = c.loop.View(ctx, func(*team.Team) { // fails only if the loop has stopped
		rest := c.orphans[name][:0]
		for _, other := range c.orphans[name] {
			if other.Session != t.Session {
				rest = append(rest, other)
			}
		}
		if c.orphans[name] = rest; len(rest) == 0 {
			delete(c.orphans, name)
		}
	})
}

// OrphanEvery is how often a start that waits for an orphan session checks whether it may continue
// and is still wanted.
const OrphanEvery = 200 * time.Millisecond

func (c *Controller) epochNow(ctx context.Context) (epoch uint64) {
	_ = c.loop.View(ctx, func(t *team.Team) { epoch = t.Epoch }) // on error epoch stays 0, which shims refuse
	return epoch
}

func (c *Controller) putAside(session string) error {
	to, err := c.opts.Host.PutAside(session)
	if err != nil {
		return fmt.Errorf("move the folder of %s, which the journal does not know: %w; move its folder away by hand, then run `fairlead up` again", session, err)
	}
	c.log.Warn("the folder of an orphan session was moved aside", "session", session, "to", to)
	return nil
}

// OrphanOf describes an orphan session of an agent that still runs; empty if there is none.
func (c *Controller) OrphanOf(name string) string {
	alive := c.orphans[name]
	if len(alive) == 0 {
		return ""
	}
	return orphanText(alive[0])
}

// AddOrphans adds the orphan sessions to a plan.
func (c *Controller) AddOrphans(plan *view.Plan) {
	plan.Behind = c.behind
	now := c.loop.Now()
	for _, name := range slices.Sorted(maps.Keys(c.orphans)) {
		at := slices.IndexFunc(plan.Lines, func(l view.PlanLine) bool { return l.Agent == name })
		if at < 0 {
			plan.Lines = append(plan.Lines, view.PlanLine{Agent: name})
			at = len(plan.Lines) - 1
		}
		line := &plan.Lines[at]
		for i, t := range c.orphans[name] {
			step := view.PlanStep{Do: view.DoPutAside, Session: t.Session, Why: orphanText(t)}
			what := fmt.Sprintf("session %s is %s according to its shim, which has obeyed epoch %d; the journal does not know the session",
				t.Session, t.Found, t.Epoch)
			if t.Found == sessionhost.Running || t.Silent != "" {
				step.Do = view.DoWaitFor
			}
			if t.Silent != "" {
				what = step.Why
			}
			line.Steps = slices.Insert(line.Steps, i, step)
			line.Why = append(line.Why, view.Evidence{
				What:   what,
				Source: "shim", At: now,
			})
		}
	}
	if c.behind == 0 {
		return
	}
	for i := range plan.Lines {
		if l := &plan.Lines[i]; l.Session != "" || c.orphans[l.Agent] != nil {
			l.Why = append(l.Why, view.Evidence{
				What:   fmt.Sprintf("the journal is new, or an old copy: shims have obeyed epoch %d, which it does not know; this start uses a higher epoch", c.behind),
				Source: "shim", At: now,
			})
		}
	}
}

func orphanText(t sessionhost.Orphan) string {
	if t.Silent != "" {
		return fmt.Sprintf("the outcome of orphan session %s, which this journal does not know, cannot be read: %s; nothing starts beside it until that is fixed or its folder is moved away", t.Session, t.Silent)
	}
	if t.Found == sessionhost.Running {
		return fmt.Sprintf("orphan session %s runs as process %d, and this journal does not know it: nothing starts beside it; `kill %d` ends it, and its output stays", t.Session, t.PID, t.PID)
	}
	return fmt.Sprintf("orphan session %s is over, and this journal does not know it: its folder is moved aside", t.Session)
}

// Orphans implements sessionhost.Host.
func (h *Shims) Orphans(ctx context.Context, over func(string) bool) ([]sessionhost.Orphan, error) {
	return OrphansIn(ctx, h.Folder, over)
}

// OrphansIn lists the sessions in a folder that over does not name.
func OrphansIn(ctx context.Context, folder string, over func(string) bool) ([]sessionhost.Orphan, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; make it readable", err)
	}
	var traces []sessionhost.Orphan
	for _, entry := range entries {
		session := entry.Name()
		if !entry.IsDir() || over(session) {
			continue
		}
		sight, err := shim.Look(ctx, filepath.Join(folder, session))
		t := sessionhost.Orphan{Session: session, Found: FoundAs[sight.Phase], PID: sight.AgentPID, Epoch: sight.Fence}
		if err != nil { // a damaged record delays only its own agent
			t.Silent = err.Error()
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// asideMax limits how many folders of one name are moved aside.
const asideMax = 1000

// PutAside implements sessionhost.Host.
func (h *Shims) PutAside(session string) (string, error) {
	shelf := h.Folder + "-aside"
	if err := os.MkdirAll(shelf, 0o700); err != nil {
		return "", err
	}
	for n := 1; n <= asideMax; n++ {
		to := filepath.Join(shelf, fmt.Sprintf("%s.%d", session, n))
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(h.folder(session), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		return to, nil
	}
	return "", fmt.Errorf("%s holds %d folders of that name: move some away", shelf, asideMax)
}
