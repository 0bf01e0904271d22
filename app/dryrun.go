package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/app/starts"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// DryRun returns what Run would do first, without doing it. It decides with the code of recovery,
// from the observer's information, on a journal that stores nothing. It does not use the options
// Host and Files. Nothing is appended, written, adopted or started.
func DryRun(ctx context.Context, opts outside.Options, look outside.Observer) (view.Plan, error) {
	opts.Journal = &dryJournal{Journal: opts.Journal}
	opts.Log = slog.New(slog.DiscardHandler)
	opts.Planned, opts.Host, opts.Files = nil, nil, nil
	e, err := Open(ctx, opts)
	if err != nil {
		return view.Plan{}, err
	}
	defer e.Loop.Shutdown(nil)
	e.Loop.NoSnapshots()
	before := e.Loop.State().Copy()
	found, err := e.reckon(ctx, look.Orphans, func(ctx context.Context) []starts.Adoption { return e.observeSessions(ctx, look) },
		func(ctx context.Context) error {
			return e.observeFiles(ctx, look)
		})
	if err != nil {
		return view.Plan{}, fmt.Errorf("plan the recovery: %w", err)
	}
	return e.plan(before, found), ctx.Err()
}

// observeSessions is AdoptAll for a dry run.
func (e *App) observeSessions(ctx context.Context, look outside.Observer) []starts.Adoption {
	return e.Starts.EachOpen(func(a *starts.Adoption) {
		var pid int
		a.Found, pid, a.Err = look.Session(ctx, a.Session.ID, e.Loop.State().Epoch)
		if a.Err == nil {
			a.Proc = observedProcess{pid: pid}
		}
	})
}

// observeFiles is ReadFiles for a dry run.
func (e *App) observeFiles(ctx context.Context, look outside.Observer) error {
	type page struct {
		looks []agentstate.Seen
		err   error
	}
	pages := map[string]*page{}
	slots := make(chan struct{}, observeFilesMax)
	var looking sync.WaitGroup
	for name, m := range e.Agents.Files {
		if e.Loop.State().Agents[name] == nil || m.Conf.Workspace == "" {
			continue
		}
		p := &page{}
		pages[name] = p
		looking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p.looks, p.err = look.File(ctx, name, m.Conf.Workspace)
		})
	}
	looking.Wait()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		p := pages[name]
		if p.err != nil {
			e.Agents.CannotLook(e.Agents.Files[name], p.err)
			continue
		}
		for i := range p.looks {
			p.looks[i].Name, p.looks[i].Seq = name, uint64(i)+1
			if err := e.Loop.Step(ctx, []loop.Request{e.Agents.SeenRequest(p.looks[i])}); err != nil {
				return err
			}
		}
	}
	return nil
}

// observeFilesMax limits how many files are read concurrently. A missing or torn file takes a
// while, and a thousand of them must not be read one after the other.
const observeFilesMax = 128

// dryJournal is a journal that stores nothing: the decisions of a dry run are not history.
type dryJournal struct {
	journal.Journal
	mu    sync.Mutex
	extra uint64
}

// Append only counts.
func (s *dryJournal) Append(ctx context.Context, batch []journal.Change, _ ...journal.Expect) (uint64, error) {
	head, _, err := s.Head(ctx)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra += uint64(len(batch))
	return head + s.extra, nil
}

// SaveSnapshot stores nothing.
func (*dryJournal) SaveSnapshot(context.Context, journal.Snapshot) error { return nil }

// observedProcess is a process that was only observed; requests to it fail.
type observedProcess struct{ pid int }

var errObserved = errors.New("a dry run must not control a process, which is a bug in fairlead")

func (g observedProcess) PID() int { return g.pid }

func (observedProcess) Done() <-chan struct{} { return nil }

func (observedProcess) Ended(context.Context) (session.Exit, error) {
	return session.Exit{}, errObserved
}

func (observedProcess) End(context.Context, time.Duration) error { return errObserved }

func (observedProcess) Ack(context.Context) error { return errObserved }

func (observedProcess) Evidence(context.Context) (sessionhost.Proof, error) {
	return sessionhost.Proof{}, errObserved
}

func (observedProcess) Close() error { return nil }

func (observedProcess) Send(context.Context, []byte) error { return errObserved }

func (observedProcess) CloseInput(context.Context) error { return errObserved }

func (observedProcess) Output(context.Context, int64) (io.ReadCloser, error) { return nil, errObserved }

// DiskObserver is the production Observer.
type DiskObserver struct {
	Folder string // as in sessions.Shims
}

var _ outside.Observer = DiskObserver{}

