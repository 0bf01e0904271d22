package engine

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
)

// Output reads what a session said, from an offset on; it follows while the session runs.
func (e *Engine) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, SessionInfo, error) {
	info, err := e.Session(ctx, session)
	if err != nil {
		return nil, info, err
	}
	if proc := e.proc(session); proc != nil {
		out, err := proc.Output(ctx, offset)
		return out, info, err
	}
	out, err := e.opts.Host.Output(ctx, session, offset)
	return out, info, err
}

// An answer is bounded both ways; facts are read again from the output each time.
const (
	factsMax      = 2000
	factsBytesMax = 8 << 20 // a line alone may have a megabyte
)

// Facts are what the driver understands of a session's output so far, the newest last, at
// most tail of them, and fewer where they are very long. A session that runs is read for as
// long as wait allows.
func (e *Engine) Facts(ctx context.Context, session string, tail int, wait time.Duration) ([]driver.Fact, error) {
	info, err := e.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	d, ok := e.opts.Drivers[info.driver]
	if !ok {
		return nil, &team.Unknown{What: "driver", Name: info.driver, Known: machine.Names(e.opts.Drivers)}
	}
	if tail <= 0 || tail > factsMax {
		tail = factsMax
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	last := newest{most: tail}
	conv := d.Converse(driver.Agent{Name: info.Agent}, driver.Session{ID: session}, readOnly{e: e, session: session})
	for fact, err := range conv.Facts(ctx, 0) {
		switch {
		case err != nil && ctx.Err() != nil: // it still runs: this is what there is
			return last.facts, nil
		case err != nil:
			return last.facts, fmt.Errorf("read the output of %s: %w", session, err)
		}
		last.add(fact)
	}
	return last.facts, nil
}

// newest keeps the last facts of many.
type newest struct {
	most  int
	facts []driver.Fact
	bytes int
}

func (n *newest) add(fact driver.Fact) {
	n.facts = append(n.facts, fact)
	n.bytes += len(fact.Text) + len(fact.Raw)
	for len(n.facts) > n.most || (n.bytes > factsBytesMax && len(n.facts) > 1) {
		n.bytes -= len(n.facts[0].Text) + len(n.facts[0].Raw)
		n.facts[0] = driver.Fact{} // or its text stays for as long as the array does
		n.facts = n.facts[1:]
	}
}

// readOnly is a wire on which nothing can be said.
type readOnly struct {
	e       *Engine
	session string
}

func (r readOnly) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	out, _, err := r.e.Output(ctx, r.session, offset)
	return out, err
}

func (r readOnly) Send(context.Context, []byte) error { return io.ErrClosedPipe }

func (r readOnly) CloseInput(context.Context) error { return io.ErrClosedPipe }
