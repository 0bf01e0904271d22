package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	foldersMax      = 256     // whose history is followed: the newest; a year's sessions are no daemon's daily bread
	linesPerEvent   = 1000    // as many changes as the journal takes in one append
	bytesPerEvent   = 2 << 20 // and so much of it, since every line holds all that is true
	foldersRetry    = time.Second
	foldersLookMost = 30 * time.Second // without any news: a watch may have been lost
)

// folderPen is the one reader of session folders: what it read last is in the journal before it reads on.
type folderPen struct {
	e      *Engine
	from   Sessions
	known  map[string]*penFolder // by path
	most   bool                  // it was said that there are too many
	warned string
}

// penFolder is what the pen remembers of a folder and could find out again.
type penFolder struct {
	name   string
	read   int64 // bytes that are in the journal
	at     int64 // bytes that were read: behind these there may be lines that say nothing
	gone   bool
	file   os.FileInfo // its history, as it was last looked at; nil: never since the start
	began  time.Time   // of the session that is in the journal
	stuck  string      // why it cannot be read
	queued bool        // mode response, hosted by us: its inbox is served
	host   dispatch.Host
	phase  dispatch.Phase
}

// keep reads until the engine stops.
func (p *folderPen) keep(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.from.News():
		case <-p.e.folders.moved:
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
				p.e.log.Error("session folders cannot be looked at; it is tried again every second", "error", err)
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
func (p *folderPen) round(ctx context.Context) (time.Duration, error) {
	paths, err := p.from.Paths()
	if err != nil {
		return 0, err
	}
	held := false
	if err := p.e.View(ctx, func(t *team.Team) { held = p.recall(t) }); err != nil {
		return 0, err
	}
	paths = p.chosen(paths)
	p.from.Watch(paths)
	there := map[string]bool{}
	for _, path := range paths {
		there[path] = true
		if err := p.follow(ctx, path); err != nil {
			return 0, err
		}
	}
	for path, f := range p.known {
		if f.gone || there[path] {
			continue
		}
		if _, err := os.Lstat(filepath.Join(path, historyName)); !errors.Is(err, fs.ErrNotExist) {
			continue // it is only not followed
		}
		f.gone, f.file = true, nil
		if _, err := p.e.Submit(ctx, byFolders, "", team.FolderGone{Name: f.name}); err != nil && !loop.IsAnswer(err) {
			return 0, err
		}
	}
	if held {
		return 0, nil // D6 begins work, and waits (X8)
	}
	return p.serve(ctx)
}

// recall takes over what the team knows. It runs in the loop.
func (p *folderPen) recall(t *team.Team) (held bool) {
	for name, f := range t.Folders {
		is := p.known[f.Path]
		if is == nil {
			is = &penFolder{}
			p.known[f.Path] = is
		}
		is.name, is.read, is.gone, is.began = name, f.Read, f.Gone, f.Session.Began
		is.at = max(is.at, is.read)
		is.host, is.phase = f.Session.Host, f.Session.Phase
		is.queued = f.Session.Host == dispatch.Fairlead && f.Session.Mode == dispatch.Response && f.Session.Phase == dispatch.Queue
	}
	return t.Hold.On || t.Stopping
}

// chosen are the folders that are followed: the newest, and whatever is open with us.
func (p *folderPen) chosen(paths []string) []string {
	if len(paths) <= foldersMax {
		return paths
	}
	if !p.most {
		p.most = true
		p.e.log.Warn("there are more session folders than are followed; older ones that are over keep what was taken in", "folders", len(paths), "followed", foldersMax)
	}
	some := paths[:foldersMax:foldersMax]
	for _, path := range paths[foldersMax:] {
		if f := p.known[path]; f != nil && f.host == dispatch.Fairlead && f.phase != dispatch.Closed && len(some) < 2*foldersMax {
			some = append(some, path)
		}
	}
	return some
}

// follow takes in what is new in one folder. The error means that we stop, or cannot go on.
func (p *folderPen) follow(ctx context.Context, path string) error {
	f := p.known[path]
	if f == nil {
		f = &penFolder{name: folderName(path, p.taken)}
	}
	info, err := os.Lstat(filepath.Join(path, historyName))
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
	p.known[path] = f
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
		p.e.log.Warn("the history of a session folder is another one than before, or got shorter; it is read anew", "folder", path, "was", f.read, "is", info.Size())
		f.read, f.at = 0, 0
	}
	if f.gone && !anew { // it was moved away and back
		back := team.FolderSeen{Name: f.name, Path: path, From: f.read, To: f.read}
		if _, err := p.e.Submit(ctx, byFolders, "", back); err != nil {
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
func (p *folderPen) take(ctx context.Context, f *penFolder, path string, folder *dispatchfolder.Folder, anew bool) error {
	for {
		lines, next, err := folder.Lines(f.at)
		if err != nil {
			p.stuck(f, path, err)
			return nil
		}
		if next == f.at {
			f.stuck = ""
			return nil // a half line at its end is somebody who still writes, or did not come to it
		}
		for _, part := range eventsOf(lines) {
			what := team.FolderSeen{Name: f.name, Path: path, From: f.read, Anew: anew, Lines: part}
			what.To = part[len(part)-1].End
			if _, err := p.e.Submit(ctx, byFolders, "", what); err != nil {
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
func eventsOf(lines []dispatchfolder.Line) (parts [][]team.FolderLine) {
	var part []team.FolderLine
	var bytes int64
	for _, line := range lines {
		size := line.End - line.Offset
		if len(part) > 0 && (len(part) >= linesPerEvent || bytes+size > bytesPerEvent) {
			parts, part, bytes = append(parts, part), nil, 0
		}
		actor := team.Actor(line.Actor)
		if line.Foreign {
			actor = team.Actor{Kind: "human", ID: "another program, in " + historyName}
		}
		part = append(part, team.FolderLine{End: line.End, Actor: actor, Change: line.Change})
		bytes += size
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// stuck says once why a folder cannot be read.
func (p *folderPen) stuck(f *penFolder, path string, err error) {
	p.known[path] = f
	if f.stuck == err.Error() {
		return
	}
	f.stuck = err.Error()
	p.e.log.Error("a session folder cannot be read; what was taken in of it stands", "folder", path, "error", fmt.Sprint(err))
}

func (p *folderPen) taken(name string) bool {
	for _, f := range p.known {
		if f.name == name {
			return true
		}
	}
	return false
}