// Session implements outside.Observer.
func (y DiskObserver) Session(ctx context.Context, session string, epoch uint64) (sessionhost.Found, int, error) {
	sight, err := shim.Look(ctx, filepath.Join(y.Folder, session))
	if err != nil {
		return "", 0, fmt.Errorf("adopt %s: %w", session, err)
	}
	if sight.Fence > epoch && shim.PlausibleEpoch(epoch, sight.Fence) {
		return "", 0, &sessionhost.Fenced{Why: (&shim.Fenced{Mine: epoch, Seen: sight.Fence}).Error()}
	}
	if sight.Other != nil {
		return "", sight.AgentPID, &sessionhost.NotAdopted{Why: sight.Silence}
	}
	if sight.Phase == shim.Running && !sight.Answers {
		return "", sight.AgentPID, fmt.Errorf("its shim (process %d) exists but does not answer: %s", sight.ShimPID, sight.Silence)
	}
	return sessions.FoundAs[sight.Phase], sight.AgentPID, nil
}

// Proof implements outside.Options.Look.
func (y DiskObserver) Proof(ctx context.Context, session string) (sessionhost.Proof, error) {
	sight, err := shim.Look(ctx, filepath.Join(y.Folder, session))
	if err != nil {
		return sessionhost.Proof{}, err
	}
	proof := sessionhost.Proof{ShimPID: sight.ShimPID, PID: sight.AgentPID, Observed: true}
	switch {
	case sight.Phase != shim.Running:
		proof.Against = fmt.Sprintf("%s does not run any more (%s); the next `fairlead up` records its end", session,
			phaseWords[sight.Phase])
	case !sight.Answers:
		return sessionhost.Proof{}, errors.New(sight.Silence)
	}
	return proof, nil
}

// phaseWords are the phases of a session that does not run, as people read them.
var phaseWords = map[shim.Phase]string{shim.NeverStarted: "never started", shim.Exited: "exited", shim.Lost: "lost"}

const (
	swapPrefix   = "." + agentstate.FileName + ".swap-" // as in package agentfile; a test compares them
	fileBytesMax = 1 << 20                              // bytes; a larger file is malformed
	tornFor      = 250 * time.Millisecond               // SPEC: content that stays unparsable for this long is malformed
	goneFor      = 50 * time.Millisecond                // a program that replaces a file by unlink and rename takes less
	tornLook     = 10 * time.Millisecond                // interval between two reads meanwhile
)

// File implements outside.Observer. It reads malformed content until it has stayed the same for as
// long as SPEC says. It keeps no copies.
func (DiskObserver) File(ctx context.Context, _, folder string) ([]agentstate.Seen, error) {
	names, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return []agentstate.Seen{{Kind: exchange.KindDeleted}}, nil // recovery would create the folder and find no file
	}
	if err != nil {
		return nil, fmt.Errorf("read the workspace: %w; make it readable", err)
	}
	now, err := settled(ctx, filepath.Join(folder, agentstate.FileName))
	if err == nil && now.Kind == exchange.KindUnreadable {
		err = errors.New(now.Fault)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", agentstate.FileName, err)
	}
	var looks []agentstate.Seen
	for _, entry := range names {
		if !strings.HasPrefix(entry.Name(), swapPrefix) {
			continue
		}
		left := fileVersion(filepath.Join(folder, entry.Name()))
		if left.Kind == exchange.KindWritten && left.Sum != now.Sum {
			left.FromSwap = true
			looks = append(looks, left)
		}
	}
	return append(looks, now), ctx.Err()
}

func settled(ctx context.Context, path string) (agentstate.Seen, error) {
	for since, last := time.Now(), (agentstate.Seen{}); ; {
		s := fileVersion(path)
		if s.Kind == exchange.KindWritten || s.Kind == exchange.KindUnreadable {
			return s, nil
		}
		if s.Kind != last.Kind || s.Ident != last.Ident || s.Sum != last.Sum {
			since, last = time.Now(), s
		}
		patience := tornFor
		if s.Kind == exchange.KindDeleted {
			patience = goneFor
		}
		if time.Since(since) >= patience {
			return s, nil
		}
		if !retry.Rest(ctx, tornLook) {
			return s, ctx.Err()
		}
	}
}

// fileVersion reads one file as agentfile does: a regular file, not a link or a pipe.
func fileVersion(path string) agentstate.Seen {
	s := agentstate.Seen{Kind: exchange.KindUnreadable, At: time.Now().UTC()}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) //nolint:gosec // any program may create the file
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Kind = exchange.KindDeleted
		return s
	case err != nil:
		s.Fault = err.Error()
		return s
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		s.Fault = filepath.Base(path) + " is not a regular file; put one there"
		return s
	}
	if s.Bytes, err = io.ReadAll(io.LimitReader(f, fileBytesMax+1)); err != nil {
		s.Fault = err.Error()
		return s
	}
	s.Sum = file.SumOf(s.Bytes)
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ident = fmt.Sprintf("%d.%d.%d", sys.Ino, info.Size(), info.ModTime().UnixNano())
	}
	state, err := agentstate.Parse(s.Bytes)
	if err != nil {
		s.Kind, s.Fault, s.KeptAs = exchange.KindMalformed, err.Error(), "a copy beside it"
		return s
	}
	s.Kind, s.State = exchange.KindWritten, state
	return s
}

// Orphans implements outside.Observer.
func (y DiskObserver) Orphans(ctx context.Context, over func(string) bool) ([]sessionhost.Orphan, error) {
	return sessions.OrphansIn(ctx, y.Folder, over)
}
