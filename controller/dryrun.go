package controller

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

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/agentfile"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/shim"
)

// Rehearse says what Run would do first, and does none of it: it decides with the code that
// recovery decides with, on a journal that keeps nothing, by what the onlooker sees. Of the
// options Host and Files are not looked at. Nothing is appended, written, adopted or started.
func Rehearse(ctx context.Context, opts seam.Options, look seam.Onlooker) (view.Plan, error) {
	opts.Journal = &scratch{Journal: opts.Journal}
	opts.Log = slog.New(slog.DiscardHandler)
	opts.Planned, opts.Host, opts.Files = nil, nil, nil
	e, err := Open(ctx, opts)
	if err != nil {
		return view.Plan{}, err
	}
	defer e.Shutdown(nil)
	e.NoSnapshots()
	before := e.State().Copy()
	found, err := e.reckon(ctx, look, func(ctx context.Context) []sessions.Adoption { return e.lookAll(ctx, look) }, func(ctx context.Context) error {
		return e.glance(ctx, look)
	})
	if err != nil {
		return view.Plan{}, fmt.Errorf("rehearse the recovery: %w", err)
	}
	return e.plan(before, found), ctx.Err()
}

// lookAll is adoptAll for one who only looks.
func (e *Supervisor) lookAll(ctx context.Context, look seam.Onlooker) []sessions.Adoption {
	return e.EachOpen(func(a *sessions.Adoption) {
		var pid int
		a.Found, pid, a.Err = look.Session(ctx, a.Session.ID, e.State().Epoch)
		if a.Err == nil {
			a.Proc = glimpse{pid: pid}
		}
	})
}

// glance is readFiles for one who only looks.
func (e *Supervisor) glance(ctx context.Context, look seam.Onlooker) error {
	type page struct {
		looks []agentfile.Seen
		err   error
	}
	pages := map[string]*page{}
	slots := make(chan struct{}, glancesMax)
	var looking sync.WaitGroup
	for name, m := range e.Files {
		if e.State().Agents[name] == nil || m.Conf.Workspace == "" {
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
			e.CannotLook(e.Files[name], p.err)
			continue
		}
		for i := range p.looks {
			p.looks[i].Name, p.looks[i].Seq = name, uint64(i)+1
			if err := e.Step(ctx, []loop.Request{e.SeenRequest(p.looks[i])}); err != nil {
				return err
			}
		}
	}
	return nil
}

// glancesMax bounds how many files are waited for at once: one that is away or torn takes a
// while, and a thousand of them must not take that one after the other.
const glancesMax = 128

// scratch is a journal that forgets: what a rehearsal decides is nobody's history.
type scratch struct {
	journal.Journal
	mu    sync.Mutex
	extra uint64
}

// Append only counts.
func (s *scratch) Append(ctx context.Context, batch []journal.Change, _ ...journal.Expect) (uint64, error) {
	head, _, err := s.Head(ctx)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra += uint64(len(batch))
	return head + s.extra, nil
}

// SaveSnapshot keeps nothing.
func (*scratch) SaveSnapshot(context.Context, journal.Snapshot) error { return nil }

// glimpse is a process that was only seen: nothing can be asked of it.
type glimpse struct{ pid int }

var errGlimpse = errors.New("a rehearsal only looks, which is a fault in fairlead")

func (g glimpse) PID() int { return g.pid }

func (glimpse) Done() <-chan struct{} { return nil }

func (glimpse) Ended(context.Context) (seam.Ending, error) { return seam.Ending{}, errGlimpse }

func (glimpse) End(context.Context, time.Duration) error { return errGlimpse }

func (glimpse) Ack(context.Context) error { return errGlimpse }

func (glimpse) Evidence(context.Context) (seam.Proof, error) { return seam.Proof{}, errGlimpse }

func (glimpse) Close() error { return nil }

func (glimpse) Send(context.Context, []byte) error { return errGlimpse }

func (glimpse) CloseInput(context.Context) error { return errGlimpse }

func (glimpse) Output(context.Context, int64) (io.ReadCloser, error) { return nil, errGlimpse }

// Eyes is the Onlooker of real life.
type Eyes struct {
	Folder string // as Shims has it
}

var _ seam.Onlooker = Eyes{}

