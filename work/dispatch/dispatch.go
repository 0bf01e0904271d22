package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// Controller follows dispatch folders and lets agents do what they ask for.
type Controller struct {
	loop *loop.Loop
	Orders
	sessions *sessions.Controller
	opts     outside.Options
	log      *slog.Logger

	FolderState folderSide // what is kept of folders beside the team
}

// New makes the controller of the dispatch folders.
func New(l *loop.Loop, opts outside.Options, sessions *sessions.Controller) *Controller {
	return &Controller{
		loop: l, Orders: NewOrders(opts.Config), sessions: sessions, opts: opts, log: opts.Log,
		FolderState: newFolderSide(),
	}
}

// A dispatch folder is its own journal: every writer takes the folder's lock, decides and writes,
// with or without a daemon (ADR 14). The engine does three things with it. It copies every line into
// its own journal, so that the history and the page show it. It starts agents of fairlead.yaml for
// the work that a hosted conversation requests. And it reports the result to the folder, with the
// same lock as every other writer. The report is a new line, which is copied into the journal again.

var byFolders = change.Actor{Kind: "engine", ID: "session folders"}

// folderSide is what the engine keeps beside the team of session folders, and could find out again.
type folderSide struct {
	moved chan struct{} // something was written to a folder by us, or it may be time to serve an inbox

	// The loop's own.
	Hosted map[string]bool // folders that are open and have agents of this team at work
	doing  map[string]bool // keys of the actions that have begun

	// Decide is the only way in which the engine tells a folder something: DecideInFolder; tests let the daemon die
	// in it.
	Decide func(f *dispatchfolder.Folder, by change.Actor, in dispatch.Input) (dispatch.Dispatch, error)

	Mu     sync.Mutex
	Before map[string]*treeState   // by agent: what lay in the workspace when its session as MAIN began
	layers map[string][]view.Layer // what holds in MAIN's newest session, by folder
}

func newFolderSide() folderSide {
	return folderSide{
		moved: make(chan struct{}, 1), Hosted: map[string]bool{}, doing: map[string]bool{}, Decide: DecideInFolder,
		Before: map[string]*treeState{}, layers: map[string][]view.Layer{},
	}
}

// DecideInFolder tells a folder something in the way in which every program does.
func DecideInFolder(f *dispatchfolder.Folder, by change.Actor, in dispatch.Input) (dispatch.Dispatch, error) {
	_, now, err := f.Do(time.Now(), by, in)
	return now, err
}

// poke has the folders looked at now.
func (d *folderSide) Poke() {
	select {
	case d.moved <- struct{}{}:
	default: // a look is already due and will find this, too
	}
}

// DispatchHooks are what the dispatch controller does in the loop.
func (c *Controller) DispatchHooks() loop.Hooks {
	return loop.Hooks{
		OnBatch: func(changes []change.Change, _ uint64, _ *loop.Touched) {
			for i := range changes {
				if _, is := changes[i].Body.(*team.DispatchSet); is {
					c.noteHosted(strings.TrimPrefix(changes[i].Entity, "dispatch/"))
				}
			}
		},
		Act: func(*loop.Touched) { c.actOnFolders() },
	}
}

func (c *Controller) noteHosted(name string) {
	f := c.loop.State().Dispatches[name]
	if f != nil && !f.Gone && f.State.Host == dispatch.Fairlead && f.State.Phase != dispatch.Closed {
		c.FolderState.Hosted[name] = true
		return
	}
	if c.FolderState.Hosted[name] {
		delete(c.FolderState.Hosted, name)
		c.forgetActions(name, nil)
	}
}

// actOnFolders begins the pending actions of dispatch folders. It is called after every batch;
// few folders are open at a time.
func (c *Controller) actOnFolders() {
	if c.loop.Holding() {
		return
	}
	for name := range c.FolderState.Hosted {
		todo := c.loop.State().DispatchActions(name, c.loop.Now())
		c.forgetActions(name, todo)
		for _, one := range todo {
			if c.FolderState.doing[one.Key] {
				continue
			}
			c.FolderState.doing[one.Key] = true
			path := c.loop.State().Dispatches[name].Path
			c.loop.Go(func(ctx context.Context) { c.tellFolder(ctx, path, one) })
		}
	}
}

// forgetActions lets go of those that are not asked for any more.
func (c *Controller) forgetActions(name string, todo []team.Action) {
	maps.DeleteFunc(c.FolderState.doing, func(key string, _ bool) bool {
		return isActionOf(key, name) && !slices.ContainsFunc(todo, func(t team.Action) bool { return t.Key == key })
	})
}

// isActionOf reports whether an action belongs to a folder, from its key:
// told/dispatch/NAME/conv_001/1/0, answer/NAME/12.
func isActionOf(key, name string) bool {
	return strings.HasPrefix(key, "told/dispatch/"+name+"/") || strings.HasPrefix(key, "answer/"+name+"/")
}

