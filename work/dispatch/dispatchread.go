package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

const (
	FoldersMax      = 256     // whose history is followed: the newest; a year's sessions are no daemon's daily bread
	linesPerEvent   = 1000    // as many changes as the journal takes in one append
	bytesPerEvent   = 2 << 20 // and so much of it, since every line holds all that is true
	foldersRetry    = time.Second
	foldersLookMost = 30 * time.Second // without any news: a watch may have been lost
)

// folderPen is the one reader of session folders: what it read last is in the journal before it reads on.
type FolderWriter struct {
	E      *Controller
	from   outside.Sessions
	Known  map[string]*WrittenFolder // by path
	most   bool                      // it was said that there are too many
	warned string
}

// PenFolder is what the session writer remembers of a folder; it can be computed again from the
// folder.
type WrittenFolder struct {
	name   string
	read   int64 // bytes that are in the journal
	at     int64 // bytes that were read: behind these there may be lines that say nothing
	gone   bool
	file   os.FileInfo // its history, as it was last looked at; nil: never since the start
	began  time.Time   // of the session that is in the journal
	stuck  string      // why it cannot be read
	queued bool        // mode response, hosted by us: its inbox is served
	Host   dispatch.Host
	Phase  dispatch.Phase
}

// keep reads until the engine stops.
func (p *FolderWriter) keep(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.from.News():
		case <-p.E.FolderState.moved:
		case <-again.C:
		}
		wait, err := p.round(ctx)
		if ctx.Err() != nil || errors.Is(err, loop.ErrClosed) {
			return
		}
		if err != nil {
			wait = foldersRetry
			if p.warned != err.Error() {
				p.warned = err.Error()
				p.E.log.Error("session folders cannot be looked at; it is tried again every second", "error", err)
			}
		} else {
			p.warned = ""
			wait = loop.Sooner(wait, foldersLookMost)
		}
		again.Reset(wait)
	}
}

// round takes in what is new in every folder, and has inboxes served. It says when to look again; 0: when
// there is news.
func (p *FolderWriter) round(ctx context.Context) (time.Duration, error) {
	paths, err := p.from.Paths()
	if err != nil {
		return 0, err
	}
	held := false
	if err := p.E.loop.View(ctx, func(t *team.Team) { held = p.recall(t) }); err != nil {
		return 0, err
	}
	paths = p.Chosen(paths)
	p.from.Watch(paths)
	there := map[string]bool{}
	for _, path := range paths {
		there[path] = true
		if err := p.follow(ctx, path); err != nil {
			return 0, err
		}
	}
	for path, f := range p.Known {
		if f.gone || there[path] {
			continue
		}
		if _, err := os.Lstat(filepath.Join(path, HistoryName)); !errors.Is(err, fs.ErrNotExist) {
			continue // it is only not followed
		}
		f.gone, f.file = true, nil
		if _, err := p.E.loop.Submit(ctx, byFolders, "", team.DispatchGone{Name: f.name}); err != nil && !loop.IsAnswer(err) {
			return 0, err
		}
	}
	if held {
		return 0, nil // D6 begins work, and waits (X8)
	}
	return p.serve(ctx)
}

// recall takes over what the team knows. It runs in the loop.
func (p *FolderWriter) recall(t *team.Team) (held bool) {
	for name, f := range t.Dispatches {
		is := p.Known[f.Path]
		if is == nil {
			is = &WrittenFolder{}
			p.Known[f.Path] = is
		}
		is.name, is.read, is.gone, is.began = name, f.Read, f.Gone, f.State.Began
		is.at = max(is.at, is.read)
		is.Host, is.Phase = f.State.Host, f.State.Phase
		is.queued = f.State.Host == dispatch.Fairlead && f.State.Mode == dispatch.Response && f.State.Phase == dispatch.Queue
	}
	return t.Hold.On || t.Stopping
}

