package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/interop/sessionfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// Mode response: there is no MAIN, and messages lie in an inbox. They are taken in the order of
// their names, one at a time; whose work one is the descriptions say, and what fits nobody is put
// aside with the ranking (D6).

const unmatchedAtOnce = 100 // messages put aside in one round; the rest in the next

// serve gives every free queue its next message.
func (p *folderPen) serve(ctx context.Context) error {
	for _, path := range slices.Sorted(maps.Keys(p.known)) {
		f := p.known[path]
		if !f.queued || f.gone {
			continue
		}
		served, err := p.e.serveInbox(ctx, path)
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			p.stuck(f, path, err)
			continue
		}
		if served {
			p.e.folders.poke() // its lines are to be taken in
		}
	}
	return nil
}

// serveInbox takes messages until one has somebody to serve it, or there is none left.
func (e *Engine) serveInbox(ctx context.Context, path string) (served bool, err error) {
	folder, err := sessionfolder.Open(path)
	if err != nil {
		return false, err
	}
	messages, err := folder.Inbox()
	if err != nil || len(messages) == 0 {
		return false, err
	}
	s, err := folder.Session()
	if err != nil {
		return false, err
	}
	for i, msg := range messages {
		if ctx.Err() != nil || i >= unmatchedAtOnce || s.Phase != dispatch.Queue {
			return served, ctx.Err()
		}
		in := dispatch.Message{Name: msg.Name, Text: msg.Text}
		ranking := sessionfolder.Best(s, msg.Text)
		if in.Match = sessionfolder.MatchOf(ranking); in.Match == nil {
			text, err := json.Marshal(ranking)
			if err != nil {
				return served, err
			}
			in.Ranking = string(text)
		}
		now, err := e.folders.door(folder, sessionfolder.Actor(byFolders), in)
		if isAnswer(err) {
			return served, nil //nolint:nilerr // somebody else was at it: the next round looks again
		}
		if err != nil {
			return served, err
		}
		served, s = true, now
	}
	return served, nil
}
