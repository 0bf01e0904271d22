package loop

import (
	"context"
	"errors"
)

// ErrReadOnly is the answer of a loop that serves reads only.
var ErrReadOnly = errors.New("no daemon runs here, so nothing can be changed; start it with `fairlead up`")

// RunReads answers requests that only look at the team, until ctx ends. It serves a journal that no
// daemon runs on: nothing is decided, appended or started.
func (l *Loop) RunReads(ctx context.Context) error {
	close(l.ready)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.failure:
			return err
		case req := <-l.queue:
			l.read(req)
		}
	}
}

func (l *Loop) read(req Request) {
	answer := Answer{Seq: l.head}
	switch {
	case req.Event != nil || req.Derive != nil || req.Agent != "" || req.After != nil:
		answer.Err = ErrReadOnly
	case req.First != nil:
		answer.Err = req.First()
	}
	if req.Look != nil && answer.Err == nil {
		req.Look(l.team)
	}
	if req.answer != nil {
		req.answer <- answer
	}
}