// foldersBegin lets the folders be taken in and served. It runs when recovery is over.
func (c *Controller) FoldersBegin() {
	for name := range c.loop.State().Dispatches {
		c.noteHosted(name)
	}
	c.sweepTemps()
	if c.opts.Sessions == nil {
		return
	}
	c.loop.Go(func(ctx context.Context) {
		p := &FolderWriter{E: c, from: c.opts.Sessions, Known: map[string]*WrittenFolder{}}
		p.keep(ctx)
	})
}

// sweepTemps removes the own folders of sessions whose end the daemon missed.
func (c *Controller) sweepTemps() {
	dir := filepath.Dir(c.sessions.PrivateTemp("any"))
	names, err := readNames(dir, tempsMax)
	if err != nil {
		c.log.Warn("temporary folders of old sessions cannot be looked for", "error", err)
	}
	for _, name := range names {
		if sessions.IsShell(name) {
			continue // FollowShells removes it
		}
		agents := slices.Collect(maps.Values(c.loop.State().Agents))
		open := slices.ContainsFunc(agents, func(a *team.Agent) bool { return a.Open(name) != nil })
		for _, s := range c.loop.State().Pool.Sessions {
			open = open || s.ID == name
		}
		if open {
			continue
		}
		if err := places.End(filepath.Join(dir, name)); err != nil {
			c.log.Warn("the temporary folder of an old session cannot be removed", "session", name, "error", err)
		}
	}
}

const tempsMax = 1000 // that one start removes; there is one for each session of MAIN that was killed

// tellFolder repeats an action of a folder until it succeeds. The folder may be locked by a process
// that hangs, or its disk may be full.
func (c *Controller) tellFolder(ctx context.Context, path string, todo team.Action) {
	warned := ""
	for again := loop.Retry(); ; {
		err := c.tellOnce(ctx, path, todo)
		if err == nil || ctx.Err() != nil {
			c.FolderState.Poke()
			return
		}
		if loop.IsAnswer(err) {
			c.log.Warn("a session folder does not take what it is told", "folder", path, "action", todo.Key, "error", err)
			c.FolderState.Poke()
			return
		}
		if warned != err.Error() {
			warned = err.Error()
			c.log.Error("the result of an action was not written to its session folder; Fairlead tries again", "folder", path, "action",
				todo.Key, "error", err)
		}
		if !again.Rest(ctx) {
			return
		}
		still := false
		if c.loop.View(ctx, func(t *team.Team) {
			wanted := t.DispatchActions(todo.Folder, c.loop.Now())
			still = slices.ContainsFunc(wanted, func(now team.Action) bool { return now.Key == todo.Key })
		}) != nil || !still {
			return
		}
	}
}

// tellOnce tells the folder once.
func (c *Controller) tellOnce(ctx context.Context, path string, todo team.Action) error {
	f, err := dispatchfolder.Open(path)
	if err != nil {
		return err
	}
	if todo.Do == team.AnswerFolder {
		return c.answerFolder(f)
	}
	work, ok := dispatch.ActionOf(todo.Work)
	if !ok {
		panic("engine: no such work: " + todo.Work)
	}
	end := todo.End
	text, err := c.resultOf(ctx, end)
	if err != nil {
		return err
	}
	by := change.Actor{Kind: "agent", ID: end.Agent}
	var in dispatch.Input = dispatch.TaskEnded{
		Conversation: work.Conversation, Task: work.Task, Round: work.Round, OK: wentWell(end),
		Result: text,
	}
	if work.Task == 0 {
		in = dispatch.MainEnded{Conversation: work.Conversation, Round: work.Round, OK: wentWell(end), Result: text}
	}
	if end.Outcome == control.Lost {
		s, err := f.Session()
		if err != nil || !s.Wanted(work) {
			return err // it was told before, and another conversation may be open by now
		}
		// D11: no session will end it any more
		in = dispatch.Interrupt{Conversation: work.Conversation, Why: cmp.Or(end.Why, "its session was lost")}
	}
	_, err = c.FolderState.Decide(f, by, in)
	return err
}

// answerFolder closes a conversation whose answer needs no agent.
func (c *Controller) answerFolder(f *dispatchfolder.Folder) error {
	s, err := f.Session()
	if err != nil {
		return err
	}
	answer, ok := s.Answer()
	if !ok {
		return nil // another process closed it
	}
	_, err = c.FolderState.Decide(f, byFolders, answer)
	return err
}

// folderName gives a folder a name that stays: its own, and where two have the same, with a part
// of its path's hash.
func folderName(path string, taken func(name string) bool) string {
	base := filepath.Base(path)
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '_'
		}
	}, base)
	if len(name) > folderNameMax {
		name = name[:folderNameMax]
	}
	if name == base && !taken(name) {
		return name
	}
	sum := sha256.Sum256([]byte(path))
	return name + "-" + hex.EncodeToString(sum[:3])
}

const folderNameMax = 80 // the journal takes names of 256 with what is before them

// DelegateMarkers are what an agent with work in a dispatch folder says to Fairlead and not to people.
var DelegateMarkers = []marker.Kind{marker.Delegate}
