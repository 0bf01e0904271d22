package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// In mode response there is no MAIN; messages are files in an inbox. They are processed one at a
// time in the order of their names. The agents' descriptions decide which agent gets a message. A
// message that fits no agent is moved aside together with the ranking (D6).

const (
	unmatchedAtOnce = 100 // messages put aside in one round; the rest in the next
	// a message is read only when it has not changed for this long: its writer may not have finished
	messageSettles = 200 * time.Millisecond
	emptySettles   = 5 * time.Second // the same of one without a word
)

// serve gives every free queue its next message. It says when to look again; 0: when there is news.
func (p *FolderWriter) serve(ctx context.Context) (again time.Duration, err error) {
	for _, path := range slices.Sorted(maps.Keys(p.Known)) {
		f := p.Known[path]
		if !f.queued || f.gone {
			continue
		}
		served, wait, err := p.E.serveInbox(ctx, path)
		if ctx.Err() != nil || errors.Is(err, loop.ErrClosed) {
			return 0, err
		}
		if wait > 0 {
			again = loop.Sooner(again, wait)
		}
		if err != nil {
			p.stuck(f, path, err)
			continue
		}
		if served {
			p.E.FolderState.Poke() // its lines are to be taken in
		}
	}
	return again, nil
}

// serveInbox processes messages until an agent is found for one, or none is left.
func (c *Controller) serveInbox(ctx context.Context, path string) (served bool, wait time.Duration, err error) {
	folder, err := dispatchfolder.Open(path)
	if err != nil {
		return false, 0, err
	}
	messages, err := folder.Inbox()
	if err != nil || len(messages) == 0 {
		return false, 0, err
	}
	s, err := folder.Session()
	if err != nil {
		return false, 0, err
	}
	for i, msg := range messages {
		if ctx.Err() != nil || i >= unmatchedAtOnce || s.Phase != dispatch.Queue {
			return served, 0, ctx.Err()
		}
		if wait := unsettled(filepath.Join(path, InboxFolder, msg.Name), msg.Text); wait > 0 {
			return served, wait, nil // and those after it have their turn after it
		}
		in, err := c.ranked(s, msg)
		if err != nil {
			return served, 0, err
		}
		now, err := c.FolderState.Decide(folder, byFolders, in)
		if loop.IsAnswer(err) {
			return served, 0, nil //nolint:nilerr // another process handled it: the next round looks again
		}
		if err != nil {
			return served, 0, err
		}
		served, s = true, now
	}
	return served, 0, nil
}

// unsettled says for how long a message is to be left alone, since it may still be written.
func unsettled(file, text string) time.Duration {
	info, err := os.Lstat(file)
	if err != nil {
		return 0 // Decide says what that means
	}
	settles := messageSettles
	if strings.TrimSpace(text) == "" {
		settles = emptySettles
	}
	if age := time.Since(info.ModTime()); age >= 0 && age < settles {
		return settles - age
	}
	return 0
}

// ranked says whose work a message is, or with what it is put aside.
func (c *Controller) ranked(s dispatch.Dispatch, msg dispatchfolder.InboxMessage) (dispatch.Message, error) {
	in := dispatch.Message{Name: msg.Name, Text: msg.Text}
	var aside any
	if msg.Fault != "" {
		aside = map[string]string{"fault": msg.Fault}
	} else {
		ranking := c.RankDispatch(s, msg.Text)
		if in.Match = dispatchfolder.MatchOf(ranking); in.Match != nil {
			return in, nil
		}
		aside = ranking
	}
	text, err := json.Marshal(aside)
	if err != nil {
		return in, fmt.Errorf("write down why no description matches %s: %w", msg.Name, err)
	}
	in.Ranking = string(text)
	return in, nil
}
