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

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/shim"
	"github.com/fairlead-dev/fairlead/team"
)

// past says whether a session is over by the journal, so that it need not be looked at.
func (e *Controller) past(session string) bool {
	name, n, is := NameParts(session)
	if !is {
		return true // it is no session's name; whoever put it there knows what it is
	}
	if run, step, ofStep := StepParts(name); ofStep {
		return e.pastStep(run, step, n, session)
	}
	a := e.State().Agents[name]
	return a != nil && n <= a.Opened && (a.Session == nil || a.Session.ID != session)
}

// nameParts is whose session it is by its name, and the how manieth.
func NameParts(session string) (agent string, n uint64, is bool) {
	at := strings.LastIndexByte(session, '-')
	if at <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(session[at+1:], 10, 64)
	return session[:at], n, err == nil && n > 0
}

// trace asks the witnesses, before an epoch begins. The new one must be above every epoch
// that a shim has obeyed, or they would refuse us, and obey one whom we have followed.
func (e *Controller) Trace(ctx context.Context, who any) error {
	tracker, can := who.(seam.Tracker)
	if !can {
		return nil
	}
	traces, err := tracker.Traces(ctx, e.past)
	if err != nil {
		return fmt.Errorf("look what earlier sessions have left: %w", err)
	}
	e.behind = 0
	e.strangers = map[string][]seam.Trace{}
	for _, t := range traces {
		if t.Epoch > e.State().Epoch {
			e.behind = max(e.behind, t.Epoch)
		}
		name, _, _ := NameParts(t.Session)
		if run, step, ofStep := StepParts(name); ofStep {
			if s := e.State().Pool.Sessions[run+"/"+step]; s == nil || s.ID != t.Session {
				e.strangers[name] = append(e.strangers[name], t)
			}
			continue
		}
		if a := e.State().Agents[name]; a == nil || a.Session == nil || a.Session.ID != t.Session {
			e.strangers[name] = append(e.strangers[name], t)
		}
	}
	if e.behind > 0 {
		e.log.Warn("the journal is behind: it is a new one, or an old copy; what it does not know is not made up, and nothing is started beside what still runs",
			"journal_epoch", e.State().Epoch, "shims_obeyed", e.behind)
		e.State().Epoch = e.behind // as the world has it; the change that begins the next one makes it durable
	}
	return nil
}

// settleStrangers frees the names of those that are dead, and watches over the living. It
// runs when all have looked, and before anything begins.
func (e *Controller) SettleStrangers(ctx context.Context) error {
	traced := e.strangers
	e.strangers = map[string][]seam.Trace{}
	for name, traces := range traced {
		for _, t := range traces {
			proc, found, err := e.opts.Host.Adopt(ctx, t.Session, e.State().Epoch) // whoever drove it is fenced now
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case e.Fenced(err):
				return takenOver(err)
			case err == nil && found != seam.Running:
				if proc != nil {
					_ = proc.Close()
				}
				if err := e.putAside(t.Session); err != nil {
					return err
				}
				continue
			}
			t.Silent = ""
			if err != nil {
				t.Silent = err.Error() // no reason to start beside it
			}
			e.strangers[name] = append(e.strangers[name], t)
			e.log.Warn("a session runs that the journal does not know", "agent", name, "what", strangeWords(t))
			e.Go(func(ctx context.Context) { e.outlive(ctx, name, t, proc) })
		}
	}
	return nil
}

// outlive waits for a stranger's end, and lets its agent go on then.
func (e *Controller) outlive(ctx context.Context, name string, t seam.Trace, proc seam.Process) {
	for pause := loop.RetryFirst; proc == nil; pause = min(2*pause, loop.RetryMax) {
		var found seam.Found
		var err error
		if proc, found, err = e.opts.Host.Adopt(ctx, t.Session, e.epochNow(ctx)); err == nil && (proc == nil || found != seam.Running) {
			break // it is over
		}
		if e.Fenced(err) || (proc == nil && !loop.Rest(ctx, pause)) {
			return
		}
	}
	if proc != nil {
		defer func() { _ = proc.Close() }() // its end is nobody's news; its folder keeps it
		select {
		case <-proc.Done():
		case <-ctx.Done():
			return
		}
		if _, err := proc.Ended(ctx); err != nil && e.Fenced(err) {
			return
		}
	}
	if err := e.putAside(t.Session); err != nil {
		e.Fail(err) // its name could be given to another
		return
	}
	e.log.Info("a session that the journal did not know is over", "session", t.Session)
	_ = e.View(ctx, func(*team.Team) { // nobody to tell means that the engine stops
		rest := e.strangers[name][:0]
		for _, other := range e.strangers[name] {
			if other.Session != t.Session {
				rest = append(rest, other)
			}
		}
		if e.strangers[name] = rest; len(rest) == 0 {
			delete(e.strangers, name)
		}
	})
}