// chosen are the folders that are followed: the newest, and whatever is open with us.
func (p *FolderWriter) Chosen(paths []string) []string {
	if len(paths) <= FoldersMax {
		return paths
	}
	if !p.most {
		p.most = true
		p.E.log.Warn("there are more session folders than are followed; older ones that are over keep what was taken in", "folders",
			len(paths), "followed", FoldersMax)
	}
	some := paths[:FoldersMax:FoldersMax]
	for _, path := range paths[FoldersMax:] {
		if f := p.Known[path]; f != nil && f.Host == dispatch.Fairlead && f.Phase != dispatch.Closed && len(some) < 2*FoldersMax {
			some = append(some, path)
		}
	}
	return some
}

// follow takes in what is new in one folder. The error means that we stop, or cannot go on.
func (p *FolderWriter) follow(ctx context.Context, path string) error {
	f := p.Known[path]
	if f == nil {
		f = &WrittenFolder{name: folderName(path, p.taken)}
	}
	info, err := os.Lstat(filepath.Join(path, HistoryName))
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it went just now: the next round says so
	}
	if f.file != nil && os.SameFile(f.file, info) && info.Size() == f.at && !f.gone {
		f.file = info
		return nil
	}
	folder, err := dispatchfolder.Open(path)
	if err != nil {
		p.stuck(f, path, err)
		return nil
	}
	p.Known[path] = f
	anew := f.at > info.Size()
	if !anew && f.read > 0 && (f.file == nil || !os.SameFile(f.file, info)) {
		s, err := folder.Session()
		if err != nil {
			p.stuck(f, path, err)
			return nil
		}
		anew = !s.Began.Equal(f.began)
	}
	if anew {
		p.E.log.Warn("the history of a session folder is another one than before, or got shorter; it is read anew", "folder", path, "was",
			f.read, "is", info.Size())
		f.read, f.at = 0, 0
	}
	if f.gone && !anew { // it was moved away and back
		back := team.DispatchSeen{Name: f.name, Path: path, From: f.read, To: f.read}
		if _, err := p.E.loop.Submit(ctx, byFolders, "", back); err != nil {
			if ctx.Err() != nil || errors.Is(err, loop.ErrClosed) {
				return err
			}
			p.stuck(f, path, err)
			return nil
		}
	}
	if err := p.take(ctx, f, path, folder, anew); err != nil {
		return err
	}
	f.file = info
	return nil
}

// take reads on from where the journal ends.
func (p *FolderWriter) take(ctx context.Context, f *WrittenFolder, path string, folder *dispatchfolder.Folder, anew bool) error {
	for {
		lines, next, err := folder.Lines(f.at)
		if err != nil {
			p.stuck(f, path, err)
			return nil
		}
		if next == f.at {
			f.stuck = ""
			return nil // a partial last line: its writer has not finished, or crashed
		}
		for _, part := range eventsOf(lines) {
			what := team.DispatchSeen{Name: f.name, Path: path, From: f.read, Anew: anew, Lines: part}
			what.To = part[len(part)-1].End
			if _, err := p.E.loop.Submit(ctx, byFolders, "", what); err != nil {
				if ctx.Err() != nil || errors.Is(err, loop.ErrClosed) {
					return err
				}
				p.stuck(f, path, err)
				return nil
			}
			f.read, anew = what.To, false
		}
		f.at = next
	}
}

// eventsOf cuts lines to what one event takes.
func eventsOf(lines []dispatchfolder.Line) (parts [][]team.DispatchEntry) {
	var part []team.DispatchEntry
	var bytes int64
	for _, line := range lines {
		size := line.End - line.Offset
		if len(part) > 0 && (len(part) >= linesPerEvent || bytes+size > bytesPerEvent) {
			parts, part, bytes = append(parts, part), nil, 0
		}
		if line.Foreign {
			line.Change.Actor = change.Actor{Kind: "human", ID: "another program, in " + HistoryName}
		}
		part = append(part, team.DispatchEntry{End: line.End, Change: line.Change})
		bytes += size
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// stuck says once why a folder cannot be read.
func (p *FolderWriter) stuck(f *WrittenFolder, path string, err error) {
	p.Known[path] = f
	if f.stuck == err.Error() {
		return
	}
	f.stuck = err.Error()
	p.E.log.Error("a session folder cannot be read; what was taken in of it is kept", "folder", path, "error", fmt.Sprint(err))
}

func (p *FolderWriter) taken(name string) bool {
	for _, f := range p.Known {
		if f.name == name {
			return true
		}
	}
	return false
}
