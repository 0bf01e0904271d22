package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/interop/sessionfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	linesShown   = 200 // of a session's history: the page shows these, the file has all
	denialsShown = 50
)

// FolderView is a session folder as people see it. Lists are the oldest first.
type FolderView struct {
	Name          string                           `json:"name"`
	Path          string                           `json:"path"`
	Gone          bool                             `json:"gone,omitempty"` // the folder is not there any more
	Read          int64                            `json:"read"`           // bytes of its history that are in the journal
	Session       dispatch.Session                 `json:"session"`
	State         string                           `json:"state"`             // who is in charge: MAIN, QUEUE or an agent
	Waits         map[string]string                `json:"waits,omitempty"`   // by work: what keeps an agent of ours from beginning
	Lines         []FolderLineView                 `json:"lines,omitempty"`   // the last 200
	Denials       []FolderDenial                   `json:"denials,omitempty"` // the last 50
	Ranking       *policy.Ranking                  `json:"ranking,omitempty"` // of the last input
	Conversations []sessionfolder.ConversationInfo `json:"conversations,omitempty"`
	Layers        []Layer                          `json:"layers,omitempty"` // host fairlead: what holds in MAIN's last session
	Fault         string                           `json:"fault,omitempty"`  // why the folder cannot be read; then the rest is what the journal has
}

// FolderLineView is one line of a session's history.
type FolderLineView struct {
	At           time.Time  `json:"at"`
	Line         uint64     `json:"line"`
	Row          string     `json:"row"`
	Event        string     `json:"event"`
	From         string     `json:"from,omitempty"`
	To           string     `json:"to"`
	Trigger      string     `json:"trigger,omitempty"`
	Conversation int        `json:"conversation,omitempty"`
	Actor        team.Actor `json:"actor"`
	Foreign      bool       `json:"foreign,omitempty"` // another program wrote it
	Fault        string     `json:"fault,omitempty"`
}

// FolderDenial is a tool call that was not allowed, and what was done instead.
type FolderDenial struct {
	At           time.Time       `json:"at"`
	Line         uint64          `json:"line"`
	Conversation int             `json:"conversation,omitempty"`
	Denied       dispatch.Denied `json:"denied"`
	Instead      string          `json:"instead,omitempty"` // the next transition of the conversation; empty: none yet
}

// Folders are all session folders that are known, the one begun last first. Lines, denials and
// conversations are asked for one by one.
func (e *Engine) Folders(ctx context.Context) ([]FolderView, error) {
	var views []FolderView
	err := e.look(ctx, func(t *team.Team) {
		for _, name := range slices.Sorted(maps.Keys(t.Folders)) {
			views = append(views, e.folderView(t, t.Folders[name]))
		}
	})
	slices.SortStableFunc(views, func(a, b FolderView) int { return b.Session.Began.Compare(a.Session.Began) })
	return views, err
}

// folderView runs in the loop.
func (e *Engine) folderView(t *team.Team, f *team.Folder) FolderView {
	view := FolderView{Name: f.Name, Path: f.Path, Gone: f.Gone, Read: f.Read, Session: f.Session, State: f.Session.State()}
	if f.Gone {
		return view
	}
	for _, w := range f.Session.Due() {
		if why := t.WorkWaits(f.Name, w.Key(), e.clock.now()); why != "" {
			if view.Waits == nil {
				view.Waits = map[string]string{}
			}
			view.Waits[w.Key()] = w.Agent + ": " + why
		}
	}
	return view
}

// Folder is one of them, with what it holds. The error is a *team.Unknown where there is none.
func (e *Engine) Folder(ctx context.Context, name string) (FolderView, error) {
	var view FolderView
	var unknown error
	if err := e.look(ctx, func(t *team.Team) {
		f := t.Folders[name]
		if f == nil {
			unknown = &team.Unknown{What: "session", Name: name, Known: slices.Sorted(maps.Keys(t.Folders))}
			return
		}
		view = e.folderView(t, f)
	}); err != nil {
		return view, err
	}
	if unknown != nil || view.Gone {
		return view, unknown
	}
	view.Layers = e.layersOf(name)
	if err := e.showFolder(&view); err != nil {
		view.Fault = err.Error()
	}
	return view, nil
}

// showFolder reads what is in the folder itself.
func (e *Engine) showFolder(view *FolderView) error {
	folder, err := sessionfolder.Open(view.Path)
	if err != nil {
		return err
	}
	now, err := folder.Session()
	if err != nil {
		return err
	}
	view.Session, view.State = now, now.State()
	show := e.showOf(view.Path)
	show.mu.Lock()
	defer show.mu.Unlock()
	if err := show.readOn(folder, now.Began); err != nil {
		return err
	}
	view.Lines, view.Denials = slices.Clone(show.lines[max(0, len(show.lines)-linesShown):]), slices.Clone(show.denials)
	if show.input != "" {
		ranking := sessionfolder.Best(now, show.input)
		view.Ranking = &ranking
	}
	view.Conversations, err = folder.Conversations()
	return err
}

// folderShow is the end of a folder's history, kept up, so that a long one is read once.
type folderShow struct {
	mu      sync.Mutex
	began   time.Time
	read    int64
	lines   []FolderLineView
	denials []FolderDenial
	input   string // the last one
}

func (e *Engine) showOf(path string) *folderShow {
	e.folders.mu.Lock()
	defer e.folders.mu.Unlock()
	if e.folders.shown[path] == nil {
		if len(e.folders.shown) >= foldersMax {
			clear(e.folders.shown) // it is only work saved
		}
		e.folders.shown[path] = &folderShow{}
	}
	return e.folders.shown[path]
}

func (s *folderShow) readOn(folder *sessionfolder.Folder, began time.Time) error {
	if !s.began.Equal(began) {
		s.began, s.read, s.lines, s.denials, s.input = began, 0, nil, nil, ""
	}
	for {
		lines, next, err := folder.Lines(s.read)
		if err != nil {
			s.began = time.Time{} // it was replaced: the next one who asks reads it anew
			return err
		}
		if next == s.read {
			return nil
		}
		for i := range lines {
			s.take(&lines[i])
		}
		s.read = next
	}
}

func (s *folderShow) take(line *sessionfolder.Line) {
	ch := &line.Change
	if open := ch.Body.Now.Open; open != nil && (ch.Event == dispatch.InputCame || ch.Event == dispatch.MessageTaken) {
		s.input = open.Input
	}
	number := ch.Body.Now.Line
	if ch.From != ch.To && len(s.denials) > 0 {
		if last := &s.denials[len(s.denials)-1]; last.Conversation == ch.Body.Conversation && last.Instead == "" {
			last.Instead = dispatch.Arrow(ch.From, ch.To) + " " + ch.Trigger
		}
	}
	if ch.Body.Denied != nil {
		s.denials = append(s.denials, FolderDenial{At: ch.At, Line: number, Conversation: ch.Body.Conversation, Denied: *ch.Body.Denied})
		s.denials = s.denials[max(0, len(s.denials)-denialsShown):]
	}
	s.lines = append(s.lines, FolderLineView{
		At: ch.At, Line: number, Row: ch.Row, Event: string(ch.Event), From: ch.From, To: ch.To, Trigger: ch.Trigger,
		Conversation: ch.Body.Conversation, Actor: team.Actor(line.Actor), Foreign: line.Foreign, Fault: line.Fault,
	})
	if len(s.lines) > 2*linesShown {
		s.lines = slices.Delete(s.lines, 0, len(s.lines)-linesShown)
	}
}