// alone waits until nothing runs beside an agent that the journal does not know, and says
// whether its session is still to be started then.
func (e *Controller) alone(ctx context.Context, m *Slot, s team.Session) bool {
	for {
		strange := ""
		if e.View(ctx, func(*team.Team) { strange = e.Strange(m.Conf.Name) }) != nil {
			return false
		}
		if strange == "" {
			return true
		}
		if _, may := e.mayStart(ctx, m, s); !may || !loop.Rest(ctx, StrangerEvery) {
			return false
		}
	}
}

// strangerEvery is how often a start that waits behind a stranger asks whether it may go on,
// and whether it is still wanted.
const StrangerEvery = 200 * time.Millisecond

func (e *Controller) epochNow(ctx context.Context) (epoch uint64) {
	_ = e.View(ctx, func(t *team.Team) { epoch = t.Epoch }) // 0 is refused, and means that we stop
	return epoch
}

func (e *Controller) putAside(session string) error {
	shelf, can := e.opts.Host.(seam.Shelf)
	if !can {
		return nil
	}
	to, err := shelf.PutAside(session)
	if err != nil {
		return fmt.Errorf("put what is left of %s, which the journal does not know, out of the way: %w; move its folder away by hand, then run `fairlead up` again", session, err)
	}
	e.log.Warn("what is left of a session that the journal does not know was put aside", "session", session, "to", to)
	return nil
}

// strange says what runs beside an agent that the journal does not know; empty: nothing.
func (e *Controller) Strange(name string) string {
	alive := e.strangers[name]
	if len(alive) == 0 {
		return ""
	}
	return strangeWords(alive[0])
}

// addStrangers puts what the journal does not know into a plan.
func (e *Controller) AddStrangers(plan *view.Plan) {
	plan.Behind = e.behind
	now := e.Now()
	for _, name := range slices.Sorted(maps.Keys(e.strangers)) {
		at := slices.IndexFunc(plan.Lines, func(l view.PlanLine) bool { return l.Agent == name })
		if at < 0 {
			plan.Lines = append(plan.Lines, view.PlanLine{Agent: name})
			at = len(plan.Lines) - 1
		}
		line := &plan.Lines[at]
		for i, t := range e.strangers[name] {
			step := view.PlanStep{Do: view.DoPutAside, Session: t.Session, Why: strangeWords(t)}
			what := fmt.Sprintf("session %s is %s by its shim, which has obeyed epoch %d, and the journal does not know it", t.Session, t.Found, t.Epoch)
			if t.Found == seam.Running || t.Silent != "" {
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
	if e.behind == 0 {
		return
	}
	for i := range plan.Lines {
		if l := &plan.Lines[i]; l.Session != "" || e.strangers[l.Agent] != nil {
			l.Why = append(l.Why, view.Evidence{
				What:   fmt.Sprintf("the journal is a new one, or an old copy: shims have obeyed epoch %d, which it does not know; this start goes beyond it", e.behind),
				Source: "shim", At: now,
			})
		}
	}
}

func strangeWords(t seam.Trace) string {
	if t.Silent != "" {
		return fmt.Sprintf("what became of %s, which this journal does not know, cannot be said: %s; nothing is started beside it until that is mended, or its folder moved away", t.Session, t.Silent)
	}
	if t.Found == seam.Running {
		return fmt.Sprintf("%s runs as process %d, and this journal does not know it: nothing is started beside it; `kill %d` ends it, and its output stays", t.Session, t.PID, t.PID)
	}
	return fmt.Sprintf("%s is over, and this journal does not know it: its folder is put aside", t.Session)
}

// Traces is Tracker's.
func (h *Shims) Traces(ctx context.Context, over func(string) bool) ([]seam.Trace, error) {
	return TracesIn(ctx, h.Folder, over)
}

func TracesIn(ctx context.Context, folder string, over func(string) bool) ([]seam.Trace, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; make it readable", err)
	}
	var traces []seam.Trace
	for _, entry := range entries {
		session := entry.Name()
		if !entry.IsDir() || over(session) {
			continue
		}
		sight, err := shim.Look(ctx, filepath.Join(folder, session))
		t := seam.Trace{Session: session, Found: FoundAs[sight.Phase], PID: sight.AgentPID, Epoch: sight.Fence}
		if err != nil { // a damaged record keeps its own agent waiting, and nobody else
			t.Silent = err.Error()
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// asideMax bounds how often one name is put aside; more journals were never lost.
const asideMax = 1000

// PutAside is Shelf's.
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
	return "", fmt.Errorf("%s holds %d of that name: move some away", shelf, asideMax)
}