// Session is Onlooker's.
func (y Eyes) Session(ctx context.Context, session string, epoch uint64) (seam.Found, int, error) {
	sight, err := shim.Look(ctx, filepath.Join(y.Folder, session))
	if err != nil {
		return "", 0, fmt.Errorf("adopt %s: %w", session, err)
	}
	if sight.Fence > epoch {
		return "", 0, &seam.Fenced{Why: (&shim.Fenced{Mine: epoch, Seen: sight.Fence}).Error()}
	}
	if sight.Phase == shim.Running && !sight.Answers {
		return "", sight.AgentPID, fmt.Errorf("its shim (process %d) is there but does not answer: %s", sight.ShimPID, sight.Silence)
	}
	return sessions.FoundAs[sight.Phase], sight.AgentPID, nil
}

const (
	swapPrefix = "." + agentfile.FileName + ".swap-" // as interop names what it swaps out; a test compares
	sheetMax   = 1 << 20                             // bytes; what is larger is malformed whatever it says
	tornFor    = 250 * time.Millisecond              // SPEC: the same unparsable bytes for this long are malformed
	goneFor    = 50 * time.Millisecond               // who replaces by unlink and rename is away for less
	tornLook   = 10 * time.Millisecond               // between two looks meanwhile
)

// File is Onlooker's. Nonsense is looked at until it has stayed so for as long as the spec
// says; nothing is kept aside.
func (Eyes) File(ctx context.Context, _, folder string) ([]agentfile.Seen, error) {
	names, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return []agentfile.Seen{{Kind: agentfile.KindDeleted}}, nil // recovery would make it, and find it empty
	}
	if err != nil {
		return nil, fmt.Errorf("look into the workspace: %w; make it readable", err)
	}
	now, err := settled(ctx, filepath.Join(folder, agentfile.FileName))
	if err == nil && now.Kind == agentfile.KindUnreadable {
		err = errors.New(now.Fault)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", agentfile.FileName, err)
	}
	var looks []agentfile.Seen
	for _, entry := range names {
		if !strings.HasPrefix(entry.Name(), swapPrefix) {
			continue
		}
		left := sheetAt(filepath.Join(folder, entry.Name()))
		if left.Kind == agentfile.KindWritten && left.Sum != now.Sum {
			left.FromSwap = true
			looks = append(looks, left)
		}
	}
	return append(looks, now), ctx.Err()
}

func settled(ctx context.Context, path string) (agentfile.Seen, error) {
	for since, last := time.Now(), (agentfile.Seen{}); ; {
		s := sheetAt(path)
		if s.Kind == agentfile.KindWritten || s.Kind == agentfile.KindUnreadable {
			return s, nil
		}
		if s.Kind != last.Kind || s.Ident != last.Ident || s.Sum != last.Sum {
			since, last = time.Now(), s
		}
		patience := tornFor
		if s.Kind == agentfile.KindDeleted {
			patience = goneFor
		}
		if time.Since(since) >= patience {
			return s, nil
		}
		if !loop.Rest(ctx, tornLook) {
			return s, ctx.Err()
		}
	}
}

// sheetAt reads one file as interop does: a plain file, no link, no pipe.
func sheetAt(path string) agentfile.Seen {
	s := agentfile.Seen{Kind: agentfile.KindUnreadable, At: time.Now().UTC()}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) //nolint:gosec // a file that everybody may put there
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Kind = agentfile.KindDeleted
		return s
	case err != nil:
		s.Fault = err.Error()
		return s
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		s.Fault = filepath.Base(path) + " is no plain file; put one there"
		return s
	}
	if s.Bytes, err = io.ReadAll(io.LimitReader(f, sheetMax+1)); err != nil {
		s.Fault = err.Error()
		return s
	}
	s.Sum = file.SumOf(s.Bytes)
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ident = fmt.Sprintf("%d.%d.%d", sys.Ino, info.Size(), info.ModTime().UnixNano())
	}
	state, err := agentfile.Parse(s.Bytes)
	if err != nil {
		s.Kind, s.Fault, s.KeptAs = agentfile.KindMalformed, err.Error(), "a copy beside it"
		return s
	}
	s.Kind, s.State = agentfile.KindWritten, state
	return s
}
